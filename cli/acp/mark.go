package acp

import (
	"context"
	"encoding/json"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
)

// note is what the next process must know to resume a turn. It travels as Mark.Note.
type note struct {
	Session  string   `json:"s"`
	Model    string   `json:"m,omitempty"`
	Length   int      `json:"n"`           // bytes of the line with the prompt
	Answered []string `json:"a,omitempty"` // requests for permission that were answered by a user
	// Sent says that the prompt is known to have been sent: the mark was written again since.
	Sent bool `json:"t,omitempty"`
	// Name is what the agent calls itself, and Totals what the session had used before the turn.
	Name   string    `json:"w,omitempty"`
	Totals cli.Usage `json:"u,omitzero"`
}

func (n note) String() string {
	raw, err := json.Marshal(n)
	if err != nil { // strings and numbers can always be encoded
		return ""
	}
	return string(raw)
}

const markWait = 5 * time.Second

// promptID is the id of the request that is a turn's prompt. It is the same after a restart. A turn without
// a name gets an id of its session's.
func (s *session) promptID(turn cli.TurnID) string {
	if turn == "" {
		return "turn-of-" + string(s.id)
	}
	return "turn-" + string(turn)
}

// mark records where the turn begins, right before its prompt is written. It runs on the writing goroutine, so
// that nothing else is written between.
func (s *session) mark(turn cli.TurnID, n note) error {
	if turn == "" {
		return nil
	}
	m, err := s.process.Peer().Begin(s.process.Life(), cli.Mark{Turn: turn, Note: n.String()})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.turn.marked, s.turn.note = m, n
	s.mu.Unlock()
	return nil
}

// noteAnswered records that a user's answer was written, so that the next process does not ask again. Without that
// record, the question is asked once more, and the agent takes no second answer.
func (s *session) noteAnswered(a *ask) {
	s.mu.Lock()
	m := s.turn.marked
	s.turn.note.Answered = append(s.turn.note.Answered, rpc.Text(a.id))
	s.turn.note.Sent = true
	m.Note = s.turn.note.String()
	s.mu.Unlock()
	if m.Turn == "" {
		return
	}
	ctx, cancel := context.WithTimeout(s.process.Life(), markWait)
	defer cancel()
	if err := s.process.Program().Begin(ctx, m); err != nil {
		s.process.opts.Logger.Warn("record that a question was answered", "agent", string(s.process.opts.Agent),
			"turn", string(m.Turn), "err", err)
	}
}
