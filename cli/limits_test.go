package cli

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/lang"
)

var limitsNow = time.Date(2026, 11, 27, 16, 0, 0, 0, time.Local)

func limit(span time.Duration, used float64, reset time.Duration) PlanLimit {
	l := PlanLimit{Window: LimitWindow{Span: span}, Used: used, Seen: limitsNow}
	if reset != 0 {
		l.Resets = limitsNow.Add(reset)
	}
	return l
}

func TestLimitsInWords(t *testing.T) {
	const h = time.Hour
	opus := limit(week, 0.995, 9*day)
	opus.Window.Of = "opus"
	for _, tt := range []struct {
		account    Account
		limits     []PlanLimit
		en, de, zh string
	}{
		{"", []PlanLimit{limit(5*h, 0.61, 150*time.Minute), limit(week, 0.38, 60*h)},
			"Claude: 61 % of 5 h, resets 18:30 · 38 % of the week",
			"Claude: 61 % von 5 h, neu ab 18:30 · 38 % der Woche",
			"Claude：5 小时内已用 61%，18:30 重置 · 本周已用 38%"},
		{"work", []PlanLimit{limit(5*h, 0.79999, 150*time.Minute), limit(week, 0.8, 60*h), opus},
			"Claude (work): 79 % of 5 h, resets 18:30 · 80 % of the week, resets Mon 04:00" +
				" · 99 % of the week (opus), resets Sun 6 Dec 16:00",
			"Claude (work): 79 % von 5 h, neu ab 18:30 · 80 % der Woche, neu ab 30.11. 04:00" +
				" · 99 % der Woche (opus), neu ab 06.12. 16:00",
			"Claude（work）：5 小时内已用 79%，18:30 重置 · 本周已用 80%，11月30日 04:00 重置" +
				" · 本周已用 99%（opus），12月6日 16:00 重置"},
		{"", []PlanLimit{limit(0, 0, 0), limit(day, 1, 0), limit(30*day, 0.5, 0), limit(90*time.Minute, 0.29, 0)},
			"Claude: 0 % of the plan · 100 % of 24 h · 50 % of 30 days · 29 % of 1 h 30 min",
			"Claude: 0 % des Tarifs · 100 % von 24 h · 50 % von 30 Tage · 29 % von 1 h 30 min",
			"Claude：套餐已用 0% · 24 小时内已用 100% · 30 天内已用 50% · 1 小时 30 分钟内已用 29%"},
		{"", nil, "", "", ""},
	} {
		a := AccountLimits{Agent: "claude", Account: tt.account, Limits: tt.limits}
		for l, want := range map[lang.Language]string{"en": tt.en, "de": tt.de, "zh": tt.zh} {
			if got := a.Text(l.Printer(), limitsNow); got != want {
				t.Errorf("in %s %q,\nwant %q", l, got, want)
			}
		}
	}
}

// Whatever an agent reports, few limits are kept, their values are possible, and none is over.
func TestReportedLimitsAreBounded(t *testing.T) {
	absurd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 0.5, 1, 1.1}
	number := rapid.OneOf(rapid.Float64(), rapid.SampledFrom(absurd))
	when := rapid.OneOf(number, rapid.Float64Range(1.79e9, 1.81e9))
	report := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) PlanLimit {
		return PlanLimit{
			Window: LimitWindow{Span: time.Duration(rapid.Int64().Draw(t, "span")), Of: rapid.String().Draw(t, "of")},
			Used:   number.Draw(t, "used"), Resets: UnixTime(when.Draw(t, "resets")),
		}
	}), 0, 100)
	rapid.Check(t, func(t *rapid.T) {
		var a AccountLimits
		now := limitsNow
		for range rapid.IntRange(1, 3).Draw(t, "reports") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(10*day)).Draw(t, "later")))
			a = a.Merge(report.Draw(t, "report"), now)
			if len(a.Limits) > mostLimits {
				t.Fatalf("%d limits", len(a.Limits))
			}
			seen := map[LimitWindow]bool{}
			for _, l := range a.Limits {
				if !(l.Used >= 0 && l.Used <= 1) || l.Window.Span < 0 || l.Window.Span > longestWindow || l.over(now) ||
					len(l.Window.Of) > longestModels || l.Resets.Sub(now) > longestWindow+resetJitter ||
					seen[l.Window] {
					t.Fatalf("%+v at %s", l, now)
				}
				seen[l.Window] = true
			}
			if a.Reset(now) != (time.Time{}) && !a.Reset(now).After(now) {
				t.Fatalf("the reset %s is over at %s", a.Reset(now), now)
			}
		}
	})
}

func TestReportsAreMerged(t *testing.T) {
	const h = time.Hour
	a := AccountLimits{}.Merge([]PlanLimit{limit(week, 0.3, 60*h), limit(5*h, 0.5, 2*h)}, limitsNow)
	later := limitsNow.Add(h)
	a = a.Merge([]PlanLimit{limit(5*h, 0.9, 2*h+time.Second)}, later)
	want := []PlanLimit{limit(5*h, 0.9, 2*h), limit(week, 0.3, 60*h)} // the same window keeps its reset
	want[0].Seen = later
	if !slices.Equal(a.Limits, want) {
		t.Errorf("merged:\n%+v, want\n%+v", a.Limits, want)
	}
	reset := a.Merge([]PlanLimit{limit(5*h, 0.91, 0)}, later).Limits[0].Resets
	if !reset.Equal(limitsNow.Add(2 * h)) {
		t.Errorf("a report without a reset makes it %s", reset)
	}
	reset = a.Merge([]PlanLimit{limit(5*h, 0.1, 7*h)}, limitsNow.Add(3*h)).Limits[0].Resets
	if !reset.Equal(limitsNow.Add(7 * h)) {
		t.Errorf("the next window resets at %s", reset)
	}
	if got := a.Current(limitsNow.Add(2 * h)).Limits; len(got) != 1 || got[0].Window.Span != week {
		t.Errorf("after the reset: %+v", got)
	}
	if got := a.Current(limitsNow.Add(60*h)).Text(lang.Printer{}, limitsNow); got != "" {
		t.Errorf("after all resets: %q", got)
	}
}

func TestTheNearestLimitDeterminesTheReset(t *testing.T) {
	const h = time.Hour
	opus := limit(week, 1, 144*h)
	opus.Window.Of = "opus"
	for want, limits := range map[time.Duration][]PlanLimit{
		0:      {opus, limit(5*h, 0.79, 2*h), limit(week, 0.1, 60*h)},
		2 * h:  {limit(5*h, 0.95, 2*h), opus, limit(week, 0.9, 60*h)},
		60 * h: {limit(5*h, 1, 2*h), limit(week, 1, 60*h)},
	} {
		at := AccountLimits{Limits: limits}.Reset(limitsNow)
		if want == 0 && !at.IsZero() || want != 0 && !at.Equal(limitsNow.Add(want)) {
			t.Errorf("the reset of %+v is %s, want %s", limits, at, want)
		}
	}
}
