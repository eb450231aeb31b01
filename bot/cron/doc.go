// Package cron is the screen of /cron, on which users list, add, change, start and delete the jobs of a chat. The
// package returns pages and handles their buttons. It does not send messages. Package heartbeat runs the jobs.
package cron
