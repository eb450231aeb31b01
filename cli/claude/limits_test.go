package claude

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
)

// The first lines are those of Claude Code 2.1.332, with a subscription. Older versions report only the nearest limit.
func TestTheLimitsOfThePlan(t *testing.T) {
	const hours, days = 5 * time.Hour, 7 * 24 * time.Hour
	first, second := time.Unix(1795967692, 0), time.Unix(1796212492, 0)
	limit := func(span time.Duration, of string, used float64, reset time.Time) cli.PlanLimit {
		return cli.PlanLimit{Window: cli.LimitWindow{Span: span, Of: of}, Used: used, Resets: reset}
	}
	for _, tt := range []struct {
		line string
		want []cli.PlanLimit
		warn *cli.RateLimited
	}{
		{`{"isUsingOverage":false,"overageStatus":"rejected","rateLimitType":"five_hour","resetsAt":1795967692,` +
			`"status":"allowed_warning","surpassedThreshold":0.75,"unifiedWindows":{"five_hour":{` +
			`"resetsAt":1795967692,"status":"allowed_warning","surpassedThreshold":0.75,"utilization":0.83},` +
			`"seven_day":{"resetsAt":1796212492,"status":"allowed","utilization":0.38}},"utilization":0.83}`,
			[]cli.PlanLimit{limit(hours, "", 0.83, first), limit(days, "", 0.38, second)}, nil},
		{`{"isUsingOverage":false,"overageStatus":"rejected","rateLimitType":"five_hour","resetsAt":1795967692,` +
			`"status":"allowed","unifiedWindows":{"five_hour":{"resetsAt":1795967692,"status":"allowed",` +
			`"utilization":0.21},"seven_day":{"resetsAt":1796212492,"status":"allowed","utilization":0.38}}}`,
			[]cli.PlanLimit{limit(hours, "", 0.21, first), limit(days, "", 0.38, second)}, nil},
		{`{"isUsingOverage":false,"overageStatus":"rejected","rateLimitType":"five_hour","resetsAt":1795967692,` +
			`"status":"rejected","unifiedWindows":{"five_hour":{"resetsAt":1795967692,"status":"rejected",` +
			`"utilization":1},"seven_day_overage_included":{"resetsAt":1796212492,"utilization":0.38}}}`,
			[]cli.PlanLimit{limit(hours, "", 1, first), limit(days, "overage included", 0.38, second)},
			&cli.RateLimited{ResetAt: first}},
		{`{"status":"allowed_warning","rateLimitType":"seven_day_opus","resetsAt":1796212492,"utilization":0.9}`,
			[]cli.PlanLimit{limit(days, "opus", 0.9, second)}, nil},
		{`{"status":"rejected","rateLimitType":"five_hour","resetsAt":1795967692}`,
			[]cli.PlanLimit{limit(hours, "", 1, first)}, &cli.RateLimited{ResetAt: first}},
		{`{"status":"allowed_warning","rateLimitType":"overage","utilization":0.9}`, nil, &cli.RateLimited{}},
		{`{"status":"allowed","unifiedWindows":{"five_hour":{"utilization":"x","resetsAt":1e300}}}`,
			[]cli.PlanLimit{limit(hours, "", 0, time.Time{})}, nil},
		{`{"status":"allowed","unifiedWindows":[1],"utilization":{},"resetsAt":"soon"}`, nil, nil},
		{`{"status":"allowed"}`, nil, nil}, {`null`, nil, nil}, {`7`, nil, nil},
	} {
		want := []cli.Event{}
		if len(tt.want) > 0 {
			want = append(want, cli.LimitsReported{AccountLimits: cli.AccountLimits{Limits: tt.want}})
		}
		if tt.warn != nil {
			want = append(want, *tt.warn)
		}
		events, _, _ := run(t, newMemory(), nil, initLine,
			`{"type":"rate_limit_event","rate_limit_info":`+tt.line+`,"session_id":"S"}`, doneLine)
		if diff := cmp.Diff(want, append([]cli.Event{}, events[2:len(events)-1]...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
	}
}
