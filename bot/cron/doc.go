// Package cron is the screen of /cron: it lists the jobs of a chat, adds, changes, runs and deletes them. It decides what
// messages say and does what their buttons say; it sends no message, stores no job and runs none.
package cron
