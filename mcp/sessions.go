package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/handoff"
)

// Limits for agents that read sessions.
const (
	maxSessions     = 50
	defaultSessions = 20
	maxTurns        = 50
	defaultTurns    = 10
	turnTokens      = 600  // maximum tokens of a question or an answer
	maxTools        = 40   // tools of an entry
	toolBytes       = 2000 // bytes of a tool's arguments
)

type listSessions struct {
	Archived bool `json:"archived,omitempty" jsonschema:"the archived ones, instead of the others"`
	Offset   int  `json:"offset,omitempty" jsonschema:"how many to skip"`
	Limit    int  `json:"limit,omitempty" jsonschema:"how many to list, 20 by default, 50 at most"`
}

type describeSession struct {
	ID    string `json:"session_id" jsonschema:"the id of the session, as list_sessions and search_project_history give it, or a name that an agent gave it"`
	Turns int    `json:"turns,omitempty" jsonschema:"how many of its last entries to show, 10 by default, 50 at most"`
}

type searchHistory struct {
	Words      string `json:"words" jsonschema:"words that were said, all of them; a * at the end of a word stands for any ending"`
	Everywhere bool   `json:"everywhere,omitempty" jsonschema:"search sessions of other projects too"`
	Limit      int    `json:"limit,omitempty" jsonschema:"how many sessions to give, 20 by default, 50 at most"`
}

func (t *toolset) addSessions() {
	registerTool(t, "list_sessions",
		"List the sessions that the user may read, the last used first.",
		func(listSessions) string { return "" }, t.listSessions)
	registerTool(t, "describe_session",
		"Show the last entries of a session: turns, questions to other models and their work, with the tools that they "+
			"used.",
		func(in describeSession) string { return in.ID }, t.describeSession)
	registerTool(t, "search_project_history",
		"Search what was said about the current project in the sessions that the user may read.",
		func(in searchHistory) string { return in.Words }, t.searchHistory)
}

// limitOrDefault limits a number that an agent may have set. It returns fallback if the agent has set none.
func limitOrDefault(n, fallback, limit int) int {
	if n <= 0 {
		return fallback
	}
	return min(n, limit)
}

func (t *toolset) listSessions(ctx context.Context, c call, in listSessions) (string, error) {
	return t.findSessions(ctx, c, orchestrator.SessionQuery{Archived: in.Archived, Offset: max(in.Offset, 0),
		Limit: limitOrDefault(in.Limit, defaultSessions, maxSessions)})
}

// findSessions lists the sessions that match q and that the turn's user may read.
func (t *toolset) findSessions(ctx context.Context, c call, q orchestrator.SessionQuery) (string, error) {
	scope, err := t.s.opts.Sessions.Scope(ctx, c.Turn)
	if err != nil {
		return "", fmt.Errorf("find sessions: %w", err)
	}
	q.Conversation, q.Scope = scope.Conversation, scope
	found, more, err := t.s.opts.Sessions.FindSessions(ctx, q)
	if err != nil {
		return "", fmt.Errorf("find sessions: %w", err)
	}
	return describeFound(found, more, c), nil
}

// describeFound describes each session in one line.
func describeFound(found []orchestrator.FoundSession, more bool, c call) string {
	var b strings.Builder
	for _, s := range found {
		current := ""
		if s.Session.ID == c.Turn.Session {
			current = ", this session"
		}
		fmt.Fprintf(&b, "%s  %q in %s, %d entries, used %s%s\n", s.Session.ID, s.Session.Title, s.Session.Dir,
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
	if err := orchestrator.CheckSessionName(in.ID); err != nil {
		return "", err
	}
	scope, err := t.s.opts.Sessions.Scope(ctx, c.Turn)
	if err != nil {
		return "", sessionError(err)
	}
	s, err := t.s.opts.Sessions.Seen(ctx, scope, in.ID)
	if err != nil {
		return "", sessionError(err)
	}
	entries, err := t.s.opts.Sessions.Turns(ctx, s.Conversation, s.ID, limitOrDefault(in.Turns, defaultTurns, maxTurns))
	if err != nil {
		return "", sessionError(err)
	}
	head := fmt.Sprintf("%q in %s, begun %s, %d entries, %d tokens\n", s.Title, s.Dir,
		s.Created.UTC().Format(time.RFC3339), s.Totals.Messages, s.Totals.Tokens)
	shown, size := 0, len(head)
	texts := make([]string, len(entries))
	for i, entry := range slices.Backward(entries) { // newest first: if space runs out, old entries are left out
		steps, err := t.s.opts.Steps.StepsOf(ctx, entry.Prompt.Conversation, entry.ID)
		if err != nil {
			return "", fmt.Errorf("load the tools of an entry: %w", err)
		}
		texts[i] = describeEntry(entry, steps)
		if size += len(texts[i]); size > maxResult {
			texts[i] = ""
			break
		}
		shown++
	}
	if shown < len(entries) {
		head += fmt.Sprintf("%d older entries have no room here; ask for fewer, or search.\n", len(entries)-shown)
	}
	return head + strings.Join(texts, ""), nil
}

// describeEntry describes an entry of a session, with its tools and their arguments.
func describeEntry(e orchestrator.Turn, steps []orchestrator.Step) string {
	kind := cmp.Or(string(e.Entry.Kind), "turn")
	if e.Entry.Role != "" {
		kind += " as " + e.Entry.Role
	}
	if e.Entry.Asks != "" {
		kind += ", asked for by an agent"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s, %s, %s\n\n%s\n", e.Queued.UTC().Format(time.RFC3339), kind, e.State,
		handoff.Middle(e.Prompt.Text, turnTokens))
	for i, step := range steps {
		if i == maxTools {
			fmt.Fprintf(&b, "\n- %d more tools and changes are left out", len(steps)-i)
			break
		}
		b.WriteString("\n- " + describeStep(step))
	}
	if len(steps) > 0 {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\n### %s\n\n%s\n", orchestrator.ModelChoice{Agent: e.Agent,
		Model: cmp.Or(e.Outcome.Model, e.Model)}, handoff.Middle(e.Outcome.Text+e.Outcome.Failure, turnTokens))
	return b.String()
}

func describeStep(s orchestrator.Step) string {
	if s.Tool == "" {
		return fmt.Sprintf("changed a file: %s %s", s.Change, s.Title)
	}
	text := cli.ShortenCounted(s.Tool+" "+cmp.Or(s.Input, s.Title), toolBytes)
	if s.Err != "" {
		text += ": " + s.Err
	}
	return text
}

// sessionError returns an error for the agent. The error is the same for a session that does not exist and for one that
// the user may not read. So it does not reveal which sessions exist.
func sessionError(err error) error {
	if errors.Is(err, orchestrator.ErrElsewhere) || errors.Is(err, orchestrator.ErrNoSession) {
		return errors.New("there is no such session that the user may read; list_sessions lists them")
	}
	return fmt.Errorf("load the session: %w", err)
}

func (t *toolset) searchHistory(ctx context.Context, c call, in searchHistory) (string, error) {
	if strings.TrimSpace(in.Words) == "" {
		return "", errors.New("there are no words to search for")
	}
	q := orchestrator.SessionQuery{Words: cli.Shorten(in.Words, maxQuestion),
		Limit: limitOrDefault(in.Limit, defaultSessions, maxSessions)}
	if !in.Everywhere {
		q.Dir = c.Request.Dir
	}
	return t.findSessions(ctx, c, q)
}
