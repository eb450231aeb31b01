package cli

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"ductor/lang"
)

// PlanLimit is a usage limit of an account's plan. It covers a window of time, such as five hours or a week.
type PlanLimit struct {
	Window LimitWindow `json:"window"`
	Used   float64     `json:"used"`            // used share, from 0 to 1
	Resets time.Time   `json:"resets,omitzero"` // when the window ends; zero if the agent does not report it
	Seen   time.Time   `json:"seen"`            // when the agent reported this limit
}

// LimitWindow identifies a limit of an account.
type LimitWindow struct {
	Span time.Duration `json:"span_ns,omitempty"` // length of the window; 0 if unknown
	Of   string        `json:"of,omitempty"`      // the models that the limit covers; empty means all models
}

// AccountLimits are the plan limits of an account, the shortest window first.
type AccountLimits struct {
	Agent   Agent       `json:"agent,omitempty"`
	Account Account     `json:"account,omitempty"`
	Limits  []PlanLimit `json:"limits,omitempty"`
}

// NearLimit is the used share at which ductor warns about a limit.
const NearLimit = 0.8

// Bounds for the limits in an agent's report. Real agents report two or three limits.
const (
	mostLimits    = 6
	longestWindow = 366 * day
	longestModels = 30              // maximum length of LimitWindow.Of, in bytes
	resetJitter   = 2 * time.Minute // if two reported reset times differ by less, they mean the same reset
)

const day, week = 24 * time.Hour, 7 * 24 * time.Hour

// Merge returns the limits after a new report of the agent. If the report lacks a limit or a reset time that an earlier
// report contained, Merge uses the earlier value. Merge drops limits with implausible values, and limits whose window
// has ended.
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
			// A slightly different reset time must not look like a new window.
			l.Resets = before[i].Resets
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

// over reports whether the limit's window has ended. If the reset time is unknown, over assumes that the window started
// when the agent reported the limit. A window of unknown length counts as one day.
func (l PlanLimit) over(now time.Time) bool {
	return !now.Before(cmp.Or(l.Resets, l.Seen.Add(cmp.Or(l.Window.Span, day))))
}

// Current returns the limits whose windows have not ended.
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

// Near returns the limits that are used up or nearly used up.
func (a AccountLimits) Near(now time.Time) AccountLimits {
	a = a.Current(now)
	a.Limits = slices.DeleteFunc(a.Limits, func(l PlanLimit) bool { return l.Used < NearLimit })
	return a
}

// Reached reports whether a limit stops all use of the account. It ignores limits that cover only some models.
func (a AccountLimits) Reached(now time.Time) bool {
	return slices.ContainsFunc(a.Current(now).Limits, func(l PlanLimit) bool {
		return l.Used >= 1 && l.Window.Of == ""
	})
}

// Reset returns the time at which the window of the most used limit ends. It considers only limits that are nearly used
// up (see Near) and that cover all models. It returns zero if there is no such limit, or if the time is unknown.
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
// are no limits.
func (a AccountLimits) Text(p lang.Printer, now time.Time) string {
	if len(a.Limits) == 0 {
		return ""
	}
	return p.Text("common.because", a.Account.NameOf(p, a.Agent), a.Shares(p, now))
}

// Shares returns the same text as Text, but without the account.
func (a AccountLimits) Shares(p lang.Printer, now time.Time) string {
	var parts []string
	for _, l := range a.Limits {
		parts = append(parts, l.text(p, now))
	}
	return strings.Join(parts, " · ")
}

// LimitLines returns one line for each account with its current limits. Each line ends with a line break.
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
	Fill   Fill          `json:"fill,omitzero"`   // how full the session's context is
	Limits AccountLimits `json:"limits,omitzero"` // only limits that are near; see AccountLimits.Near
}
