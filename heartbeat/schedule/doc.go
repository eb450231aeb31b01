// Package schedule parses schedules, as cron lines or in words, and computes their times in a time zone. It has no
// clock and no state.
package schedule
