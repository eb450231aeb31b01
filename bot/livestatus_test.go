package bot

import (
	"strings"
	"testing"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

func TestStatusSaysWhatLives(t *testing.T) {
	id := orchestrator.ConversationID{Chat: 7}
	s := cli.SessionStatus{Conversation: id.Key()}
	s.Agent, s.Mode, s.PID, s.Memory = "codex", cli.Live, 42, 120<<20
	l := cli.Living{Sessions: []cli.SessionStatus{s}, Processes: 3, MaxProcesses: 4, Memory: 300 << 20, Waiting: 1}
	for _, tc := range []struct {
		name string
		in   orchestrator.ConversationID
		live cli.Living
		want string
	}{
		{"its own process", id, l, "Process: Codex, live, pid 42, 120 MB, idle\nAgents ready or working: 3 of at most 4, 300 MB, 1 waiting for a free place"},
		{"no process here", orchestrator.ConversationID{Chat: 8}, l, "Agents ready or working: 3 of at most 4, 300 MB, 1 waiting for a free place"},
		{"nothing known", id, cli.Living{}, ""},
		{"an agent is left alone, and no process lives", id, cli.Living{Resting: []*cli.Failure{{Kind: cli.NotInstalled, Agent: "codex"}}},
			(&cli.Failure{Kind: cli.NotInstalled, Agent: "codex"}).Sentence(lang.Printer{})},
	} {
		if got := strings.Join(livingLines(lang.Printer{}, tc.in, tc.live), "\n"); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
