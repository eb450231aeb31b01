// Package telegram simulates Telegram: a server with the Bot API, and users who write to the bot. The rules and the
// error texts are exactly the same as on the real server. Tests, benchmarks and the demo use it.
//
// The package does not depend on ductor. It records all calls and when the server accepted them. It does not simulate
// the screen of a phone. Its behavior follows the public sources of the Bot API server (telegram-bot-api and TDLib),
// and users' reports about the closed servers behind them. It omits on purpose:
//
//   - parse modes (HTML, Markdown): calls with them fail; entities are the only way to format
//   - entities that Telegram finds in messages of the bot (links, mentions); it finds commands, mentions and links in
//     messages of users
//   - webhooks: a bot can set one, which makes getUpdates fail as it should, but the server never calls it
//
// Methods that wait for an event need no polling. Options.Now replaces the clock. With testing/synctest, use
// [Server.Client], which needs no network.
package telegram
