package handoff

import (
	"testing"

	"ductor/cli"
	"ductor/orchestrator"
)

// A prompt that contains an entry of the session tells its agent of all others, and then the agent knows all of them.
func TestAQuotedEntryIsNotToldAgain(t *testing.T) {
	var entries []orchestrator.Turn
	for n := range int64(3) {
		e := turn("question", "advice")
		e.ID, e.Entry.Number, e.Entry.Kind = cli.TurnID("e"+string(rune(49+n))), n+1, orchestrator.ConsultationEntry
		entries = append(entries, e)
	}
	prompt := turn("Here is the advice", "")
	prompt.Prompt.Quotes = "e2"
	k := NewKnowledge(nil, prompt, orchestrator.AgentSession{})
	missed := k.Missed(entries)
	if len(missed) != 2 || missed[0].ID != "e1" || missed[1].ID != "e3" || k.UpTo() != 3 {
		t.Errorf("told of %+v, up to %d", missed, k.UpTo())
	}
}
