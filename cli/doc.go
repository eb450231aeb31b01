// Package cli defines the types that are common to all agents: Request, Event, Result and Failure. It also defines two
// interfaces that other packages implement: Provider for each protocol of an agent, called a dialect, and Launcher for
// each environment in which processes start.
//
// Package cli itself runs no turns and starts no processes; packages cli/service, cli/turn and cli/host do. It contains
// no dialect, and knows nothing of Telegram, chats or SQLite.
package cli
