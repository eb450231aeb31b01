// Package schedule parses schedules, which are cron lines or sentences, and computes their times in a time zone. It
// reads no clock and has no state.
package schedule
