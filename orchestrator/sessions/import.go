package sessions

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"ductor/cli"
	"ductor/orchestrator"
)

// importStates are how an exported turn can have ended.
func importStates() []orchestrator.TurnState {
	return []orchestrator.TurnState{
		orchestrator.TurnDone, orchestrator.TurnFailed, orchestrator.TurnAborted, orchestrator.TurnInterrupted, orchestrator.TurnSteered,
	}
}

// Import begins a session that has what an export says, and makes it the current one. Its directory is that of the export if the
// conversation may work there, else the conversation's own. Its agents are told what was said as history.
func (b *Book) Import(ctx context.Context, by orchestrator.Press, file []byte) (orchestrator.Session, error) {
	if !by.May(orchestrator.ChangeSessions) {
		return orchestrator.Session{}, orchestrator.ErrNotAllowed
	}
	in, err := parseExport(file)
	if err != nil {
		return orchestrator.Session{}, err
	}
	dir, err := b.engine.Directory(in.Dir)
	if err != nil {
		st, err := b.engine.Status(ctx, by.Conversation)
		if err != nil {
			return orchestrator.Session{}, err
		}
		dir = st.Dir
	}
	s := orchestrator.Session{
		ID: orchestrator.SessionID(b.opts.NewID()), Conversation: by.Conversation, Person: by.Person, Title: in.Title, Dir: dir,
		Created: in.Created, Used: b.opts.Now(), Totals: orchestrator.Totals{Messages: len(in.Turns)},
	}
	var turns []orchestrator.Turn
	for _, e := range in.Turns {
		t := e.turn(cli.TurnID(b.opts.NewID()), s.ID, by)
		s.CostUSD, s.Tokens = s.CostUSD+e.Cost, s.Tokens+e.Tokens
		turns = append(turns, t)
	}
	if err := b.opts.Store.ImportSession(ctx, s, turns); err != nil {
		return orchestrator.Session{}, err
	}
	return b.engine.Resume(ctx, by.Conversation, s.ID)
}

// parseExport reads an export; ErrNoExport for anything else.
func parseExport(file []byte) (exported, error) {
	var in exported
	read := json.NewDecoder(bytes.NewReader(file))
	if err := read.Decode(&in); err != nil {
		return exported{}, fmt.Errorf("%w: %w", orchestrator.ErrNoExport, err)
	}
	switch {
	case read.More():
		return exported{}, fmt.Errorf("%w: something follows", orchestrator.ErrNoExport)
	case in.Version != exportVersion:
		return exported{}, fmt.Errorf("%w: its ductor_session is %d", orchestrator.ErrNoExport, in.Version)
	case len(in.Turns) > exportedTurns:
		return exported{}, fmt.Errorf("%w: it has %d turns", orchestrator.ErrNoExport, len(in.Turns))
	}
	in.Title = cli.OneLine(in.Title, titleMax)
	for i, e := range in.Turns {
		if !slices.Contains(importStates(), e.State) || e.Cost < 0 || e.Tokens < 0 {
			return exported{}, fmt.Errorf("%w: turn %d is none", orchestrator.ErrNoExport, i+1)
		}
	}
	return in, nil
}

// turn is an exported turn in another session. Its files are names alone.
func (e exportedTurn) turn(id cli.TurnID, in orchestrator.SessionID, by orchestrator.Press) orchestrator.Turn {
	t := orchestrator.Turn{
		ID: id, Session: in, State: e.State, Agent: e.Agent, Model: e.Model, Queued: e.Asked, Ended: e.Ended, Delivered: true,
		Prompt: orchestrator.Prompt{Conversation: by.Conversation, Person: by.Person, Text: e.Prompt},
		Outcome: orchestrator.Outcome{
			State: e.State, Text: e.Answer, Agent: e.Agent, Model: e.Model, CostUSD: e.Cost, Usage: cli.Usage{Input: e.Tokens},
		},
	}
	if e.State == orchestrator.TurnSteered {
		t.Into = id // into which is not exported
	}
	for _, name := range e.Files {
		t.Prompt.Attachments = append(t.Prompt.Attachments, orchestrator.Attachment{Name: name})
	}
	return t
}
