package turn

import (
	"strings"
	"testing"
	"time"

	"ductor/cli"
)

// An answer is cut at 10 MB and says so, also if its whole text comes after the deltas.
func TestAnAnswerIsBounded(t *testing.T) {
	var answer cli.Answer
	em := NewEmitter("fake", time.Now, answer.Add)
	chunk := strings.Repeat("ä", 1<<19) // a character of two bytes must not be split
	for range 12 {
		em.Text("1", "x"+chunk)
	}
	em.FullText("1", strings.Repeat("x"+chunk, 12))
	em.Text("2", "more")
	em.FullText("2", "more of it")
	em.Finish(cli.Result{})
	got := answer.String()
	if got != em.Answer() {
		t.Error("the events do not make the answer")
	}
	if len(got) < MaxAnswer-1 || len(got) > MaxAnswer+len(answerCut) || !strings.HasSuffix(got, answerCut) {
		t.Errorf("%d bytes that end in %q", len(got), got[len(got)-80:])
	}
	if strings.ToValidUTF8(got, "?") != got {
		t.Error("a character is cut in two")
	}
}
