package usage

import (
	"bytes"
	"flag"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/bot/picture"
	"ductor/lang"
	"ductor/orchestrator"
)

var keep = flag.String("keep", "", "writes the pictures to this directory")

// used returns a month with some days without usage.
func used(now time.Time) (rows []orchestrator.UsageRow) {
	for i, cost := range []float64{0.4, 1.25, 0, 3.1, 2.2, 0, 0, 0.9, 5.42, 4.1, 0.3} {
		if cost > 0 {
			rows = append(rows, orchestrator.UsageRow{
				Name: now.AddDate(0, 0, i-10).Format(time.DateOnly), Turns: 1 + i, Tokens: int64(12_000 * cost), CostUSD: cost, Took: time.Duration(cost * float64(time.Minute)),
			})
		}
	}
	return rows
}

func TestPlotsAreAsWideAsAPhone(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.Local)
	s := &Screen{Now: func() time.Time { return now }}
	models := []orchestrator.UsageRow{
		{Name: "claude-opus-4-8", Turns: 41, Tokens: 912_000, CostUSD: 12.4, Took: time.Hour}, {Name: "gpt-5.2-codex", Turns: 12, Tokens: 310_000, CostUSD: 4.07, Took: 20 * time.Minute},
		{Name: "a-model-whose-name-is-far-too-long-for-the-width-of-a-phone", Turns: 2, Tokens: 1000, Took: time.Second},
	}
	for name, p := range map[string]plot{
		"days":   s.plotOf(lang.Printer{}, month, orchestrator.UsageByDay, used(now)),
		"today":  s.plotOf(lang.Printer{}, today, orchestrator.UsageByDay, used(now)[8:]),
		"year":   s.plotOf(lang.Printer{}, year, orchestrator.UsageByDay, used(now)),
		"models": s.plotOf(lang.Printer{}, month, orchestrator.UsageByModel, models),
	} {
		for shade, theme := range map[string]picture.Theme{"light": picture.Light, "dark": picture.Dark} {
			drawn, err := p.draw(theme)
			if err != nil {
				t.Fatal(err)
			}
			if *keep != "" {
				if err := os.WriteFile(filepath.Join(*keep, fmt.Sprintf("usage-%s-%s.png", name, shade)), drawn, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := png.DecodeConfig(bytes.NewReader(drawn))
			if err != nil || got.Width < 600 || got.Width > 1280 || got.Height > 2*got.Width {
				t.Errorf("the plot of %s has %d × %d pixels: %v", name, got.Width, got.Height, err)
			}
		}
	}
}

// A plot of days has every day of the period in order, each with its usage.
func TestAPlotHasEveryDay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, time.Month(rapid.IntRange(1, 12).Draw(t, "month")), rapid.IntRange(1, 28).Draw(t, "day"), 13, 0, 0, 0, time.Local)
		s := &Screen{Now: func() time.Time { return now }}
		p := rapid.SampledFrom([]period{today, week, month, year}).Draw(t, "period")
		all := used(now)
		out := everyDay(all, s.since(p), now)
		if len(out) < 1 || out[len(out)-1].Name != now.Format(time.DateOnly) || out[0].Name != s.since(p).Format(time.DateOnly) {
			t.Fatalf("the days are %v", out)
		}
		turns := map[string]int{}
		for i, r := range out {
			turns[r.Name] = r.Turns
			if i > 0 && out[i-1].Name >= r.Name {
				t.Fatalf("%s comes after %s", r.Name, out[i-1].Name)
			}
		}
		for _, r := range all {
			if n, there := turns[r.Name]; there && n != r.Turns {
				t.Fatalf("%s has %d turns, want %d", r.Name, n, r.Turns)
			}
		}
	})
}

func TestDaysAreThoseOfTheLanguage(t *testing.T) {
	s := &Screen{Lang: &lang.Choices{}}
	for code, want := range map[lang.Language]string{"en": "Fri 27 Nov", "de": "27.11.", "zh": "11月27日"} {
		if got := s.name(code.Printer(), "2026-11-27", orchestrator.UsageByDay); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}
