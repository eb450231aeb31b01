// Package simulated runs the whole of ductor in one process under testing/synctest: the simulated Telegram without a network,
// scripted agents in process under a simulated launcher, real SQLite, and a clock that jumps to the next moment at which
// something happens. A seed decides what users do and what goes wrong.
//
// It leaves out what a bubble of synctest cannot have: sockets (agents get no tools of ductor, terminals are not heard, webhooks
// and monitors are not served) and other processes (git, so that nothing is undone).
package simulated
