package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/handoff"
)

// Limits of reading sessions.
const (
	maxSessions     = 50
	defaultSessions = 20
	maxTurns        = 50
	defaultTurns    = 10
	turnTokens      = 600 // of one question or answer
)

type listSessions struct {
	Archived bool `json:"archived,omitempty" jsonschema:"the archived ones, instead of the others"`
	Offset   int  `json:"offset,omitempty" jsonschema:"how many to skip"`
	Limit    int  `json:"limit,omitempty" jsonschema:"how many to list, 20 by default, 50 at most"`
}

type describeSession struct {
	ID    string `json:"session_id" jsonschema:"the id of the session, as list_sessions and search_project_history give it"`
	Turns int    `json:"turns,omitempty" jsonschema:"how many of its last turns to show, 10 by default, 50 at most"`
}

type searchHistory struct {
	Words      string `json:"words" jsonschema:"words that were said, all of them; a * at the end of a word stands for any ending"`
	Everywhere bool   `json:"everywhere,omitempty" jsonschema:"search sessions of other projects of this chat too"`
	Limit      int    `json:"limit,omitempty" jsonschema:"how many sessions to give, 20 by default, 50 at most"`
}

func (t *toolset) addSessions() {
	registerTool(t, "list_sessions",
		"List the sessions of this chat, the last used first.",
		func(listSessions) string { return "" }, t.listSessions)
	registerTool(t, "describe_session",
		"Show what was said in a session of this chat: its last turns, with questions and answers.",
		func(in describeSession) string { return in.ID }, t.describeSession)
	registerTool(t, "search_project_history",
		"Search what was said in the sessions of this chat about the current project.",
		func(in searchHistory) string { return in.Words }, t.searchHistory)
}

// limitOrDefault returns n limited to most, or usual if the agent did not set n.
func limitOrDefault(n, usual, most int) int {
	if n <= 0 {
		return usual
	}
	return min(n, most)
}

func (t *toolset) listSessions(ctx context.Context, c call, in listSessions) (string, error) {
	found, more, err := t.s.opts.Sessions.FindSessions(ctx, orchestrator.SessionQuery{
		Conversation: c.Turn.Prompt.Conversation, Archived: in.Archived, Offset: max(in.Offset, 0),
		Limit: limitOrDefault(in.Limit, defaultSessions, maxSessions),
	})
	if err != nil {
		return "", fmt.Errorf("list sessions: %w", err)
	}
	return describeFound(found, more, c), nil
}

// describeFound lists sessions, one a line.
func describeFound(found []orchestrator.FoundSession, more bool, c call) string {
	var b strings.Builder
	for _, s := range found {
		current := ""
		if s.Session.ID == c.Turn.Session {
			current = ", this session"
		}
		fmt.Fprintf(&b, "%s  %q in %s, %d turns, used %s%s\n", s.Session.ID, s.Session.Title, s.Session.Dir,
			s.Session.Totals.Messages,
			s.Session.Used.UTC().Format(time.RFC3339), current)
		if s.Excerpt != "" {
			fmt.Fprintf(&b, "    %s\n", s.Excerpt)
		}
	}
	switch {
	case len(found) == 0:
		return "There are none."
	case more:
		b.WriteString("There are more.\n")
	}
	return b.String()
}

func (t *toolset) describeSession(ctx context.Context, c call, in describeSession) (string, error) {
	s, err := t.s.opts.Sessions.Session(ctx, c.Turn.Prompt.Conversation, orchestrator.SessionID(in.ID))
	if err != nil {
		return "", sessionError(err)
	}
	turns, err := t.s.opts.Sessions.Turns(ctx, c.Turn.Prompt.Conversation, s.ID,
		limitOrDefault(in.Turns, defaultTurns, maxTurns))
	if err != nil {
		return "", sessionError(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q in %s, begun %s, %d turns, %d tokens\n", s.Title, s.Dir, s.Created.UTC().Format(time.RFC3339),
		s.Totals.Messages, s.Totals.Tokens)
	for _, turn := range turns {
		fmt.Fprintf(&b, "\n## %s, %s\n\n%s\n\n### %s\n\n%s\n", turn.Queued.UTC().Format(time.RFC3339), turn.State,
			handoff.Middle(turn.Prompt.Text, turnTokens),
			strings.TrimSpace(string(turn.Agent)+" "+string(turn.Outcome.Model)),
			handoff.Middle(turn.Outcome.Text+turn.Outcome.Failure, turnTokens))
	}
	return b.String(), nil
}

// sessionError returns the same error for a missing session and for a session of another chat.
func sessionError(err error) error {
	if errors.Is(err, orchestrator.ErrElsewhere) || errors.Is(err, orchestrator.ErrNoSession) {
		return errors.New("there is no such session in this chat; list_sessions lists them")
	}
	return fmt.Errorf("load the session: %w", err)
}

func (t *toolset) searchHistory(ctx context.Context, c call, in searchHistory) (string, error) {
	if strings.TrimSpace(in.Words) == "" {
		return "", errors.New("there are no words to search for")
	}
	limit := limitOrDefault(in.Limit, defaultSessions, maxSessions)
	var all []orchestrator.FoundSession
	for offset := 0; ; offset += maxSessions {
		found, more, err := t.s.opts.Sessions.FindSessions(ctx, orchestrator.SessionQuery{
			Conversation: c.Turn.Prompt.Conversation, Words: cli.Shorten(in.Words, maxQuestion), Offset: offset,
			Limit: maxSessions,
		})
		if err != nil {
			return "", fmt.Errorf("search: %w", err)
		}
		for _, s := range found {
			if in.Everywhere || s.Session.Dir == c.Request.Dir {
				all = append(all, s)
			}
		}
		if len(all) > limit {
			return describeFound(all[:limit], true, c), nil
		}
		if !more {
			return describeFound(all, false, c), nil
		}
	}
}
