package sessions

import (
	"time"

	"ductor/orchestrator"
)

// Policy configures when a session ends, and how much of its history a new agent gets.
type Policy struct {
	IdleReset time.Duration `toml:"idle_reset" check:"0..87600h"` // ends a session after this idle time; 0: never
	// DailyReset is a time of day such as "04:00". The first turn after this time does not continue an older session,
	// but starts a new one. Empty means no daily reset.
	DailyReset    string `toml:"daily_reset"`
	HandoffTokens int    `toml:"handoff_tokens" default:"8000" check:"0..1000000"` // maximum tokens of history
	SummaryModel  string `toml:"summary_model" applies:"after a restart"`          // such as "claude/haiku"
	DefaultRole   string `toml:"default_role"`
}

// Check implements config.checker.
func (p Policy) Check(problem func(key, format string, args ...any)) {
	if _, err := time.Parse("15:04", p.DailyReset); err != nil && p.DailyReset != "" {
		problem("daily_reset", `%q should be a time of day such as "04:00", or empty for never`, p.DailyReset)
	}
}

// Expired reports whether a session has ended by IdleReset or DailyReset.
func (p Policy) Expired(s orchestrator.Session, now time.Time) bool {
	if p.IdleReset > 0 && now.Sub(s.Used) >= p.IdleReset {
		return true
	}
	at, err := time.Parse("15:04", p.DailyReset)
	if err != nil {
		return false
	}
	local := now.Local()
	reset := time.Date(local.Year(), local.Month(), local.Day(), at.Hour(), at.Minute(), 0, 0, local.Location())
	if reset.After(local) {
		reset = reset.AddDate(0, 0, -1)
	}
	return s.Used.Before(reset)
}
