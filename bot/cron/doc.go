// Package cron is the screen of /cron. Users list, add, change, start and delete the jobs of a chat there. The package
// returns pages and handles their buttons. It does not send messages, and package heartbeat runs the jobs.
package cron
