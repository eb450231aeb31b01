package handoff

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/side"
)

// summaryStore stores summaries, and runs an agent that answers with the number of its calls.
type summaryStore struct {
	summary  orchestrator.Summary
	asked    []string
	released int
	settled  int // turns that ductor settled
	answer   func(ctx context.Context) cli.Result
}

func (s *summaryStore) Summary(context.Context, orchestrator.SessionID) (orchestrator.Summary, error) {
	return s.summary, nil
}

func (s *summaryStore) SaveSummary(_ context.Context, now orchestrator.Summary) error {
	s.summary = now
	return nil
}

func (s *summaryStore) Release(cli.Conversation) { s.released++ }
func (s *summaryStore) Settled(cli.TurnID)       { s.settled++ }

func (s *summaryStore) Run(ctx context.Context, agent cli.Agent, req cli.Request, _ func(cli.Event)) cli.Result {
	if agent != "cheap" || req.Permission != cli.Plan || req.Attended || req.Resume != "" ||
		req.Project != cli.WithoutProject || !req.TextOnly {
		return cli.Result{Err: cli.Failf(cli.UnknownFailure, agent, "rights of %+v", req)}
	}
	s.asked = append(s.asked, req.Prompt)
	if s.answer != nil {
		return s.answer(ctx)
	}
	return cli.Result{Text: fmt.Sprintf("summary %d", len(s.asked))}
}

func (s *summaryStore) summarizer() *Summarizer {
	return &Summarizer{
		Store: s, Side: side.Client{Gateway: s, NewID: func() string { return "id" }},
		Model: orchestrator.ModelChoice{Agent: "cheap"}, Wait: 20 * time.Second,
	}
}

// said returns turns that together exceed the budgets of this test, while the newest alone fit.
func said(n int) (turns []orchestrator.Turn) {
	for i := range n {
		t := turn(fmt.Sprintf("question %d", i), strings.Repeat(fmt.Sprintf("answer %d. ", i), 100))
		t.ID = cli.TurnID(fmt.Sprint(i))
		turns = append(turns, t)
	}
	return turns
}

// No turn is summarized twice: a later summary extends the stored one.
func TestASummaryIsExtended(t *testing.T) {
	s := &summaryStore{}
	const budget = 1500
	told, err := s.summarizer().Write(t.Context(), cli.Request{}, "s", said(10), budget)
	if err != nil || told.Turns != 10 || told.LeftOut != 0 || told.Tokens > budget ||
		!strings.Contains(told.Text, "summary 1") || !strings.Contains(told.Text, "question 9") {
		t.Errorf("%+v, %v", told, err)
	}
	if !strings.Contains(s.asked[0], "question 0") || strings.Contains(s.asked[0], "question 9") {
		t.Errorf("the model is asked %s", s.asked[0])
	}
	first := s.summary.Until
	if told, err = s.summarizer().Write(t.Context(), cli.Request{}, "s", said(10), budget); err != nil ||
		len(s.asked) != 1 || !strings.Contains(told.Text, "summary 1") {
		t.Errorf("asked %d times: %+v, %v", len(s.asked), told, err)
	}
	if _, err = s.summarizer().Write(t.Context(), cli.Request{}, "s", said(14), budget); err != nil ||
		len(s.asked) != 2 {
		t.Errorf("asked %d times, %v", len(s.asked), err)
	}
	second := s.asked[1]
	if !strings.Contains(second, "summary 1") || strings.Contains(second, "question "+string(first)+"\n") ||
		strings.Contains(second, "question 0\n") {
		t.Errorf("what was summarized is summarized again: %s", second)
	}
	if s.summary.Text != "summary 2" || s.summary.Until == first || s.released != 2 || s.settled != 2 {
		t.Errorf("%+v after %s, released %d times, %d are settled", s.summary, first, s.released, s.settled)
	}
}

func TestASummaryThatFails(t *testing.T) {
	for name, answer := range map[string]func(ctx context.Context) cli.Result{
		"it fails":       func(context.Context) cli.Result { return cli.Result{Err: cli.Failf(cli.NotLoggedIn, "cheap", "")} },
		"it is empty":    func(context.Context) cli.Result { return cli.Result{Text: " \n"} },
		"it hangs":       func(ctx context.Context) cli.Result { <-ctx.Done(); return cli.Cut(ctx, "cheap") },
		"late with text": func(ctx context.Context) cli.Result { <-ctx.Done(); return cli.Result{Text: "half"} },
	} {
		synctest.Test(t, func(t *testing.T) {
			s, began := &summaryStore{answer: answer}, time.Now()
			if told, err := s.summarizer().Write(t.Context(), cli.Request{}, "s", said(10), 1500); err == nil ||
				s.summary.Text != "" {
				t.Errorf("%s: %+v", name, told)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("%s: after %s", name, took)
			}
		})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cli.ErrAborted)
	s := &summaryStore{answer: func(ctx context.Context) cli.Result { return cli.Cut(ctx, "cheap") }}
	if _, err := s.summarizer().Write(ctx, cli.Request{}, "s", said(10), 1500); !errors.Is(err, cli.ErrAborted) {
		t.Errorf("aborted: %v", err)
	}
}
