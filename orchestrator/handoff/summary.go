package handoff

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/side"
)

// Store stores summaries.
type Store interface {
	// Summary returns the newest summary of a session, or the zero value.
	Summary(ctx context.Context, id orchestrator.SessionID) (orchestrator.Summary, error)
	SaveSummary(ctx context.Context, s orchestrator.Summary) error
}

// Summarizer asks a model for a summary of history that is too long for a prompt. It stores the summary with the
// session. Later it extends the summary, so that no turn is summarized twice. All fields except Keep are required.
type Summarizer struct {
	Store Store
	Side  side.Client
	Model orchestrator.ModelChoice
	Wait  time.Duration // time limit of one summary
	Keep  string        // a user's wish for the contents of the summary; may be empty
}

// Has reports whether a session has a summary.
func (s *Summarizer) Has(ctx context.Context, id orchestrator.SessionID) bool {
	has, err := s.Store.Summary(ctx, id)
	return err == nil && has.Until != ""
}

// Sizes of a summary, in tokens.
const (
	mostSummarized = 60_000 // maximum number of tokens of turns in one request for a summary
	summaryShare   = 4      // the budget divided by summaryShare is the size limit of a summary
)

// Write formats turns that have more tokens than budget. The result contains a summary of the older turns, and the
// newest turns unchanged. The summarizing agent runs in the environment of the given request, without permissions.
func (s *Summarizer) Write(ctx context.Context, at cli.Request, id orchestrator.SessionID, turns []orchestrator.Turn,
	budget int) (Told, error) {
	former, err := s.Store.Summary(ctx, id)
	if err != nil {
		return Told{}, fmt.Errorf("load the summary of a session: %w", err)
	}
	older := turns[:len(turns)-newest(turns, budget/2)]
	covered := slices.IndexFunc(turns, func(t orchestrator.Turn) bool { return t.ID == former.Until })
	if fresh := older[min(covered+1, len(older)):]; len(fresh) > 0 {
		text, err := s.summarize(ctx, at, former.Text, fresh, budget/summaryShare)
		if err != nil {
			return Told{}, err
		}
		former = orchestrator.Summary{Session: id, Until: fresh[len(fresh)-1].ID, Text: text}
		if err := s.Store.SaveSummary(ctx, former); err != nil {
			return Told{}, fmt.Errorf("store the summary of a session: %w", err)
		}
	}
	told := Write(turns[len(older):], Middle(former.Text, budget/summaryShare), budget)
	told.Turns += len(older)
	return told, nil
}

// newest returns how many of the newest turns fit into a budget of tokens. It returns 1 if not even the newest turn
// fits.
func newest(turns []orchestrator.Turn, budget int) (n int) {
	for _, t := range slices.Backward(turns) {
		if budget -= Tokens(wholeTurn(t)) + 1; budget < 0 && n > 0 {
			break
		}
		n++
	}
	return n
}

func (s *Summarizer) summarize(ctx context.Context, at cli.Request, former string, turns []orchestrator.Turn,
	budget int) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "Summarize this part of a conversation between a user and coding agents, "+
		"for an agent that joins it. "+
		"Keep what the user wants, what was decided and why, names of files and commands, "+
		"what works, what failed and what is open. Write at most %d words, in the language of the user. "+
		"Use no tools. Answer with the summary and nothing else.\n\n", budget/2)
	if s.Keep != "" {
		fmt.Fprintf(&b, "The user wants this above all to be in the summary: %s\n\n", s.Keep)
	}
	if former != "" {
		fmt.Fprintf(&b, "What was said before, summarized; your summary takes its place too:\n%s\n\n", former)
	}
	b.WriteString("The conversation:\n")
	for _, t := range turns {
		b.WriteString(shorten(t, mostSummarized/len(turns)))
	}
	result, err := s.Side.Ask(ctx, at, side.Question{
		Model: s.Model, Prompt: b.String(), Wait: s.Wait, TextOnly: true,
	})
	if err != nil {
		return "", fmt.Errorf("summarize: %w", err)
	}
	return result.Text, nil
}
