package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// NameLimit is how much of a name is shown, in UTF-16 units.
const NameLimit = 28

// Elapsed is "<0.1 s", "0.4 s", "12 s", "3 min 5 s" or "2 h 10 min".
func Elapsed(d time.Duration) string {
	switch {
	case d < 100*time.Millisecond:
		return "<0.1 s"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// DiffCount is " +3 −1": how many lines a diff adds and removes. Empty for none.
func DiffCount(diff string) string {
	added, removed := 0, 0
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		case line[0] == '+':
			added++
		case line[0] == '-':
			removed++
		}
	}
	if added+removed == 0 {
		return ""
	}
	return fmt.Sprintf(" +%d −%d", added, removed)
}

// Count says "1 message" or "3 messages".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// RoundDuration is a duration in its largest units: "40 s", "12 min", "3 h 5 min", "4 days".
func RoundDuration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(max(d, 0).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// Span is a duration that a user chose: "15 min", "2 h", "1 h 30 min".
func Span(d time.Duration) string {
	var parts []string
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if n := d / unit.of; n > 0 {
			parts, d = append(parts, fmt.Sprintf("%d %s", n, unit.name)), d%unit.of
		}
	}
	return strings.Join(parts, " ")
}

// ReadSpan reads a duration that a user wrote: "45m", "2 hours".
func ReadSpan(text string) (time.Duration, error) {
	plain := strings.NewReplacer(" ", "", "minutes", "m", "minute", "m", "mins", "m", "min", "m", "hours", "h", "hour", "h", "seconds", "s")
	return time.ParseDuration(plain.Replace(strings.ToLower(text)))
}

// AgentName is the name of an agent as texts use it: "Claude", or "the agent" for none.
func AgentName[Agent ~string](a Agent) string {
	if a == "" {
		return "the agent"
	}
	return strings.ToUpper(string(a[:1])) + ShortenPlain(OneLine(string(a[1:])), NameLimit)
}

// Marked is the label of a choice; a tick marks the current one.
func Marked(text string, current bool) string {
	if current {
		return "✓ " + text
	}
	return text
}

// ChoiceText says which agent answers, with which model and effort.
func ChoiceText[Agent, Model, Effort ~string](agent Agent, model Model, effort Effort) string {
	if agent == "" {
		return "No agent can be used; /model says why"
	}
	s := string(agent) + " · "
	if model == "" {
		s += "its default model"
	} else {
		s += string(model)
	}
	if effort != "" {
		s += " · " + string(effort)
	}
	return s
}

// BypassLeft says how long a bypass lasts: "bypass, 12 min left". Empty where there is none any more.
func BypassLeft(until, now time.Time) string {
	left := until.Sub(now)
	switch {
	case until.IsZero() || left <= 0:
		return ""
	case left < time.Minute:
		return "bypass, less than a minute left"
	}
	return "bypass, " + Span(left.Truncate(time.Minute)) + " left"
}

// WithBypassLeft is a mode, and how long it lasts where that is a bypass which ends.
func WithBypassLeft[Mode ~string](mode Mode, until, now time.Time) string {
	if line := BypassLeft(until, now); line != "" && mode == "bypass" {
		return line
	}
	return string(mode)
}

// MovedNote begins a message that goes to the chat because its topic is gone.
const MovedNote = "(The topic is gone, so this comes here.)\n\n"

// StaleButton answers a press of a button that can do nothing any more, or that ductor did not make.
const StaleButton = "This button no longer means anything."
