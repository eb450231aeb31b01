package claude

import (
	"maps"
	"slices"
	"strings"
	"time"

	"ductor/cli"
)

// rateLimit is Claude's report about the usage limits of the user's plan. Claude sends it after a response of the API
// changed a limit. The top-level fields describe the most restrictive limit. Older versions report only this limit.
type rateLimit struct {
	Status string `json:"status"`        // allowed, allowed_warning, rejected
	Type   string `json:"rateLimitType"` // five_hour, seven_day, seven_day_opus and so on
	planWindow
	Windows map[string]planWindow `json:"unifiedWindows"`
}

type planWindow struct {
	Used     *float64 `json:"utilization"` // from 0 to 1; at the top level, Claude sets it only if Status is a warning
	ResetsAt float64  `json:"resetsAt"`    // seconds since 1970
}

func (w planWindow) resets() time.Time { return cli.UnixTime(w.ResetsAt) }

// windowOf returns the time window of a limit. Its Span is 0 for a limit without a window, such as the limit of usage
// that is paid in addition to the plan.
func windowOf(limit string) (w cli.LimitWindow) {
	for name, span := range map[string]time.Duration{"five_hour": 5 * time.Hour, "seven_day": 7 * 24 * time.Hour} {
		if of, ok := strings.CutPrefix(limit, name); ok {
			w.Span, w.Of = span, strings.TrimSpace(strings.ReplaceAll(of, "_", " "))
		}
	}
	return w
}

// limits returns the reported limits that have a time window.
func (r *rateLimit) limits() (all []cli.PlanLimit) {
	windows := map[string]planWindow{}
	maps.Copy(windows, r.Windows)
	if r.Status == "rejected" {
		r.Used = new(1.0)
	}
	if r.Used != nil {
		windows[r.Type] = r.planWindow
	}
	for _, name := range slices.Sorted(maps.Keys(windows)) {
		if w, of := windows[name], windowOf(name); of.Span > 0 && w.Used != nil {
			all = append(all, cli.PlanLimit{Window: of, Used: *w.Used, Resets: w.resets()})
		}
	}
	return all
}

func (p *parser) rateLimit(r *rateLimit) {
	if r == nil {
		return
	}
	limits, reset := r.limits(), r.resets()
	if len(limits) > 0 {
		p.flow.em.Pass(cli.LimitsReported{AccountLimits: cli.AccountLimits{Limits: limits}})
	}
	if r.Status == "rejected" {
		p.trouble.resetAt = reset
	}
	if r.Status == "rejected" || r.Status == "allowed_warning" && len(limits) == 0 {
		p.flow.em.Pass(cli.RateLimited{ResetAt: reset})
	}
}
