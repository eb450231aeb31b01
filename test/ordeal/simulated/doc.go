// Package simulated is the world of the ordeal that runs in one process, with testing/synctest. It contains all of
// ductor, the simulated Telegram without a network, scripted agents as goroutines with a simulated launcher, real
// SQLite, and a clock that jumps to the next event. A seed determines what users do and what fails.
//
// Webhooks are called through pipes. The world cannot contain what a bubble of synctest does not support: other sockets
// (so agents do not get ductor's tools, and there are no terminals and no monitoring), other processes (so there is no
// git and no undo), and changes of the clock.
package simulated
