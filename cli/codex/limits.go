package codex

import (
	"time"

	"ductor/cli"
)

type rateWindow struct {
	Used     float64 `json:"usedPercent"`
	Minutes  float64 `json:"windowDurationMins"` // 0 if Codex does not report it
	ResetsAt float64 `json:"resetsAt"`           // seconds since 1970
}

func (w rateWindow) limit(of string) cli.PlanLimit {
	return cli.PlanLimit{
		Window: cli.LimitWindow{Span: time.Duration(min(max(w.Minutes, 0), maxMinutes)) * time.Minute, Of: of},
		Used:   w.Used / 100, Resets: cli.UnixTime(w.ResetsAt),
	}
}

const maxMinutes = 1e6 // of a window; no window is so long

// rateLimits handles the limits that Codex reports for the plan, or for the models of a limit with a name.
func (p *liveParser) rateLimits(of string, windows ...*rateWindow) {
	var reported cli.LimitsReported
	for _, w := range windows {
		if w != nil {
			reported.Limits = append(reported.Limits, w.limit(of))
		}
	}
	if len(reported.Limits) == 0 {
		return
	}
	p.out.Pass(reported)
	for _, l := range reported.Limits {
		if l.Used >= 1 && (p.resetAt.IsZero() || l.Resets.After(p.resetAt)) {
			p.resetAt = l.Resets
			p.out.Pass(cli.RateLimited{ResetAt: l.Resets})
		}
	}
}
