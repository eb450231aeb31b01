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

// askPanel asks a question and returns the messages that follow the progress message.
func askPanel(t *testing.T, p *panel, q question) (all []message.Content) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		out, kept := bottest.NewOutbox(), &finished{journal: journal{bottest.NewJournal()}}
		log := slog.New(slog.DiscardHandler)
		s := New(Options{
			Consults: p, Desk: p, Most: func() int { return 0 }, Journal: kept, Log: log, Now: time.Now,
			Messages: message.New(out, bottest.NewChat(t), kept, nil, log), NewID: func() string { return "q1" },
			Finish: func(context.Context, []int64, ...orchestrator.Message) bool { return true },
			Beside: func(f func(context.Context)) { f(t.Context()) },
		})
		if err := s.begin(t.Context(), press(1, orchestrator.RoleUser), q); err != nil {
			t.Fatal(err)
		}
		for _, row := range kept.rows {
			if strings.HasPrefix(row.Key, questionPrefix) {
				continue
			}
			var c message.Content
			if err := json.Unmarshal(row.Content, &c); err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
		if err := out.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return all
}

// Below its answers, a group names each model that failed and the reason. Without a conclusion, the last message has
// the button to ask again.
func TestAGroupNamesTheModelsThatFailed(t *testing.T) {
	models := []orchestrator.ModelChoice{{Agent: "claude"}, {Agent: "mine"}, {Agent: "codex"}}
	step := func(round, model int, err error) orchestrator.GroupStep {
		s := orchestrator.GroupStep{Round: round, Model: models[model], Err: err}
		if err == nil {
			s.Answer = orchestrator.ConsultAnswer{Model: models[model], Text: "It is this."}
		}
		return s
	}
	refused := cli.Failf(cli.Refused, "mine", "it has no model")
	one, other := step(1, 0, nil), step(1, 2, nil)
	mine, late := step(1, 1, refused), step(1, 2, side.ErrTooLate)
	const why = "⚠️ Mine: Mine refused this request: it has no model."
	const both = why + "\n⚠️ Codex: Codex took too long, so there is no answer.\nFewer than two models answered"
	const noConclusion = "⚖️ Conclusion of Claude: Claude took too long"
	none := orchestrator.GroupStep{}
	type steps = []orchestrator.GroupStep
	for name, tc := range map[string]struct {
		steps      steps
		conclusion orchestrator.GroupStep
		err        error
		texts      []string // parts of the messages, in order
		again      bool
	}{
		"one failed": {
			steps{one, mine, other}, step(2, 0, nil), nil,
			[]string{"💬 Claude", "💬 Codex", "Conclusion of Claude", why}, false,
		},
		"one is left": {
			steps{one, mine, late}, none, orchestrator.ErrNoGroup, []string{"💬 Claude", both}, true,
		},
		"all failed": {steps{mine, late}, none, orchestrator.ErrNoGroup, []string{both}, true},
		"no conclusion": {
			steps{one, other}, step(2, 0, side.ErrTooLate), nil, []string{"💬 Claude", "💬 Codex", noConclusion}, true,
		},
		"all answered": {
			steps{one, other}, step(2, 0, nil), nil, []string{"💬 Claude", "💬 Codex", "Conclusion of Claude"}, false,
		},
		"stopped": {steps{one, step(1, 1, cli.ErrAborted)}, none, cli.ErrAborted, []string{"💬 Claude"}, false},
	} {
		answer := orchestrator.GroupAnswer{Steps: tc.steps, Conclusion: tc.conclusion}
		p := &panel{desk{agent: "claude", err: tc.err}, answer}
		shown := askPanel(t, p, question{Models: models, Rounds: 1, Text: "Which?", ReplyTo: 5})
		if len(shown) != len(tc.texts) {
			t.Fatalf("%s: %d messages, want %d", name, len(shown), len(tc.texts))
		}
		for i, c := range shown {
			if !strings.Contains(c.Text.Text, tc.texts[i]) || (c.ReplyTo == 5) != (i == 0) {
				t.Errorf("%s: message %d replies to %d with %q", name, i, c.ReplyTo, c.Text.Text)
			}
		}
		k := shown[len(shown)-1].Keyboard
		if again := len(k) == 1 && strings.Contains(k[0][0].Text, "Ask again"); again != tc.again {
			t.Errorf("%s: the last message has %v", name, k)
		}
	}
}
