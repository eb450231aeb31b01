// Package health monitors whether ductor reaches Telegram and whether its store accepts writes. It reports the results
// at /healthz and to systemd.
//
// The two reports differ. /healthz shows whether users currently get answers. systemd restarts ductor if ductor stops
// sending signs of life. So ductor stops sending signs of life only if a restart can help:
//   - the loop that polls Telegram is stuck
//   - a write to the store fails or hangs
//
// A restart would not help while Telegram is unreachable or rejects calls, while another program polls the bot, or
// while the disk is full.
package health
