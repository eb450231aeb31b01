// Package simulated is the world of the ordeal that runs in one process, with testing/synctest. It contains all of
// ductor, the simulated Telegram without a network, scripted agents as goroutines with a simulated launcher, real
// SQLite, and a clock that jumps to the next event. A seed determines the actions of users and the faults.
//
// Webhooks are called through pipes. Some parts of ductor are missing, because a bubble of synctest does not support
// them. Without other sockets, agents do not get ductor's tools, and terminals and monitoring are missing. Without
// other processes, git and undo are missing. The clock cannot be changed.
package simulated
