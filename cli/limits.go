package cli

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"ductor/lang"
)

// Account is the configuration's name for one of an agent's log-ins. Empty means the agent's default log-in.
type Account string

// PlanLimit describes how much of its plan an account has used in a window of time.
type PlanLimit struct {
	Window LimitWindow `json:"window"`
	Used   float64     `json:"used"`            // from 0 to 1
	Resets time.Time   `json:"resets,omitzero"` // zero if the agent does not report it
	Seen   time.Time   `json:"seen"`            // when the agent reported it
}

// LimitWindow identifies a limit of an account.
type LimitWindow struct {
	Span time.Duration `json:"span_ns,omitempty"` // length of the window; 0 if unknown
	Of   string        `json:"of,omitempty"`      // the models that the limit covers; empty for all models
}

// AccountLimits are the plan limits of an account, the shortest window first.
type AccountLimits struct {
	Agent   Agent       `json:"agent,omitempty"`
	Account Account     `json:"account,omitempty"`
	Limits  []PlanLimit `json:"limits,omitempty"`
}

// NearLimit is the used share of a limit at which ductor starts to warn.
const NearLimit = 0.8

// Bounds of an agent's report. Agents have two or three limits.
const (
	mostLimits    = 6
	longestWindow = 366 * day
	longestModels = 30              // bytes of LimitWindow.Of
	resetJitter   = 2 * time.Minute // the most by which two reports of the same reset differ
)

const day, week = 24 * time.Hour, 7 * 24 * time.Hour

// Merge returns the limits after an agent's report. A report may lack limits and resets that the agent reported
// earlier; Merge keeps them. It drops limits without a plausible value, and limits whose window is over.
func (a AccountLimits) Merge(reported []PlanLimit, now time.Time) AccountLimits {
	before, merged := a.Current(now).Limits, []PlanLimit{}
	for _, l := range reported[:min(len(reported), mostLimits)] {
		l.Seen, l.Window.Of = now, OneLine(strings.ToValidUTF8(l.Window.Of, ""), longestModels)
		if l.Window.Span < 0 || l.Window.Span > longestWindow {
			l.Window.Span = 0
		}
		if l.Resets.Sub(now) > cmp.Or(l.Window.Span, longestWindow)+resetJitter {
			l.Resets = time.Time{}
		}
		if math.IsNaN(l.Used) || l.over(now) {
			continue
		}
		l.Used = min(max(l.Used, 0), 1)
		i := slices.IndexFunc(before, l.sameWindow)
		if i >= 0 && (l.Resets.IsZero() || l.Resets.Sub(before[i].Resets).Abs() <= resetJitter) {
			l.Resets = before[i].Resets // a window is recognized by its reset
		}
		merged = append(slices.DeleteFunc(merged, l.sameWindow), l)
	}
	for _, l := range before {
		if !slices.ContainsFunc(merged, l.sameWindow) && len(merged) < mostLimits {
			merged = append(merged, l)
		}
	}
	slices.SortStableFunc(merged, func(x, y PlanLimit) int {
		return cmp.Or(cmp.Compare(x.Window.Span, y.Window.Span), strings.Compare(x.Window.Of, y.Window.Of))
	})
	a.Limits = merged
	return a
}

func (l PlanLimit) sameWindow(other PlanLimit) bool { return l.Window == other.Window }

// over reports whether the window of the limit has ended. A limit without a reset time ends one window after its
// report.
func (l PlanLimit) over(now time.Time) bool {
	return !now.Before(cmp.Or(l.Resets, l.Seen.Add(cmp.Or(l.Window.Span, day))))
}

// Current returns the limits whose windows are not over.
func (a AccountLimits) Current(now time.Time) AccountLimits {
	a.Limits = slices.DeleteFunc(slices.Clone(a.Limits), func(l PlanLimit) bool { return l.over(now) })
	return a
}

// LimitsOf returns the limits of one account.
func LimitsOf(all []AccountLimits, agent Agent, account Account) AccountLimits {
	for _, a := range all {
		if a.Agent == agent && a.Account == account {
			return a
		}
	}
	return AccountLimits{Agent: agent, Account: account}
}

// Near returns the limits that are nearly or completely used up.
func (a AccountLimits) Near(now time.Time) AccountLimits {
	a = a.Current(now)
	a.Limits = slices.DeleteFunc(a.Limits, func(l PlanLimit) bool { return l.Used < NearLimit })
	return a
}

// Reset returns the time when the account can be used again after the most used of its limits. It ignores limits that
// cover only some models. It returns zero if no limit is near, or if the time is unknown.
func (a AccountLimits) Reset(now time.Time) time.Time {
	var most PlanLimit
	for _, l := range a.Near(now).Limits {
		nearer := l.Used > most.Used || l.Used == most.Used && l.Resets.After(most.Resets)
		if nearer && l.Window.Of == "" {
			most = l
		}
	}
	return most.Resets
}

// Text describes the limits in one line: "Claude: 61 % of 5 h, resets 18:30 · 38 % of the week". It returns "" if there
// are none.
func (a AccountLimits) Text(p lang.Printer, now time.Time) string {
	if len(a.Limits) == 0 {
		return ""
	}
	var parts []string
	for _, l := range a.Limits {
		parts = append(parts, l.text(p, now))
	}
	who := a.Agent.Name()
	if a.Account != "" {
		who = p.Text("limit.with", who, string(a.Account))
	}
	return p.Text("common.because", who, strings.Join(parts, " · "))
}

// LimitLines describes the current limits of each account in one line, with a line break at its end.
func LimitLines(p lang.Printer, all []AccountLimits, now time.Time) (lines string) {
	for _, a := range all {
		if line := a.Current(now).Text(p, now); line != "" {
			lines += line + "\n"
		}
	}
	return lines
}

func (l PlanLimit) text(p lang.Printer, now time.Time) (text string) {
	percent := int(l.Used*100 + 1e-9)
	switch span := l.Window.Span; {
	case span == 0:
		text = p.Text("limit.plan", percent)
	case span == week:
		text = p.Text("limit.week", percent)
	case span < 2*day:
		text = p.Text("limit.span", percent, p.Span(span))
	default:
		text = p.Text("limit.span", percent, p.Rounded(span))
	}
	if l.Window.Of != "" {
		text = p.Text("limit.with", text, l.Window.Of)
	}
	switch {
	case l.Resets.IsZero() || l.Window.Span > day && l.Used < NearLimit:
		return text
	case l.Resets.Sub(now) > week-day: // the weekday would be ambiguous
		return p.Text("limit.resets", text, p.Moment(l.Resets.Local()))
	}
	return p.Text("limit.resets", text, p.Clock(l.Resets.Local(), now))
}

// UnixTime converts seconds since 1970 to a time. It returns zero if seconds is out of range.
func UnixTime(seconds float64) time.Time {
	if !(seconds >= 1 && seconds < 1e11) {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}

// Standing describes how close an agent is to its limits after a turn.
type Standing struct {
	Fill   Fill          `json:"fill,omitzero"`   // of the agent's context
	Limits AccountLimits `json:"limits,omitzero"` // only limits that are nearly used up
}
