// Package telegram is a Bot API server in a box: the HTTP interface that bots call, the rules and exact error texts
// of the original, and people who write to the bot. Tests, benchmarks and the demo run against it.
//
// It is NOT a client, knows nothing of ductor, and does not show what a phone would draw: only what the server
// accepted and when. It follows the public sources of the Bot API server (telegram-bot-api and TDLib) where they
// decide, and reports of users where the closed servers behind them do. What it leaves out on purpose:
//
//   - parse modes (HTML, Markdown): refused with a clear error, entities are the only way to format;
//   - entities that Telegram finds in a text (links, mentions) in messages of the bot; commands, mentions and links
//     are found in messages of people;
//   - webhooks: one can be set, which makes getUpdates fail as it should, but nothing is delivered to it.
//
// Everything waits on events, never on polling; the clock is an option. Under testing/synctest use [Server.Client],
// which reaches the server without a network.
package telegram
