package codex

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/turn"
)

// The first notices are as Codex 0.171.0 sends them.
func TestTheLimitsOfThePlan(t *testing.T) {
	limit := func(span time.Duration, of string, used float64, reset int64) cli.PlanLimit {
		l := cli.PlanLimit{Window: cli.LimitWindow{Span: span, Of: of}, Used: used}
		if reset > 0 {
			l.Resets = time.Unix(reset, 0)
		}
		return l
	}
	const noMore = `"normalModelSlug":null,"credits":null,"individualLimit":null,"spendControlReached":null,` +
		`"planType":null,"rateLimitReachedType":null}`
	const hours, days = 5 * time.Hour, 7 * 24 * time.Hour
	reports := func(limits ...cli.PlanLimit) cli.Event {
		return cli.LimitsReported{AccountLimits: cli.AccountLimits{Limits: limits}}
	}
	var got, want []cli.Event
	out := turn.NewEmitter(Agent, time.Now, func(ev cli.Event) { got = append(got, ev) })
	p := newLiveParser(out, cli.Request{})
	p.limit.model = "gpt-5.5-sonic"
	for _, tt := range []struct {
		limits string
		want   []cli.Event
	}{
		{`{"limitId":"codex","limitName":null,"primary":{"usedPercent":83.5,"windowDurationMins":300,` +
			`"resetsAt":1796068518},"secondary":{"usedPercent":38,"windowDurationMins":10080,"resetsAt":1796168518},` +
			noMore, []cli.Event{reports(limit(hours, "", 0.835, 1796068518), limit(days, "", 0.38, 1796168518))}},
		{`{"limitId":"codex_other","limitName":"gpt-5.5-sonic","primary":{"usedPercent":12,"windowDurationMins":60,` +
			`"resetsAt":1796068518},"secondary":null,` + noMore,
			[]cli.Event{reports(limit(time.Hour, "gpt-5.5-sonic", 0.12, 1796068518))}},
		{`{"limitId":"codex","limitName":null,"primary":null,"secondary":null,` + noMore, nil},
		{`{"limitName":"another","primary":{"usedPercent":100,"resetsAt":1796968518}}`, // it does not limit the turn
			[]cli.Event{reports(limit(0, "another", 1, 1796968518))}},
		{`{"primary":{"usedPercent":100}}`, []cli.Event{reports(limit(0, "", 1, 0)), cli.RateLimited{}}},
		{`{"primary":{"usedPercent":100}}`, []cli.Event{reports(limit(0, "", 1, 0))}}, // it warns once
		{`{"limitName":"GPT-5.5-Sonic","primary":{"usedPercent":100,"resetsAt":1796068510}}`,
			[]cli.Event{reports(limit(0, "GPT-5.5-Sonic", 1, 1796068510)),
				cli.RateLimited{ResetAt: time.Unix(1796068510, 0)}}},
		{`{"primary":{"usedPercent":100,"resetsAt":1796068518}}`,
			[]cli.Event{reports(limit(0, "", 1, 1796068518)), cli.RateLimited{ResetAt: time.Unix(1796068518, 0)}}},
		{`{"secondary":{"usedPercent":101,"windowDurationMins":1e300,"resetsAt":1e300}}`, // it warns once
			[]cli.Event{reports(limit(1e6*time.Minute, "", 1.01, 0))}},
		{`{"primary":{"usedPercent":-1,"windowDurationMins":-5,"resetsAt":-5}}`,
			[]cli.Event{reports(limit(0, "", -0.01, 0))}},
		{`{}`, nil},
	} {
		params := json.RawMessage(`{"rateLimits":` + tt.limits + `}`)
		tell(p, rpc.Message{Method: "account/rateLimits/updated", Params: params})
		want = append(want, tt.want...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if !p.limit.ends.Equal(time.Unix(1796068518, 0)) {
		t.Errorf("the reached limit ends at %s", p.limit.ends)
	}
}
