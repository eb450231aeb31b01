// Package health knows whether ductor does its work: whether it hears from Telegram, and whether its store takes writes. It
// tells systemd, which restarts what a restart mends, and answers monitors at /healthz.
//
// The two ask different things. /healthz says whether users get answers now. The watchdog of systemd ends ductor, so it is fed
// as long as a restart would mend nothing: while Telegram cannot be reached, refuses calls or lets another program poll, and
// while the disk is full. It is not fed when the loop that polls no longer comes around, or when a write fails or does not
// come back.
package health
