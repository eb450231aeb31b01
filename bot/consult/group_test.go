package consult

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/bottest"
	"ductor/bot/message"
	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/side"
)

// panel answers each question to a group in the same way.
type panel struct {
	desk
	answer orchestrator.GroupAnswer
}

func (*panel) Begin(ctx context.Context, _ orchestrator.ConversationID) (context.Context, func()) {
	return ctx, func() {}
}

func (p *panel) Group(context.Context, orchestrator.GroupQuestion,
	func(orchestrator.GroupStep)) (orchestrator.GroupAnswer, error) {
	return p.answer, p.err
}

// finished records the messages that a transaction stores.
type finished struct {
	journal
	rows []orchestrator.Message
}

func (f *finished) FinishUpdates(_ context.Context, _ []int64, rows ...orchestrator.Message) error {
	f.rows = append(f.rows, rows...)
	return nil
}

// A group names each model that failed and the reason, below the answers. If there is no conclusion, it offers to ask
// again there.
func TestAGroupNamesTheModelsThatFailed(t *testing.T) {
	models := []orchestrator.ModelChoice{{Agent: "claude"}, {Agent: "mine"}, {Agent: "codex"}}
	says := func(i int) orchestrator.GroupStep {
		answer := orchestrator.ConsultAnswer{Model: models[i], Text: "It is this."}
		return orchestrator.GroupStep{Round: 1, Model: models[i], Answer: answer}
	}
	fails := func(i int, err error) orchestrator.GroupStep {
		return orchestrator.GroupStep{Round: 1, Model: models[i], Err: err}
	}
	conclusion := says(0)
	conclusion.Round = 2
	noConclusion := fails(0, side.ErrTooLate)
	noConclusion.Round = 2
	refused := cli.Failf(cli.Refused, "mine", "it has no model")
	const mine, late = "⚠️ Mine: Mine refused this request: it has no model.", "⚠️ Codex: Codex took too long"
	for name, tc := range map[string]struct {
		steps      []orchestrator.GroupStep
		conclusion orchestrator.GroupStep
		err        error
		texts      []string // parts of the messages, in order
		again      bool
	}{
		"one failed":    {[]orchestrator.GroupStep{says(0), fails(1, refused), says(2)}, conclusion, nil, []string{"💬 Claude", "💬 Codex", "Conclusion of Claude", mine}, false},
		"one is left":   {[]orchestrator.GroupStep{says(0), fails(1, refused), fails(2, side.ErrTooLate)}, orchestrator.GroupStep{}, orchestrator.ErrNoGroup, []string{"💬 Claude", mine + "\n" + late + ", so there is no answer.\nFewer than two models answered"}, true},
		"all failed":    {[]orchestrator.GroupStep{fails(1, refused), fails(2, side.ErrTooLate)}, orchestrator.GroupStep{}, orchestrator.ErrNoGroup, []string{mine + "\n" + late}, true},
		"no conclusion": {[]orchestrator.GroupStep{says(0), says(2)}, noConclusion, nil, []string{"💬 Claude", "💬 Codex", "⚖️ Conclusion of Claude: Claude took too long"}, true},
		"all answered":  {[]orchestrator.GroupStep{says(0), says(2)}, conclusion, nil, []string{"💬 Claude", "💬 Codex", "Conclusion of Claude"}, false},
		"stopped":       {[]orchestrator.GroupStep{says(0), fails(1, cli.ErrAborted)}, orchestrator.GroupStep{}, cli.ErrAborted, []string{"💬 Claude"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				chat, out, kept := bottest.NewChat(t), bottest.NewOutbox(), &finished{journal: journal{bottest.NewJournal()}}
				log := slog.New(slog.DiscardHandler)
				p := &panel{desk: desk{agent: "claude", err: tc.err}, answer: orchestrator.GroupAnswer{Steps: tc.steps, Conclusion: tc.conclusion}}
				s := New(Options{
					Consults: p, Desk: p, Most: func() int { return 0 }, Journal: kept, Log: log, Now: time.Now,
					Messages: message.New(out, chat, kept, nil, log), NewID: func() string { return "q1" },
					Finish: func(context.Context, []int64, ...orchestrator.Message) bool { return true },
					Beside: func(f func(context.Context)) { f(t.Context()) },
				})
				q := question{Models: models, Rounds: 1, Text: "Which?", ReplyTo: 5}
				if err := s.begin(t.Context(), press(1, orchestrator.RoleUser), q); err != nil {
					t.Fatal(err)
				}
				var last message.Content
				shown := 0
				for _, row := range kept.rows {
					if strings.HasPrefix(row.Key, questionPrefix) {
						continue
					}
					last = message.Content{}
					if err := json.Unmarshal(row.Content, &last); err != nil {
						t.Fatal(err)
					}
					if shown >= len(tc.texts) || !strings.Contains(last.Text.Text, tc.texts[shown]) {
						t.Errorf("message %d: %q", shown, last.Text.Text)
					}
					if shown++; (last.ReplyTo == 5) != (shown == 1) {
						t.Errorf("message %d replies to %d", shown, last.ReplyTo)
					}
				}
				again := len(last.Keyboard) == 1 && strings.Contains(last.Keyboard[0][0].Text, "Ask again")
				if shown != len(tc.texts) || again != tc.again {
					t.Errorf("%d messages, want %d; the button to ask again: %v", shown, len(tc.texts), again)
				}
				if err := out.Drain(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
