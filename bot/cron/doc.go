// Package cron implements the command /cron, with which users list, add, change, start and delete the scheduled jobs of
// a chat. The package returns pages and handles their buttons. It sends no messages. Package heartbeat runs the jobs.
package cron
