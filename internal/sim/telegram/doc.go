// Package telegram simulates a Bot API server: the HTTP interface for bots, the original's rules and exact error
// texts, and users who write to the bot. Tests, benchmarks and the demo run against it.
//
// The package does not depend on ductor. It records which calls the server accepted and when, and does not model the
// display of a phone. It follows the public sources of the Bot API server (telegram-bot-api and TDLib), and users'
// reports about the closed servers behind them. It omits on purpose:
//
//   - parse modes (HTML, Markdown): calls with them fail; entities are the only way to format;
//   - entities that Telegram finds in messages of the bot (links, mentions); it finds commands, mentions and links in
//     messages of users;
//   - webhooks: a bot can set one, which makes getUpdates fail as it should, but the server delivers nothing to it.
//
// Waits need no polling. The clock is an option. Under testing/synctest use [Server.Client], which reaches the server
// without a network.
package telegram
