package side

import (
	"context"
	"testing"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// agent answers every question.
type agent struct{}

func (agent) Run(_ context.Context, _ cli.Agent, _ cli.Request, emit func(cli.Event)) cli.Result {
	emit(cli.TextDelta{Text: "42"})
	return cli.Result{Text: "42"}
}
func (agent) Settled(cli.TurnID)       {}
func (agent) Release(cli.Conversation) {}

// tracer counts the events and results of one turn.
type tracer struct{ turns, events, results int }

func (t *tracer) Begin(cli.Agent, cli.Request) orchestrator.TurnTrace {
	t.turns++
	return t
}
func (t *tracer) Observe(cli.Event) { t.events++ }
func (t *tracer) End(cli.Result)    { t.results++ }

// Questions to models beside turns are traced like turns.
func TestQuestionsAreTraced(t *testing.T) {
	traced := &tracer{}
	client := Client{Gateway: agent{}, Tracer: traced, NewID: func() string { return "id" }}
	question := Question{Model: orchestrator.ModelChoice{Agent: "claude"}, Prompt: "why?", Wait: time.Minute}
	result, err := client.Ask(t.Context(), cli.Request{}, question)
	if err != nil || result.Text != "42" || *traced != (tracer{1, 1, 1}) {
		t.Errorf("answered %q, %v; traced %+v", result.Text, err, *traced)
	}
}
