package render

import (
	"fmt"
	"strings"
	"time"

	"ductor/lang"
)

// NameLimit is how much of a name is shown, in UTF-16 units.
const NameLimit = 28

// ChangeSign is the one sign of a change of a file.
func ChangeSign[K ~string](kind K) string {
	switch kind {
	case "add":
		return "➕"
	case "delete":
		return "➖"
	}
	return "✎"
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

// ReadSpan reads a duration that a user wrote: "45m", "2 hours".
func ReadSpan(text string) (time.Duration, error) {
	plain := strings.NewReplacer(" ", "", "minutes", "m", "minute", "m", "mins", "m", "min", "m", "hours", "h", "hour", "h", "seconds", "s")
	return time.ParseDuration(plain.Replace(strings.ToLower(text)))
}

// AgentName is the name of an agent as texts use it: "Claude", or "the agent" for none.
func AgentName[Agent ~string](p lang.Printer, a Agent) string {
	if a == "" {
		return p.Text("common.the-agent")
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
func ChoiceText[Agent, Model, Effort ~string](p lang.Printer, agent Agent, model Model, effort Effort) string {
	if agent == "" {
		return p.Text("common.no-agent")
	}
	parts := []string{AgentName(p, agent), string(model)}
	if model == "" {
		parts[1] = p.Text("common.default-model")
	}
	if effort != "" {
		parts = append(parts, string(effort))
	}
	return strings.Join(parts, " · ")
}

// ModelText names an agent and, where one is chosen, its model: "Claude", "Claude · opus".
func ModelText[Agent, Model ~string](p lang.Printer, agent Agent, model Model) string {
	if model == "" {
		return AgentName(p, agent)
	}
	return ChoiceText(p, agent, model, "")
}

// BypassLeft says how long a bypass lasts: "bypass, 12 min left". Empty where there is none any more.
func BypassLeft(p lang.Printer, until, now time.Time) string {
	left := until.Sub(now)
	switch {
	case until.IsZero() || left <= 0:
		return ""
	case left < time.Minute:
		return p.Text("common.bypass-ends")
	}
	return p.Text("common.bypass-left", p.Span(left.Truncate(time.Minute)))
}

// WithBypassLeft is a mode, and how long it lasts where that is a bypass which ends.
func WithBypassLeft[Mode ~string](p lang.Printer, mode Mode, until, now time.Time) string {
	if line := BypassLeft(p, until, now); line != "" && mode == "bypass" {
		return line
	}
	return string(mode)
}
