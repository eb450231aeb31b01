package bot

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/orchestrator"
)

func TestSessionsList(t *testing.T) {
	inbound(t, func(t *testing.T, r *inboundRig) {
		r.desk.sessions = []orchestrator.Session{
			{ID: "s1", Title: "Fix the tests", Messages: 3, CostUSD: 0.42, Tokens: 12345, Dir: "/home/u", Used: time.Now().Add(-3 * time.Hour)},
			{ID: "s2", Messages: 1, Dir: "/src", Created: time.Now().Add(-50 * time.Hour)},
		}
		r.desk.status.Session = r.desk.sessions[0]
		r.send(r.text("/sessions"))
		synctest.Wait()
		l := r.journal.lastNotice(t)
		for _, want := range []string{"1. Fix the tests ✓", "3 h 0 min ago, 3 messages, $0.42, 12.3k tokens, /home/u", "2. (without words)", "2 days ago, 1 message, /src"} {
			if !strings.Contains(l.Text, want) {
				t.Errorf("%q is not in\n%s", want, l.Text)
			}
		}
		r.send(r.press(l.Keyboard[1][0].Data, 9))
		synctest.Wait()
		if calls := r.desk.Calls(); !slices.Equal(calls, []string{"resume 7/0 s2"}) || !strings.Contains(r.voice.lastAnswer(), "(without words)") {
			t.Errorf("calls %q, answer %q", calls, r.voice.lastAnswer())
		}
	})
}
