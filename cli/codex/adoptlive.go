package codex

import (
	"context"
	"encoding/json"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/turn"
)

// awaitedTurn is a turn of a run that was attached to, from the moment of attaching until it is resumed.
type awaitedTurn struct {
	mark   cli.Mark
	note   note
	in     *inbox
	unsent bool // its prompt never reached Codex
}

// adoptLive makes a session of a turn in an app server that the previous process left.
func (p *Provider) adoptLive(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if req.Turn == "" {
		return nil, cli.Failf(cli.UnknownFailure, Agent, "it does not work in the background")
	}
	h, err := p.pool.Resume(ctx, left, req.Turn)
	if err != nil {
		return nil, cli.AsFailure(Agent, err)
	}
	w := h.awaited[req.Turn]
	return &live{
		provider: p, server: h, chat: w.note.Chat, marker: w.note.Marker, thread: w.note.Thread, model: w.note.Model, left: w,
	}, nil
}

// Await keeps the messages of a turn for the session that resumes it; see shared.Server.
func (h *server) Await(m cli.Mark, left cli.LeftRun) (drop func(), ok bool) {
	w := &awaitedTurn{mark: m, in: turn.NewQueue[news](0), unsent: left.InputEnd == m.Input}
	if json.Unmarshal([]byte(m.Note), &w.note) != nil || w.note.Thread == "" {
		return nil, false
	}
	h.awaited[m.Turn] = w
	h.turns.Set(w.note.Thread, w.in) // of two turns of a thread the later one is the open one
	_ = h.Peer().Expect(startName(m.Turn), func(m rpc.Message) { put(w.in, m) })
	return func() { h.drop(w) }, true
}

// drop undoes Await for a turn that no request resumes.
func (h *server) drop(w *awaitedTurn) {
	h.turns.Remove(w.note.Thread, w.in)
	w.in.Close()
}
