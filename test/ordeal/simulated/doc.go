// Package simulated runs all of ductor in one process under testing/synctest. It uses the simulated Telegram without a
// network, scripted agents inside the process under a simulated launcher, real SQLite, and a clock that jumps to the
// next event. A seed decides the actions of users and the faults.
//
// Webhooks are called over pipes. The world lacks everything that a bubble of synctest does not support: other sockets
// (agents get no tools of ductor, terminals and monitors are not served), other processes (without git, nothing can be
// undone), and changes of the clock.
package simulated
