// Package simulated runs scenarios (see package scenario) in a single process, with testing/synctest. Each scenario
// runs in its own World. A World contains all of ductor, the simulated Telegram without a network, scripted agents as
// goroutines with a simulated launcher, real SQLite, and a clock that jumps to the next event. A seed determines the
// actions of users and the faults.
//
// A bubble of synctest supports neither sockets nor other processes, and its clock cannot be changed. Therefore
// webhooks are called through pipes, and some parts of ductor are missing: ductor's tools for agents, terminals,
// monitoring, git and undo.
package simulated
