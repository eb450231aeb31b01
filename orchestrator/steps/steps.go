// Package steps records what agents do in turns: each tool with its output and each changed file with its diff, and finds it for
// users of the conversation.
package steps

import (
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"ductor/cli"
	"ductor/orchestrator"
)

// Bounds of what is kept of one turn, in bytes where they count no steps.
const (
	mostSteps  = 900
	mostOutput = 256 << 10 // of one step, the end of it
	mostOfTurn = 4 << 20
	mostTitle  = 16 << 10
)

// Recorder collects the steps of one turn, in memory. Its caller serializes the calls.
type Recorder struct {
	Now func() time.Time

	asks  map[cli.ApprovalID]cli.ToolID // that tools wait for
	since map[cli.ToolID]time.Time      // when tools that waited began to run; zero while they wait
	steps []orchestrator.Step
	open  map[cli.ToolID]int // places of tools in steps
	size  int
	first int // the first step of which the output may still be kept
}

// Take records an event, out of which secrets were taken.
func (r *Recorder) Take(ev cli.Event) {
	switch ev := ev.(type) {
	case cli.ApprovalAsked:
		if r.asks == nil {
			r.asks, r.since = make(map[cli.ApprovalID]cli.ToolID), make(map[cli.ToolID]time.Time)
		}
		if ev.Started != "" {
			r.asks[ev.ID], r.since[ev.Started] = ev.Started, time.Time{}
		}
	case cli.ApprovalWithdrawn:
		if tool, asked := r.asks[ev.ID]; asked {
			delete(r.asks, ev.ID)
			r.since[tool] = r.Now()
		}
	case cli.ToolStarted:
		if i := r.add(orchestrator.Step{Tool: ev.Name, Title: whole(ev)}); i >= 0 {
			if r.open == nil {
				r.open = make(map[cli.ToolID]int)
			}
			r.open[ev.ID] = i
		}
	case cli.ToolEnded:
		i, known := r.open[ev.ID]
		if !known {
			return
		}
		delete(r.open, ev.ID)
		s := &r.steps[i]
		if since, waited := r.since[ev.ID]; waited && since.IsZero() {
			ev.Duration = 0
		} else if waited { // the wait for a user is no time that it took
			ev.Duration = min(ev.Duration, max(r.Now().Sub(since), 0))
		}
		s.Duration, s.ExitCode, s.Err = ev.Duration, ev.ExitCode, ev.Err
		r.keep(s, ev.Output)
	case cli.FileChanged:
		if i := r.add(orchestrator.Step{Title: ev.Path, Change: ev.Kind}); i >= 0 {
			r.keep(&r.steps[i], ev.Diff)
		}
	}
}

func (r *Recorder) add(s orchestrator.Step) int {
	if len(r.steps) >= mostSteps {
		return -1
	}
	s.Number = len(r.steps) + 1
	s.Title = strings.Clone(cut(s.Title, mostTitle))
	r.steps = append(r.steps, s)
	return len(r.steps) - 1
}

// keep records the end of an output. The oldest outputs go where those of the turn are too much.
func (r *Recorder) keep(s *orchestrator.Step, output string) {
	from := max(len(output)-mostOutput, 0)
	for from > 0 && from < len(output) && !utf8.RuneStart(output[from]) {
		from++
	}
	s.Output, s.Lost = strings.Clone(output[from:]), from
	s.Size = len(s.Output)
	r.size += s.Size
	for ; r.size > mostOfTurn && r.first < len(r.steps)-1; r.first++ {
		old := &r.steps[r.first]
		r.size -= old.Size
		old.Lost, old.Size, old.Output = old.Lost+old.Size, 0, ""
	}
}

// Steps are the steps so far.
func (r *Recorder) Steps() []orchestrator.Step {
	return r.steps
}

// whole is the whole command of a tool, or its path.
func whole(ev cli.ToolStarted) string {
	var in struct {
		Command json.RawMessage `json:"command"`
	}
	if json.Unmarshal(ev.Input, &in) != nil || len(in.Command) == 0 {
		return ev.Title
	}
	var line string
	var words []string
	switch {
	case json.Unmarshal(in.Command, &line) == nil && line != "":
		return line
	case json.Unmarshal(in.Command, &words) == nil && len(words) > 0:
		return strings.Join(words, " ")
	}
	return ev.Title
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// Store is what a Reader reads.
type Store interface {
	Turn(ctx context.Context, id cli.TurnID) (orchestrator.Turn, error)
	StepsOf(ctx context.Context, turn cli.TurnID) ([]orchestrator.Step, error)
	Step(ctx context.Context, turn cli.TurnID, number int) (orchestrator.Step, error)
}

// Reader finds steps for users; see orchestrator.Steps.
type Reader struct{ Store Store }

// StepsOf lists the steps of a turn of a conversation, without their outputs.
func (r Reader) StepsOf(ctx context.Context, in orchestrator.ConversationID, turn cli.TurnID) ([]orchestrator.Step, error) {
	if err := r.check(ctx, in, turn); err != nil {
		return nil, err
	}
	return r.Store.StepsOf(ctx, turn)
}

// Step is a step of a turn of a conversation, with its output.
func (r Reader) Step(ctx context.Context, in orchestrator.ConversationID, turn cli.TurnID, number int) (orchestrator.Step, error) {
	if err := r.check(ctx, in, turn); err != nil {
		return orchestrator.Step{}, err
	}
	return r.Store.Step(ctx, turn, number)
}

// AnswerOf gives what the agent said in a turn of a conversation.
func (r Reader) AnswerOf(ctx context.Context, in orchestrator.ConversationID, turn cli.TurnID) (string, error) {
	t, err := r.turn(ctx, in, turn)
	return t.Outcome.Text, err
}

func (r Reader) check(ctx context.Context, in orchestrator.ConversationID, turn cli.TurnID) error {
	_, err := r.turn(ctx, in, turn)
	return err
}

func (r Reader) turn(ctx context.Context, in orchestrator.ConversationID, turn cli.TurnID) (orchestrator.Turn, error) {
	t, err := r.Store.Turn(ctx, turn)
	if err == nil && t.Prompt.Conversation != in {
		return orchestrator.Turn{}, orchestrator.ErrElsewhere
	}
	return t, err
}
