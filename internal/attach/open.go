package attach

import (
	"context"
	"fmt"
	"slices"

	"ductor/cli"
	"ductor/internal/attach/wire"
	"ductor/orchestrator"
)

// Limits of the Snapshot that a terminal gets when it opens a conversation.
const (
	mostEntries       = 30
	mostOutputs       = 512 << 10 // bytes of outputs in all entries
	mostConversations = 200
	mostAnswers       = 4 << 20 // bytes of answers in all entries
)

// parse finds the conversation with the given key. An empty key means the owner's private chat. parse returns an error
// if the conversation is neither in the owner's private chat nor in a group that ductor serves.
func (c *caller) parse(key string) (orchestrator.ConversationID, error) {
	if key == "" {
		return orchestrator.ConversationID{Chat: int64(c.t.user)}, nil
	}
	in, err := orchestrator.ParseKey(cli.Conversation(key))
	if err != nil || !c.mayOpen(in) || string(in.Key()) != key {
		return orchestrator.ConversationID{}, errUnknown
	}
	return in, nil
}

func (c *caller) mayOpen(in orchestrator.ConversationID) bool {
	return in == in.Shown() && (in.Chat == int64(c.t.user) || in.Group() && c.s.opts.Group(in.Chat))
}

// list sends the conversations that the owner can open.
func (c *caller) list(ctx context.Context) {
	sessions, err := c.s.opts.Store.NewestSessions(ctx, mostConversations)
	if err != nil {
		c.s.opts.Log.Error("list conversations for a terminal", "err", err)
		return
	}
	all := []wire.Conversation{}
	add := func(in orchestrator.ConversationID, s orchestrator.Session) {
		a := c.s.opts.Hub.activity(in)
		all = append(all, wire.Conversation{Key: a.Conversation, Title: s.Title, Used: s.Used, Running: a.Running,
			Approvals: a.Approvals})
	}
	own, _ := c.parse("")
	if !slices.ContainsFunc(sessions, func(s orchestrator.Session) bool { return s.Conversation == own }) {
		add(own, orchestrator.Session{})
	}
	for _, s := range sessions {
		if c.mayOpen(s.Conversation) {
			add(s.Conversation, s)
		}
	}
	c.t.queue(c.s.opts.Hub.encode(wire.Message{Conversations: all}))
}

// open opens a conversation for the terminal and sends the snapshot of the conversation.
func (c *caller) open(ctx context.Context, r wire.Open) {
	in, err := c.parse(r.Conversation)
	if err != nil {
		c.t.bye(c.s.opts.Hub, wire.ReasonRefused, sentence(err))
		return
	}
	c.in = &in
	running, notices := c.s.opts.Hub.open(c.t, in)
	ctx, cancel := context.WithTimeout(ctx, requestWait)
	defer cancel()
	shown, err := c.s.snapshot(ctx, in, running)
	if err != nil {
		c.s.opts.Log.Error("open a conversation in a terminal", "conversation", in.Key(), "err", err)
		_ = c.t.conn.Close() // the terminal will reconnect and try again
		return
	}
	shown.Notices = notices
	c.t.release(c.s.opts.Hub.encode(wire.Message{Snapshot: shown}))
}

// snapshot returns the state of a conversation. The caller must get the running turns before it calls snapshot. If one
// of these turns ends meanwhile, snapshot finds it among the ended turns.
func (s *Server) snapshot(ctx context.Context, in orchestrator.ConversationID, running []wire.Entry) (*wire.Snapshot,
	error) {
	st, err := s.opts.Desk.Status(ctx, in)
	if err != nil {
		return nil, err
	}
	shown := &wire.Snapshot{
		Conversation: string(in.Key()), Title: st.Session.Title, Agent: string(st.Agent), Model: string(st.Model),
		Mode: string(st.Permission), Dir: st.Dir, Approvals: []wire.Approval{},
	}
	if shown.Entries, err = s.entries(ctx, in, running); err != nil {
		return nil, err
	}
	open, err := s.opts.Store.OpenApprovals(ctx)
	if err != nil {
		return nil, fmt.Errorf("load open approvals: %w", err)
	}
	for _, a := range open {
		if a.Conversation == in {
			shown.Approvals = append(shown.Approvals, approvalOf(a, s.opts.Now()))
		}
	}
	return shown, nil
}

// entries returns the last ended turns of a conversation, then the running turn, then the waiting turns.
func (s *Server) entries(ctx context.Context, in orchestrator.ConversationID, running []wire.Entry) ([]wire.Entry,
	error) {
	open, err := s.opts.Store.OpenTurns(ctx)
	if err != nil {
		return nil, fmt.Errorf("load open turns: %w", err)
	}
	// Load the ended turns after the open ones. In the opposite order, a turn that ends in between would be in neither
	// list.
	ended, err := s.opts.Store.RecentTurns(ctx, in, mostEntries)
	if err != nil {
		return nil, fmt.Errorf("load the last turns: %w", err)
	}
	all, err := s.endedEntries(ctx, ended)
	if err != nil {
		return nil, err
	}
	ahead := 0
	for _, t := range open {
		if t.Prompt.Conversation != in || has(all, string(t.ID)) {
			continue
		}
		e := entryOf(t)
		if i := slices.IndexFunc(running, func(r wire.Entry) bool { return r.Turn == e.Turn }); i >= 0 {
			e = running[i]
		}
		switch e.State {
		case wire.StateRunning:
			// The Hub knows the steps of the turns in running. The entry of any other turn comes from the store, which
			// does not contain the steps of a running turn. So mark this entry as incomplete. The Hub will soon receive
			// all events of the turn, and then sends a complete entry.
			e.Replayed = e.Replayed || !has(running, e.Turn)
		case wire.StateQueued:
			e.Ahead = ahead
		default:
			continue
		}
		ahead++
		all = append(all, e)
	}
	return all, nil
}

func has(all []wire.Entry, turn string) bool {
	return slices.ContainsFunc(all, func(e wire.Entry) bool { return e.Turn == turn })
}

// endedEntries returns ended turns with their steps, the oldest turn first. If the turns are too large, it omits the
// oldest turns. If the outputs of steps are too large, it omits the outputs of the oldest turns.
func (s *Server) endedEntries(ctx context.Context, ended []orchestrator.Turn) ([]wire.Entry, error) {
	all := make([]wire.Entry, 0, len(ended))
	answers, outputs := mostAnswers, mostOutputs
	for _, t := range slices.Backward(ended) {
		if t.Wants.NeedNoMessage(t.Outcome) {
			continue
		}
		e := entryOf(t)
		if answers -= len(e.Answer) + len(e.Prompt); answers < 0 && len(all) > 0 {
			break
		}
		steps, err := s.opts.Store.StepsOf(ctx, t.ID)
		if err != nil {
			return nil, fmt.Errorf("load the steps of a turn: %w", err)
		}
		for i, step := range steps {
			if step.Size == 0 || step.Size > outputs || step.Size > mostOutput {
				continue
			}
			whole, err := s.opts.Store.Step(ctx, t.ID, step.Number)
			if err != nil {
				return nil, fmt.Errorf("load a step: %w", err)
			}
			steps[i], outputs = whole, outputs-step.Size
		}
		addSteps(&e, steps)
		all = append(all, e)
	}
	slices.Reverse(all)
	return all, nil
}
