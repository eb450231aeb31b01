package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/sessions"
)

// sessionFor returns the session in which a turn runs. It chooses the first of these sessions that has not ended (see
// sessions.Policy), still exists, and belongs to the conversation:
//   - the session that was current when the turn was queued
//   - the current session or, if Wants.Own is set, the session with that name
//   - a new session, which becomes the current one unless Wants.Own is set
//
// So if a session ends while several turns wait for it, all these turns run in one session.
func (e *Engine) sessionFor(ctx context.Context, c *conversation, conv orchestrator.Conversation,
	t orchestrator.Turn) (orchestrator.Session, error) {
	candidates, own := []orchestrator.SessionID{t.Session, conv.Session}, t.Wants.Own != "" && e.opts.Orders != nil
	if own {
		candidates = candidates[:1]
	}
	for _, id := range candidates {
		s, ok, err := e.currentSession(ctx, id)
		if err != nil {
			return s, err
		}
		if ok && s.Conversation == conv.ID {
			return sessions.Continue(ctx, e.opts.Store, s, t)
		}
	}
	if own {
		return e.ownSession(ctx, conv, t)
	}
	s := e.newSession(conv, t)
	// Use the inbox, so that a concurrent change of the conversation does not overwrite the current session.
	var err error
	c.do(func(*conversation) { err = e.opts.Store.CreateSession(ctx, s) })
	if err != nil {
		return orchestrator.Session{}, fmt.Errorf("create session: %w", err)
	}
	return s, nil
}

func (e *Engine) newSession(conv orchestrator.Conversation, t orchestrator.Turn) orchestrator.Session {
	s := orchestrator.Session{
		ID: orchestrator.SessionID(e.opts.NewID()), Conversation: conv.ID, Title: sessions.Title(t),
		Dir: e.opts.Places.DirOf(conv), Created: e.now(), Used: e.now(),
		AgentSessions: map[orchestrator.AgentEnv]orchestrator.AgentSession{},
	}
	if t.Prompt.Rights.OfChat() {
		s.Person = t.Prompt.Person
	}
	return s
}

// SideSession returns the session of a question outside of the conversation's turns; see ConsultQuestion.Session. It
// creates the session if necessary.
func (e *Engine) SideSession(ctx context.Context, q orchestrator.ConsultQuestion) (s orchestrator.Session, err error) {
	if asks := q.AskingTurn(); q.Session == "" && asks != "" && !orchestrator.IsOutsideTurn(asks) {
		return e.opts.Store.Session(ctx, q.For.Turn.Session)
	}
	// Use the inbox, so that two questions at the same moment do not create two sessions.
	err = e.do(q.Conversation, func(*conversation) error {
		s, err = e.sideSession(ctx, q)
		return err
	})
	return s, err
}

func (e *Engine) sideSession(ctx context.Context, q orchestrator.ConsultQuestion) (s orchestrator.Session, err error) {
	conv, err := e.load(ctx, q.Conversation)
	if err != nil {
		return s, err
	}
	asks := orchestrator.Turn{Prompt: orchestrator.Prompt{Person: q.Person, Text: q.Text}}
	if q.Session == "" {
		if s, _, err = e.nextPlace(ctx, conv); err == nil && s.ID == "" {
			s = e.newSession(conv, asks)
			err = e.opts.Store.CreateSession(ctx, s)
		}
		return s, err
	}
	if err := orchestrator.CheckSessionName(q.Session); err != nil {
		return s, err
	}
	if e.opts.Orders == nil {
		return s, orchestrator.ErrNoOrders
	}
	s, err = orchestrator.FindSession(ctx, e.opts.Orders, q.Conversation, q.Session)
	if !errors.Is(err, orchestrator.ErrNoSession) {
		return s, err
	}
	asks.Prompt.Text = q.Session
	s = e.newSession(conv, asks)
	return s, e.opts.Orders.CreateOwnSession(ctx, q.Session, s)
}

// currentSession loads a session that the next turn can continue. It returns false if no session has this ID, or if the
// session has ended by IdleReset or DailyReset.
func (e *Engine) currentSession(ctx context.Context, id orchestrator.SessionID) (orchestrator.Session, bool, error) {
	if id == "" {
		return orchestrator.Session{}, false, nil
	}
	s, err := e.opts.Store.Session(ctx, id)
	if err != nil && !errors.Is(err, orchestrator.ErrNoSession) {
		return orchestrator.Session{}, false, fmt.Errorf("load session: %w", err)
	}
	return s, err == nil && !e.expired(s), nil
}

func (e *Engine) expired(s orchestrator.Session) bool { return e.turns().Sessions.Expired(s, e.now()) }

// Titled implements turn.Conversation. It changes the title of the session, unless a user has chosen the title.
func (c *conversation) Titled(ctx context.Context, t orchestrator.Turn, title string) {
	store := c.titles.Choose(t, title)
	c.e.wg.Go(func() {
		if err := store(ctx, c.e.opts.Store); err != nil {
			c.e.log.Warn("change the title of a session", "turn", t.ID, "err", err)
		}
	})
}

// New implements bot.Desk.
func (e *Engine) New(ctx context.Context, id orchestrator.ConversationID) error {
	err := e.do(id, func(c *conversation) error {
		c.giveUpShowing()
		return e.save(ctx, id, func(c *orchestrator.Conversation) { c.Session = "" })
	})
	if err == nil {
		e.reopen(ctx, id)
	}
	return err
}

// Begin implements sessions.Engine.
func (e *Engine) Begin(ctx context.Context, s orchestrator.Session) error {
	err := e.do(s.Conversation, func(*conversation) error {
		if err := e.opts.Store.CreateSession(ctx, s); err != nil {
			return err
		}
		return e.save(ctx, s.Conversation, func(c *orchestrator.Conversation) {
			c.Session, c.Dir = s.ID, s.Dir
			for of := range s.AgentSessions {
				c.UseAgent(of, c.Agent)
			}
		})
	})
	if err == nil {
		e.reopen(ctx, s.Conversation)
	}
	return err
}

// Move implements sessions.Engine. It notifies the old conversation.
func (e *Engine) Move(ctx context.Context, s orchestrator.Session, to orchestrator.ConversationID) error {
	var was orchestrator.Conversation
	err := e.do(s.Conversation, func(from *conversation) (err error) {
		if from.active.first() != nil || len(from.queue) > 0 {
			return orchestrator.ErrSessionInUse
		}
		if was, err = e.load(ctx, s.Conversation); err != nil {
			return err
		}
		return e.opts.Store.MoveSession(ctx, s.ID, to)
	})
	if err != nil || was.Session != s.ID {
		return err
	}
	e.opts.Gateway.Release(s.Conversation.Key())
	e.notice(ctx, s.Conversation, "turn.session-moved")
	return nil
}

// MoveChat implements bot.Desk. The queue and the running turn move, too. The messages of the running turn are still
// stored under the old ID; package bot/message sends them to the new one. Only a group without topics can get a new ID.
func (e *Engine) MoveChat(ctx context.Context, from, to int64) error {
	was, is := orchestrator.ConversationID{Chat: from}, orchestrator.ConversationID{Chat: to}
	c, err := e.conversation(was)
	if err != nil { // the engine is closed, so only store the new chat ID for the next process
		return e.opts.Store.MoveChat(ctx, from, to)
	}
	// No turn can be stored while this function occupies the inbox. A turn stored during the move could keep the old
	// chat ID.
	c.do(func(c *conversation) {
		if err = e.opts.Store.MoveChat(ctx, from, to); err == nil {
			c.move(is)
		}
	})
	if err != nil {
		return err
	}
	// Close the idle agent process of the old chat. The next turn in the new chat starts another agent process, which
	// continues the session.
	e.opts.Gateway.Release(was.Key())
	return nil
}

// move changes the ID of a conversation. If another conversation has this ID, c absorbs it.
func (c *conversation) move(to orchestrator.ConversationID) {
	for i := range c.queue {
		c.queue[i].turn.Prompt.Conversation = to
	}
	c.at.Store(&to)
	c.e.mu.Lock()
	other := c.e.conversations[to]
	c.e.conversations[to] = c // c also stays under the old ID, for updates from before the move
	c.e.mu.Unlock()
	if other != nil && other != c {
		other.do(c.absorb)
	}
}

// absorb moves the queue of the conversation other behind the queue of c. The running turn of other continues, and
// c.active.turns returns this turn, too. absorb occupies the inboxes of c and other. To prevent a deadlock, other must
// never wait for the inbox of c.
func (c *conversation) absorb(other *conversation) {
	c.active.absorbed.Store(&other.active)
	other.inbox.Join(&c.inbox)
	c.queue, other.queue = slices.Concat(c.queue, other.queue), nil
	if r := other.active.running.Load(); r != nil {
		now := *r
		now.cleared += c.cleared - other.cleared
		other.active.running.Store(&now)
	}
	c.start.later = c.start.later || other.start.later
	c.start.redelivered = cmp.Or(c.start.redelivered, other.start.redelivered)
	maps.Copy(c.showing, other.showing)
	first, second, shown := c.shown, other.shown, make(chan struct{})
	c.shown = shown
	go func() {
		<-first
		<-second
		close(shown)
	}()
}

// Resume implements sessions.Engine.
func (e *Engine) Resume(ctx context.Context, s orchestrator.Session, as orchestrator.AgentEnv) error {
	err := e.change(ctx, s.Conversation, func(c *orchestrator.Conversation) {
		c.Session, c.Dir = s.ID, s.Dir
		in, err := e.opts.Places.Sandbox(c.ID, c.Dir, "")
		if err != nil {
			return // the next turn reports it
		}
		now, _ := e.chooseAgent(cli.AtOnce(ctx), *c, in) // an error means that the conversation has no agent yet
		changed := *c
		changed.ContinueWith(as, now.Agent)
		req := cli.Request{Sandbox: in, Dir: c.Dir, Accounts: changed.Settings.Accounts}
		e.grant(&req, changed, orchestrator.Rights{})
		if e.opts.Gateway.CannotHold(as.Agent, req) == nil {
			*c = changed
		}
	})
	if err == nil {
		e.reopen(ctx, s.Conversation)
	}
	return err
}
