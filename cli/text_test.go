package cli

import (
	"testing"
	"time"
)

// TestResetAt parses how Claude, Codex, Gemini and Copilot announce the end of a limit.
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
		"You have exhausted your capacity. Your quota will reset after 16h53m2s.":   now.Add(60782 * time.Second),
		"You can resume using this model at 2026-11-30T08:12:00Z.":                  time.Date(2026, 11, 30, 8, 12, 0, 0, time.UTC),
		"The file of 2026-11-30T08:12:00Z is broken.":                               {},
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

// TestResetAtObeysTheZone: a time with a zone is in that zone, wherever the machine is.
func TestResetAtObeysTheZone(t *testing.T) {
	for _, here := range []*time.Location{time.UTC, time.FixedZone("", -5*3600), time.Local} {
		now := time.Date(2026, 11, 24, 14, 0, 0, 0, time.UTC).In(here)
		for text, want := range map[string]time.Time{
			"You've hit your session limit · resets 11:50pm (Asia/Tokyo)":   now.Add(50 * time.Minute),
			"You've hit your session limit · resets 3am (Pacific/Honolulu)": now.Add(23 * time.Hour),
			"You're out of extra usage · resets Dec 3, 9am (UTC)":           time.Date(2026, 12, 3, 9, 0, 0, 0, time.UTC),
			"You've hit your limit · resets Nov 24, 2pm (UTC)":              now,
		} {
			if got := ResetAt(text, now); !got.Equal(want) {
				t.Errorf("%q: %v, want %v", text, got, want)
			}
		}
	}
	now := time.Date(2026, 11, 24, 14, 0, 0, 0, time.Local)
	for _, text := range []string{"resets 3pm (in nobody's zone)", "resets 3pm (Nowhere/City)"} {
		if got := ResetAt(text, now); !got.Equal(now.Add(time.Hour)) {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestModelsSayThatTheContextIsFull(t *testing.T) {
	for text, full := range map[string]bool{
		"prompt is too long: 210000 tokens > 200000 maximum": true,
		"Prompt is too long": true,
		"This model's maximum context length is 8192 tokens.":                                                true,
		"Your input exceeds the context window of this model. Please adjust your input and try again.":       true,
		"Codex ran out of room in the model's context window. Start a new thread":                            true,
		"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).":            true,
		"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length": true,
		"Sending this message (9000 tokens) might exceed the remaining context window limit (8000 tokens).":  true,
		"max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens for this model":    false,
		"Request too large":          false,
		"the answer became too long": false,
	} {
		if got := SaysContextFull(text); got != full {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestWordsMeanAFailure(t *testing.T) {
	for text, want := range map[string]FailureKind{
		"You've hit your session limit · resets 3pm (Europe/Berlin)":                         LimitReached,
		"You've hit your weekly limit · resets Dec 3, 9am (UTC)":                             LimitReached,
		"You've hit your limit · resets 3pm":                                                 LimitReached,
		"You've reached your Opus limit":                                                     LimitReached,
		"5-hour limit reached ∙ resets 3pm":                                                  LimitReached,
		"Claude AI usage limit reached|1795532400":                                           LimitReached,
		"You're out of extra usage · resets Dec 3, 9am (UTC)":                                LimitReached,
		"Credit balance is too low":                                                          LimitReached,
		"Your credit balance is too low to access the Anthropic API.":                        LimitReached,
		"You have exceeded your premium request allowance.":                                  LimitReached,
		"You exceeded your current quota, please check your plan":                            LimitReached,
		"insufficient_quota":                                                                 LimitReached,
		"Resource has been exhausted (e.g. check quota): RESOURCE_EXHAUSTED":                 LimitReached,
		"OAuth token has expired. Please obtain a new token or refresh your existing token.": NotLoggedIn,
		`401 {"type":"error","error":{"type":"authentication_error","message":"token"}}`:     NotLoggedIn,
		"unexpected status 401 Unauthorized: no bearer":                                      NotLoggedIn,
		"Not logged in · Please run /login":                                                  NotLoggedIn,
		"Invalid API key · Fix external API key":                                             NotLoggedIn,
		"prompt is too long: 210000 tokens > 200000 maximum":                                 ContextFull,
		"Could not process image":                                                            Refused,
		"the file limit of 401 lines":                                                        Refused,
		"max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens":   Refused,
	} {
		for _, from := range []FailureKind{UnknownFailure, Refused} {
			if got := Sharpened(&Failure{Kind: from, Reason: text}).Kind; got != want && !(want == Refused && got == from) {
				t.Errorf("%s %q means %s, want %s", from, text, got, want)
			}
		}
		if got := Sharpened(&Failure{Kind: Crashed, Reason: text}).Kind; got != Crashed {
			t.Errorf("a crash with %q means %s", text, got)
		}
	}
}
