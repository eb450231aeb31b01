// Package health monitors whether ductor works: whether it reaches Telegram, and whether its store accepts writes. It
// notifies systemd, which restarts ductor if a restart can help, and serves /healthz for monitoring.
//
// /healthz and the systemd watchdog answer different questions. /healthz reports whether users currently get answers.
// The watchdog kills ductor if ductor stops feeding it. So ductor feeds it as long as a restart would not help: while
// Telegram is unreachable, rejects calls or lets another program poll, and while the disk is full. ductor does not feed
// it if the polling loop is stuck, or if a write fails or hangs.
package health
