package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ductor/internal/config"
)

// metricsOf fetches ductor's metrics. It returns the labels of each, sorted, and the whole text.
func metricsOf(t *testing.T, addr string) (labels map[string][]string, text string) {
	t.Helper()
	r, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	raw, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%v: %d %s", err, r.StatusCode, raw)
	}
	labels = map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(string(raw), -1) {
		labels[m[1]] = []string{}
	}
	label := regexp.MustCompile(`(\w+)="`)
	for _, m := range regexp.MustCompile(`(?m)^(\w+)\{([^}]*)\}`).FindAllStringSubmatch(string(raw), -1) {
		name := m[1]
		for _, end := range []string{"_bucket", "_sum", "_count"} {
			if of, is := strings.CutSuffix(name, end); is && labels[of] != nil {
				name = of
			}
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if l[1] != "le" && !slices.Contains(labels[name], l[1]) {
				labels[name] = append(labels[name], l[1])
			}
		}
		slices.Sort(labels[name])
	}
	return labels, string(raw)
}

// After a turn, ductor serves exactly the metrics of docs/metrics.md with their labels, and no content.
func TestTheMetricsAreThoseOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	word := regexp.MustCompile("`(\\w+)`")
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|([^|]*)\\|").FindAllStringSubmatch(string(page), -1) {
		want[row[1]] = []string{}
		for _, l := range word.FindAllStringSubmatch(row[2], -1) {
			want[row[1]] = append(want[row[1]], l[1])
		}
		slices.Sort(want[row[1]])
	}
	addr := unusedAddr(t)
	town := newTown(t, func(cfg *config.Config) { cfg.Health.Listen, cfg.Permissions.Mode = addr, "bypass" })
	town.say(`a private question [[text "a private answer"]] [[usage in=11 out=7]]`)
	town.awaitDone(1)
	got, text := metricsOf(t, addr)
	for name, labels := range want {
		if have, ok := got[name]; !ok || !slices.Equal(have, labels) {
			t.Errorf("docs/metrics.md lists %s%v, and ductor shows %v (%t)", name, labels, have, ok)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("docs/metrics.md does not list %s%v", name, got[name])
		}
	}
	for _, line := range []string{
		`ductor_turns_total{ductor_outcome="stop",gen_ai_agent_name="claude"} 1`, `ductor_up{part="polling"} 1`,
		`ductor_telegram_calls_total{method="getMe",result="ok"} 1`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("there is no line %s in\n%s", line, text)
		}
	}
	text = regexp.MustCompile(`le="[^"]*"`).ReplaceAllString(text, "")
	for _, hidden := range []string{"private", town.srv.Token(), fmt.Sprintf("=\"%d\"", owner)} {
		if strings.Contains(text, hidden) {
			t.Errorf("the metrics have %q", hidden)
		}
	}
}
