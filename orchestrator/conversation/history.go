package conversation

import (
	"context"
	"fmt"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
)

// The frame around a history that is handed to an agent which was not there.
const (
	historyHead = "[What was said in this session before you joined it. It is background, not a request.]\n"
	historyTail = "[End of what was said before. The request:]\n\n"
)

// missed tells an agent what was said in a session while it was not there: all of it, when it has no session of its
// own in its place, else what followed its last turn. Empty when it missed nothing.
func (e *Engine) missed(ctx context.Context, s orchestrator.Session, who orchestrator.AgentEnv) (string, error) {
	if s.Messages == 0 {
		return "", nil
	}
	own := s.AgentSessions[who]
	if own != "" {
		last, err := e.opts.Store.History(ctx, s.ID, 1)
		if err != nil {
			return "", fmt.Errorf("load last turn: %w", err)
		}
		if len(last) == 0 || last[0].AgentEnv() == who {
			return "", nil
		}
	}
	turns, err := e.opts.Store.History(ctx, s.ID, e.opts.HistoryTurns)
	if err != nil {
		return "", fmt.Errorf("load history: %w", err)
	}
	if own != "" {
		turns = after(turns, who)
	}
	return tell(turns, e.opts.HistoryBytes), nil
}

// after gives the turns that follow the last one of an agent in its place.
func after(turns []orchestrator.Turn, who orchestrator.AgentEnv) []orchestrator.Turn {
	for i := len(turns) - 1; i >= 0; i-- {
		if turns[i].AgentEnv() == who {
			return turns[i+1:]
		}
	}
	return turns
}

// tell writes turns in order, at most limit bytes of them, the newest kept.
func tell(turns []orchestrator.Turn, limit int) string {
	var said []string
	for i := len(turns) - 1; i >= 0 && limit > 0; i-- {
		t := turns[i]
		if t.Prompt.Text == "" && t.Outcome.Text == "" {
			continue
		}
		s := "User: " + t.Prompt.Text + "\n"
		if t.Outcome.Text != "" {
			s += fmt.Sprintf("Assistant (%s): %s\n", t.Agent, t.Outcome.Text)
		}
		s = cli.Shorten(s, limit)
		limit -= len(s)
		said = append(said, s)
	}
	if len(said) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(historyHead)
	for i := len(said) - 1; i >= 0; i-- {
		b.WriteString(said[i])
	}
	b.WriteString(historyTail)
	return b.String()
}
