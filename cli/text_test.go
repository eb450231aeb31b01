package cli

import (
	"testing"
	"time"
)

// TestResetAt reads what Claude, Codex, Gemini and Copilot say of the end of a limit.
func TestResetAt(t *testing.T) {
	now := time.Date(2026, 11, 24, 14, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"You've hit your usage limit. Try again at 3:05 PM.":                        now.Add(65 * time.Minute),
		"You've hit your usage limit. Try again at 9:10 AM.":                        now.Add(19*time.Hour + 10*time.Minute),
		"try again at Dec 3rd, 2026 9:10 PM.":                                       time.Date(2026, 12, 3, 21, 10, 0, 0, time.Local),
		"You've hit your usage limit. Try again in 2 hours 5 minutes.":              now.Add(125 * time.Minute),
		"Try again in 3 days 1 hour.":                                               now.Add(73 * time.Hour),
		"You've hit your limit · resets 3pm":                                        now.Add(time.Hour),
		"You've hit your session limit · resets Dec 1 at 3am":                       time.Date(2026, 12, 1, 3, 0, 0, 0, time.Local),
		"Claude AI usage limit reached|1795532400":                                  time.Unix(1795532400, 0),
		"You exceeded your current quota. Please retry in 12.5s.":                   now.Add(12500 * time.Millisecond),
		"Quota exceeded. Your quota will reset after some time.":                    {},
		"Request rejected (429) · slow down":                                        {},
		"Please try again later.":                                                   {},
		"usage limit reached|1000000000":                                            {},
		"Try again in 4000 days.":                                                   {},
		"This is a server-side issue, usually temporary — try again in a moment.":   {},
		"Sorry, you have hit a rate limit. Please try again in about 2 hours. (id)": now.Add(2 * time.Hour),
	} {
		if got := ResetAt(text, now); !got.Equal(want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
