package codex

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
)

// This logs the time from the second prompt to its first text, live and one-shot. It fails only for a wrong answer.
func TestSecondTurnLatency(t *testing.T) {
	realagent.LongOnly(t)
	p, dir, _ := real(t)
	const rounds = 3
	first := func(s cli.Session, req cli.Request) (time.Duration, cli.Result) {
		began, seen := time.Now(), time.Duration(0)
		var result cli.Result
		s.Turn(t.Context(), req, func(ev cli.Event) {
			switch ev := ev.(type) {
			case cli.TextDelta:
				if seen == 0 {
					seen = time.Since(began)
				}
			case cli.Result:
				result = ev
			}
		})
		return seen, result
	}
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		req := inDir(dir, "a", "[[text ok]]")
		s, err := p.Open(t.Context(), mode, req)
		if err != nil {
			t.Fatal(err)
		}
		var took []time.Duration
		for i := range rounds + 1 {
			req.Turn = cli.TurnID(string(mode) + strconv.Itoa(i))
			d, r := first(s, req)
			if r.Err != nil || r.Text != "ok" {
				t.Fatalf("%s: %q, %v", mode, r.Text, r.Err)
			}
			req.Resume = r.AgentSessionID
			if i > 0 {
				took = append(took, d)
			}
		}
		clitest.Close(t, s)
		slices.Sort(took)
		t.Logf("%s: later turns, prompt to first text: median %s of %v", mode, took[rounds/2].Round(time.Millisecond), took)
	}
}
