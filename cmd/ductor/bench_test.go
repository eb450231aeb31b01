package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"ductor/cli/clitest"
	"ductor/internal/sim/telegram"
)

func TestPercentiles(t *testing.T) {
	var s samples
	for i := range 100 {
		s = append(s, time.Duration(100-i)*time.Millisecond)
	}
	for p, want := range map[int]time.Duration{0: 1, 1: 1, 50: 50, 95: 95, 100: 100} {
		if got := s.at(p); got != want*time.Millisecond {
			t.Errorf("p%d of 1..100 ms is %s", p, got)
		}
	}
	if samples(nil).at(50) != 0 || samples(nil).within("nothing", time.Second).met {
		t.Error("no samples count as a target that was met")
	}
}

func TestLagIsFromWritingADeltaToShowingAllOfIt(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	call := func(ms int, text string) telegram.Call {
		return telegram.Call{Done: at(ms), Params: map[string]string{"text": text}}
	}
	deltas := []string{"one ", "two ", "three ", "four"}
	written := []time.Time{at(0), at(10), at(20), at(30)}
	got := lags(deltas, written, []telegram.Call{
		{Done: at(1)}, // a reaction has no text
		call(5, "one"), call(100, "one two th\n\n💭 thinking…"), call(200, "one two three"),
	})
	want := samples{5 * time.Millisecond, 90 * time.Millisecond, 180 * time.Millisecond}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v: the last delta was never shown", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("delta %d: got %s, want %s", i, got[i], want[i])
		}
	}
}

func TestAWholeAnswerIsKnownByItsFooter(t *testing.T) {
	for text, want := range map[string]bool{
		"Hello.\n\nsonnet · 0.1s":         true,
		"Hello.":                          false,
		"Hello.\n\n✓ Bash echo · 0.1s":    false,
		"sonnet · 0.1s\n\nand it goes on": false,
		"":                                false,
	} {
		if whole(text) != want {
			t.Errorf("whole(%q) is not %t", text, want)
		}
	}
}

// The benchmarks of what must arrive, with ductor as a process of its own that is killed and started again.
func TestBenchOfWhatMustArrive(t *testing.T) {
	b := &bench{self: clitest.Program(t), scratch: t.TempDir(), env: []string{beDuctor + "=1"}, only: regexp.MustCompile("^down$")}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	figures := b.stage(ctx, []group{{"down", downFigures}, {"idle", idleFigures}})
	if len(figures) != 1 {
		t.Fatalf("asked for one figure, got %+v", figures)
	}
	var out bytes.Buffer
	figures[0].print(&out)
	if !figures[0].law || !figures[0].met {
		t.Errorf("%s", out.String())
	}
	if line := out.String(); !strings.HasSuffix(line, "| met\n") && figures[0].met {
		t.Errorf("the table says %q", line)
	}
}
