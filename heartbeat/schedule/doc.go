// Package schedule reads schedules, as cron lines or in words, and computes their moments in a time zone. It has no clock
// and keeps no state.
package schedule
