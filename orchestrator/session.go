package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ductor/cli"
)

// sessionFor gives the session a turn runs in: the one that was current when it was queued, or the current
// one, unless the reset rules have ended it; else a new one.
func (o *Orchestrator) sessionFor(ctx context.Context, conv Conversation, t Turn) (Session, error) {
	id := t.Session
	switch {
	case id == "" && t.Wants.Own != "" && o.opts.Orders != nil:
		return o.ownSession(ctx, conv, t)
	case id == "":
		id = conv.Session
	}
	if id != "" {
		s, err := o.opts.Store.Session(ctx, id)
		switch {
		case err == nil && !o.expired(s):
			return s, nil
		case err != nil && !errors.Is(err, ErrNoSession):
			return Session{}, fmt.Errorf("load session: %w", err)
		}
	}
	if t.Wants.Own != "" && o.opts.Orders != nil {
		return o.ownSession(ctx, conv, t)
	}
	s := o.newSession(conv, t)
	if err := o.begin(ctx, s); err != nil {
		return Session{}, fmt.Errorf("create session: %w", err)
	}
	return s, nil
}

// begin stores a session as the current one of its conversation, with the line's lock: what is being changed there was
// loaded without it, and would be saved so.
func (o *Orchestrator) begin(ctx context.Context, s Session) error {
	o.mu.Lock()
	l := o.lines[s.Conversation] // there is one, for a turn of it runs
	o.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return o.opts.Store.CreateSession(ctx, s)
}

func (o *Orchestrator) newSession(conv Conversation, t Turn) Session {
	return Session{
		ID: SessionID(o.opts.NewID()), Conversation: conv.ID, Title: title(t.Prompt.Text),
		Dir: o.dirOf(conv), Created: o.now(), Used: o.now(),
		AgentSessions: map[AgentEnv]cli.AgentSessionID{},
	}
}

// expired says whether the reset rules forbid to resume s.
func (o *Orchestrator) expired(s Session) bool {
	now := o.now()
	if o.opts.IdleReset > 0 && now.Sub(s.Used) >= o.opts.IdleReset {
		return true
	}
	at, err := time.Parse("15:04", o.opts.DailyReset)
	if err != nil {
		return false
	}
	local := now.Local()
	reset := time.Date(local.Year(), local.Month(), local.Day(), at.Hour(), at.Minute(), 0, 0, local.Location())
	if reset.After(local) {
		reset = reset.AddDate(0, 0, -1)
	}
	return s.Used.Before(reset)
}

const titleLength = 60

func title(prompt string) string {
	words := strings.Join(strings.Fields(prompt), " ")
	if words == "" {
		return "(files)"
	}
	return cli.Shorten(words, titleLength)
}
