// Package simulated runs the whole of ductor in one process under testing/synctest: the simulated Telegram without a network,
// scripted agents in process under a simulated launcher, real SQLite, and a clock that jumps to the next moment at which
// something happens. A seed decides what users do and what goes wrong.
//
// Webhooks are called over pipes. It leaves out what a bubble of synctest cannot have: other sockets (agents get no tools of ductor,
// terminals are not heard, monitors are not served), other processes (git, so that nothing is undone), and a clock that is set.
package simulated
