package sessions

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
)

// Stored implements orchestrator.Sessions.
func (b *Book) Stored(ctx context.Context, in orchestrator.ConversationID) ([]cli.StoredSession, error) {
	_, all, err := b.stored(ctx, in)
	return all, err
}

func (b *Book) stored(ctx context.Context, in orchestrator.ConversationID) (st orchestrator.Status,
	foreign []cli.StoredSession, err error) {
	if st, err = b.engine.Status(ctx, in); err != nil {
		return st, nil, err
	}
	foreign, err = b.foreign(ctx, st, st.Dir)
	return st, foreign, err
}

// resumable lists the sessions that agents have stored for a directory. If a hook in a terminal reported the session
// with the given ID, resumable uses the directory of that session. Otherwise it uses the conversation's directory.
func (b *Book) resumable(ctx context.Context, in orchestrator.ConversationID, agent cli.Agent,
	id cli.AgentSessionID) (st orchestrator.Status, all []cli.StoredSession, err error) {
	dir := ""
	if b.opts.Seen != nil {
		if dir, err = b.opts.Seen(ctx, agent, id); err != nil {
			return st, nil, err
		}
	}
	if dir == "" {
		return b.stored(ctx, in)
	}
	if st, err = b.engine.Status(ctx, in); err != nil {
		return st, nil, err
	}
	if dir, err = b.engine.Directory(dir); err != nil {
		return st, nil, err
	}
	all, err = b.foreign(ctx, st, dir)
	return st, all, err
}

// foreign lists the sessions in the agents' own files for a directory. It leaves out ductor's sessions.
func (b *Book) foreign(ctx context.Context, st orchestrator.Status, dir string) (foreign []cli.StoredSession,
	err error) {
	all, err := b.agents.StoredSessions(ctx, st.Sandbox, st.Settings.Accounts, dir)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		ours, err := b.opts.Store.Knows(ctx, s.ID)
		if err != nil {
			return nil, err
		}
		if !ours && !writtenByDuctor(s.First) {
			foreign = append(foreign, s)
		}
	}
	return foreign, nil
}

// writtenByDuctor recognizes a session of ductor by its first prompt. The session may be missing in the store, because
// earlier versions did not store all session IDs, or because the session belongs to another ductor with another store.
func writtenByDuctor(first string) bool {
	return slices.ContainsFunc([]string{
		"<instructions> The user reads your answers in a chat.",
		"<project-files> Every session in this project begins with these files of it.",
		"[What was said in this session ",
		"[What you were asked before, and what you answered]",
		"Summarize this part of a conversation between a user and coding agents",
		"Summarize this result of another agent for the user who waits for it.",
	}, func(opening string) bool { return strings.HasPrefix(first, opening) })
}

// ResumeStored implements orchestrator.Sessions.
func (b *Book) ResumeStored(ctx context.Context, by orchestrator.Press, agent cli.Agent,
	id cli.AgentSessionID) (orchestrator.Session, error) {
	if !by.May(orchestrator.ChangeSessions) {
		return orchestrator.Session{}, orchestrator.ErrNotAllowed
	}
	st, all, err := b.resumable(ctx, by.Conversation, agent, id)
	if err != nil {
		return orchestrator.Session{}, err
	}
	i := slices.IndexFunc(all, func(s cli.StoredSession) bool { return s.Agent == agent && s.ID == id })
	if i < 0 {
		return orchestrator.Session{}, orchestrator.ErrNoSession
	}
	dir, err := b.engine.Directory(all[i].Dir)
	if err != nil {
		return orchestrator.Session{}, err
	}
	now := b.opts.Now()
	s := orchestrator.Session{
		ID: orchestrator.SessionID(b.opts.NewID()), Conversation: by.Conversation, Person: by.Person,
		Title: cli.Shorten(all[i].First, titleMax), Dir: dir,
		Created: now, Used: now,
		AgentSessions: map[orchestrator.AgentEnv]orchestrator.AgentSession{{Agent: agent,
			Account: all[i].Account, Sandbox: st.Sandbox}: {ID: id, Terminal: true}},
	}
	return s, b.engine.Begin(ctx, s)
}

// Terminal implements orchestrator.Sessions. It uses the agent of the conversation. If that agent has not run in the
// session, Terminal uses another agent that has run in it.
func (b *Book) Terminal(ctx context.Context, by orchestrator.Press) (cli.Agent, string, error) {
	if !by.May(orchestrator.ChangeSessions) {
		return "", "", orchestrator.ErrNotAllowed
	}
	st, err := b.engine.Status(ctx, by.Conversation)
	if err != nil {
		return "", "", err
	}
	var own []orchestrator.AgentEnv
	for of := range st.Session.AgentSessions {
		if of.Sandbox == st.Sandbox && of.Lane == orchestrator.MainLane {
			own = append(own, of)
		}
	}
	if len(own) == 0 {
		return "", "", orchestrator.ErrNoSession
	}
	rank := func(of orchestrator.AgentEnv) int {
		switch {
		case of.Agent != st.Agent:
			return 2
		case of.Account != st.Settings.Accounts[of.Agent]:
			return 1
		}
		return 0
	}
	of := slices.MinFunc(own, func(x, y orchestrator.AgentEnv) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(x.Agent, y.Agent), cmp.Compare(x.Account, y.Account))
	})
	b.agents.Release(by.Conversation.Key())
	line, err := b.agents.ResumeCommand(ctx, of.Agent, cli.Request{
		Sandbox: st.Sandbox, Session: string(st.Session.ID), Dir: st.Session.Dir,
		Resume: st.Session.AgentSessions[of].ID, Accounts: cli.Accounts{of.Agent: of.Account},
	})
	return of.Agent, line, err
}
