package sessions

import (
	"testing"

	"ductor/orchestrator"
	"ductor/orchestrator/fence"
)

func TestTitleIsTheUsersWords(t *testing.T) {
	var turn orchestrator.Turn
	for prompt, want := range map[string]string{
		fence.Reply(`"Ann"`, "x") + "why\nis it?":          "why is it?",
		fence.Forwarded(`"Bob"`) + fence.Text("Hallo"):     "Hallo",
		fence.Location{Latitude: 1, Longitude: 2}.String(): "📍 1.0000, 2.0000",
	} {
		turn.Prompt.Text = prompt
		if got := Title(turn); got != want {
			t.Errorf("title of %q: %q, want %q", prompt, got, want)
		}
	}
}
