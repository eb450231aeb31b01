package edits

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ductor/bot/bottest"
	"ductor/cli"
	"ductor/orchestrator"
)

// idle is a desk whose turns have all ended.
type idle struct{}

func (idle) Status(context.Context, orchestrator.ConversationID) (orchestrator.Status, error) {
	return orchestrator.Status{}, nil
}

func (idle) Restart(context.Context, cli.TurnID, string, orchestrator.Press) (orchestrator.Receipt, error) {
	return orchestrator.Receipt{}, orchestrator.ErrNoTurn
}

// Each press that is too late to start over gets the same answer.
func TestStartingOverTooLateTwice(t *testing.T) {
	prompts := NewPrompts(bottest.NewJournal(), nil, nil, slog.New(slog.DiscardHandler))
	s := New(Options{Desk: idle{}, Prompts: prompts})
	if err := prompts.save(t.Context(), "a", editedPrompt{Text: "go left", Offer: "offer"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		a, err := s.Restart(t.Context(), orchestrator.Press{}, "a")
		if err != nil || a.Text != "Too late: it has ended." || a.Edit.Text == "" {
			t.Errorf("it says %+v, %v", a, err)
		}
	}
}

// town is where the prompts of a test run.
type town struct {
	status   orchestrator.Status
	fail     error
	waits    bool
	job      orchestrator.JobStatus
	jobError error
}

func (w *town) Status(context.Context, orchestrator.ConversationID) (orchestrator.Status, error) {
	return w.status, w.fail
}

func (*town) Restart(context.Context, cli.TurnID, string, orchestrator.Press) (orchestrator.Receipt, error) {
	return orchestrator.Receipt{}, orchestrator.ErrNoTurn
}

// missing stands for the methods that the tests do not call.
type missing interface{ orchestrator.Jobs }

type jobs struct {
	missing
	*town
}

func (j jobs) Job(_ context.Context, id orchestrator.JobID, _ orchestrator.ConversationID) (orchestrator.JobStatus,
	error) {
	if id != orchestrator.LaterJob("a") {
		return orchestrator.JobStatus{}, errors.New("another job")
	}
	return j.job, j.jobError
}

// lateRig is a Screen whose answers the test collects.
type lateRig struct {
	*town
	*Screen
	answers []string
}

var here = orchestrator.ConversationID{Chat: 1}

func newLateRig() *lateRig {
	r := &lateRig{town: &town{jobError: orchestrator.ErrNoJob}}
	r.Screen = New(Options{
		Desk: r.town, Prompts: NewPrompts(nil, nil, nil, nil), Jobs: jobs{town: r.town}, Lang: nil,
		Waits: func(orchestrator.ConversationID, int) bool { return r.waits },
		Finish: func(_ context.Context, _ []int64, notices ...orchestrator.Message) bool {
			for _, n := range notices {
				r.answers = append(r.answers, string(n.Content))
			}
			return true
		},
	})
	return r
}

// end ends a turn with the given prompt.
func (r *lateRig) end(message int, text string, o orchestrator.Outcome, wants orchestrator.Wants) {
	prompt := orchestrator.Prompt{Conversation: here, Message: message, Text: text}
	r.Prompts.remember(orchestrator.Turn{ID: "a", Prompt: prompt, Wants: wants}, o, false)
}

// edit edits a message, and reports whether the user got an answer.
func (r *lateRig) edit(t *testing.T, in orchestrator.ConversationID, message int, words string,
	wants ...*orchestrator.Wants) bool {
	t.Helper()
	before := len(r.answers)
	e := Edit{By: orchestrator.Press{Conversation: in}, Message: message, Prompt: message, Text: words, Words: words}
	if len(wants) > 0 {
		e.Wants = wants[0]
	}
	answered := r.AnswerLate(t.Context(), e)
	if answered != (len(r.answers) > before) {
		t.Errorf("it reports %v with %d answers", answered, len(r.answers)-before)
	}
	return answered
}

// The answer to an edit of a prompt that has run comes once for each message, and only if the user's words changed.
func TestEditsOfPromptsThatRan(t *testing.T) {
	r, done := newLateRig(), orchestrator.Outcome{State: orchestrator.TurnDone}
	there := orchestrator.ConversationID{Chat: 1, Topic: 2}
	r.end(0, "of a job", done, orchestrator.Wants{})
	r.end(1, "[In reply to you]\n> a quote\n\ngo left", done, orchestrator.Wants{})
	for _, c := range []struct {
		in      orchestrator.ConversationID
		message int
		words   string
		want    bool
	}{
		{here, 0, "x", false}, {here, 1, "go left", false}, {there, 1, "go right", false}, {here, 1, "go right", true},
		{here, 1, "go back", false}, {here, 3, "x", false},
	} {
		if got := r.edit(t, c.in, c.message, c.words); got != c.want {
			t.Errorf("message %d in %v, edited to %q: %v", c.message, c.in, c.words, got)
		}
	}
	r.end(1, "go right", done, orchestrator.Wants{}) // it ran again
	if r.edit(t, here, 1, "go up") {
		t.Error("a message gets a second answer")
	}
	for i := range 3 * mostEnded {
		r.end(10+i, "x", done, orchestrator.Wants{})
		r.end(10+i, "x", done, orchestrator.Wants{})
	}
	if n, m := len(r.Prompts.ended), len(r.Prompts.order); n != mostEnded || m != mostEnded {
		t.Errorf("%d and %d prompts are remembered", n, m)
	}
	if r.edit(t, here, 9+2*mostEnded, "y") || !r.edit(t, here, 10+2*mostEnded, "y") {
		t.Error("the newest prompts are forgotten, or older ones remembered")
	}
}

// A prompt that waits, runs or will run has not "already run".
func TestEditsOfPromptsThatMayRun(t *testing.T) {
	limit := orchestrator.Outcome{State: orchestrator.TurnFailed}
	planned := orchestrator.JobStatus{Job: orchestrator.Job{Kind: orchestrator.JobScheduled}, Next: time.Unix(1, 0)}
	over := planned
	over.Next = time.Time{}
	running := func(turn cli.TurnID, message int) func(*lateRig) {
		return func(r *lateRig) {
			r.status.Running = &orchestrator.RunningTurn{Turn: turn, Message: message, Prompt: "go right"}
		}
	}
	for name, c := range map[string]struct {
		prepare func(r *lateRig)
		want    bool
	}{
		"waits in the queue":  {func(r *lateRig) { r.waits = true }, false},
		"runs again":          {running("b", 1), false},
		"another prompt runs": {running("b", 2), true},
		"its turn is closing": {running("a", 1), true},
		"an unknown status":   {func(r *lateRig) { r.fail = errors.New("the disk") }, false},
		"a job will run it":   {func(r *lateRig) { r.job, r.jobError = planned, nil }, false},
		"a job has run it":    {func(r *lateRig) { r.job, r.jobError = over, nil }, true},
		"an unknown job":      {func(r *lateRig) { r.jobError = errors.New("the disk") }, false},
		"nothing will run it": {func(*lateRig) {}, true},
		"ductor without jobs": {func(r *lateRig) { r.Jobs = nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newLateRig()
			r.end(1, "go left", limit, orchestrator.Wants{})
			c.prepare(r)
			if got := r.edit(t, here, 1, "go right"); got != c.want {
				t.Errorf("an answer: %v", got)
			}
			*r.town = town{jobError: orchestrator.ErrNoJob}
			if got := r.edit(t, here, 1, "go right"); got == c.want {
				t.Errorf("an answer later: %v", got)
			}
		})
	}
}

// The answer depends on whether the agent did anything.
func TestEditsOfPromptsThatFailed(t *testing.T) {
	failed := orchestrator.Outcome{State: orchestrator.TurnFailed}
	text, steps := failed, failed
	text.Text, steps.Steps = "I began", 1
	for _, c := range []struct {
		outcome orchestrator.Outcome
		want    string
	}{
		{failed, "Nothing of this ran."}, {text, "already run"}, {steps, "already run"},
		{orchestrator.Outcome{State: orchestrator.TurnDone}, "already run"},
	} {
		r := newLateRig()
		r.end(1, "go left", c.outcome, orchestrator.Wants{})
		r.edit(t, here, 1, "go right")
		if len(r.answers) != 1 || !strings.Contains(r.answers[0], c.want) {
			t.Errorf("after %+v it answers %q", c.outcome, r.answers)
		}
	}
}

// An edit that only names another agent gets an answer.
func TestEditsOfTheAgentOfAPromptThatRan(t *testing.T) {
	done, codex := orchestrator.Outcome{State: orchestrator.TurnDone}, orchestrator.Wants{Agent: "codex"}
	r := newLateRig()
	r.end(1, "go left", done, orchestrator.Wants{})
	r.end(2, "go left", done, codex)
	if r.edit(t, here, 2, "go left", &codex) {
		t.Error("an edit that changes nothing gets an answer")
	}
	if !r.edit(t, here, 1, "go left", &codex) {
		t.Error("an edit that names another agent gets no answer")
	}
}
