// Package cli defines the types that are common to all agents: Request, Event, Result and Failure. It also defines two
// interfaces that other packages implement. A Provider translates the protocol of one agent; comments call an
// implementation of Provider a dialect. A Launcher starts processes in one environment, such as this host or a
// container.
//
// Package cli itself runs no turns and starts no processes; packages cli/service, cli/turn and cli/host do. It knows
// nothing of Telegram, chats or SQLite.
package cli
