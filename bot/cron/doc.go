// Package cron is the screen of /cron: it lists the jobs of a chat, adds, changes, runs and deletes them. It returns
// pages and handles their buttons. It sends no messages and runs no jobs itself.
package cron
