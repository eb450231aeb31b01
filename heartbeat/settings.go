package heartbeat

import (
	"strings"
	"time"

	"ductor/orchestrator"
)

// JobSettings configures a scheduled job.
type JobSettings struct {
	Enabled bool                        `toml:"enabled" default:"true"`
	Prompt  string                      `toml:"prompt"`
	In      orchestrator.ConversationID `toml:",inline"` // zero means the private chat of the user who set up the bot
	orchestrator.JobTiming
	orchestrator.JobTurn
}

// Check implements config.checker.
func (s JobSettings) Check(problem func(key, format string, args ...any)) {
	if strings.TrimSpace(s.Schedule) == "" {
		problem("schedule", `a job needs a schedule, such as "every weekday at 8:30"`)
	}
	if strings.TrimSpace(s.Prompt) == "" {
		problem("prompt", "a job needs a prompt")
	}
}

// Settings configures the proactive prompt.
type Settings struct {
	Enabled bool                        `toml:"enabled"`
	Every   time.Duration               `toml:"every" default:"1h" check:"1m..168h"`
	Prompt  string                      `toml:"prompt" default:"Look whether there is anything that I should know."`
	OKWord  string                      `toml:"ok_word" default:"HEARTBEAT_OK"`
	Session string                      `toml:"session" default:"own" check:"own|shared"`
	In      orchestrator.ConversationID `toml:",inline"` // zero means the private chat of the user who set up the bot
	Rights  orchestrator.Rights         `toml:",inline"`
	orchestrator.QuietHours
}

// Check implements config.checker.
func (s Settings) Check(problem func(key, format string, args ...any)) {
	if strings.TrimSpace(s.Prompt) == "" {
		problem("prompt", "is empty; write what the agent is asked")
	}
	if strings.TrimSpace(s.OKWord) == "" {
		problem("ok_word", "is empty; the agent needs a word to say that there is nothing")
	}
}
