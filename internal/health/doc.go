// Package health monitors whether ductor works: whether it reaches Telegram, and whether its store accepts writes. It
// notifies systemd, which restarts ductor if a restart can help, and serves /healthz for monitoring.
//
// /healthz and systemd's watchdog differ. /healthz reports whether users currently get answers. The watchdog kills
// ductor if ductor stops sending it signs of life. Therefore ductor continues to send them as long as a restart would
// not help: while Telegram is unreachable or rejects calls, while another program polls the bot, and while the disk is
// full. ductor stops sending them if the loop that polls Telegram is stuck, or if a write to the store fails or hangs.
package health
