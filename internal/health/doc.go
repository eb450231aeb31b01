// Package health monitors whether ductor works: whether it reaches Telegram, and whether its store accepts writes. It
// notifies systemd, which restarts ductor if a restart can help, and serves /healthz for monitoring.
//
// /healthz and the watchdog of systemd differ. /healthz reports whether users currently get answers. The watchdog
// kills ductor if ductor stops sending it signs of life. So ductor continues to send them while a restart would not
// help: while Telegram is unreachable, rejects calls or lets another program poll, and while the disk is full. ductor
// stops sending them if the polling loop is stuck, or if a write fails or hangs.
package health
