// Package steps records what agents do in turns: each tool call with its output, and each changed file with its diff.
// Users of the conversation can read these steps.
package steps

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"ductor/cli"
	"ductor/orchestrator"
)

// Limits for the stored steps of one turn. All except mostSteps are in bytes.
const (
	mostSteps  = 900
	mostOutput = 256 << 10 // stored output of one step; ductor cuts the beginning of a longer output
	mostInput  = 32 << 10  // stored input of one tool call
	mostOfTurn = 4 << 20
	mostTitle  = 16 << 10
)

// Recorder collects the steps of one turn in memory. It is not safe for concurrent use.
type Recorder struct {
	Now func() time.Time

	asks  map[cli.ApprovalID]cli.ToolID // the tool for which each permission request was made
	since map[cli.ToolID]time.Time      // when each tool got permission; zero while the tool waits for it
	steps []orchestrator.Step
	open  map[cli.ToolID]int // running tools, as indexes into the slice steps
	size  int
	said  int // length of the answer so far, in bytes
	first int // index of the first step that still has its output
}

// Observe records an event. The event must not contain secrets.
func (r *Recorder) Observe(ev cli.Event) {
	switch ev := ev.(type) {
	case cli.TextDelta:
		r.said += len(ev.Text)
	case cli.TextRetracted:
		r.said = max(r.said-ev.Bytes, 0)
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
		if i := r.appendStep(orchestrator.Step{Tool: ev.Name, Title: ev.WholeTitle(),
			Input: string(cli.ShortInput(ev.Input, mostInput))}); i >= 0 {
			if r.open == nil {
				r.open = make(map[cli.ToolID]int)
			}
			r.open[ev.ID] = i
		}
	case cli.ToolChanged:
		if i, known := r.open[ev.ID]; known {
			s := &r.steps[i]
			r.size -= len(s.Input)
			s.Tool, s.Title = ev.Name, strings.Clone(cut(ev.WholeTitle(), mostTitle))
			s.Input = string(cli.ShortInput(ev.Input, mostInput))
			r.size += len(s.Input)
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
		} else if waited { // do not count the time in which the tool waited for a user
			ev.Duration = min(ev.Duration, max(r.Now().Sub(since), 0))
		}
		s.Duration, s.ExitCode, s.Err = ev.Duration, ev.ExitCode, ev.Err
		r.storeOutput(s, ev.Output)
	case cli.FileChanged:
		if i := r.appendStep(orchestrator.Step{Title: ev.Path, Change: ev.Kind}); i >= 0 {
			r.storeOutput(&r.steps[i], ev.Diff)
		}
	}
}

func (r *Recorder) appendStep(s orchestrator.Step) int {
	if len(r.steps) >= mostSteps {
		return -1
	}
	s.Number, s.Offset = len(r.steps)+1, r.said
	s.Title = strings.Clone(cut(s.Title, mostTitle))
	r.size += len(s.Input)
	r.steps = append(r.steps, s)
	return len(r.steps) - 1
}

// storeOutput stores the end of an output. If the arguments and outputs of all steps together are too long, storeOutput
// drops the oldest of them.
func (r *Recorder) storeOutput(s *orchestrator.Step, output string) {
	s.Output, s.Lost = cli.Tail(output, mostOutput)
	s.Size = len(s.Output)
	r.size += s.Size
	for ; r.size > mostOfTurn && r.first < len(r.steps)-1; r.first++ {
		old := &r.steps[r.first]
		r.size -= old.Size + len(old.Input)
		old.Input = string(cli.ShortInput(json.RawMessage(old.Input), 0))
		r.size += len(old.Input)
		old.Lost, old.Size, old.Output = old.Lost+old.Size, 0, ""
	}
}

// Steps returns the steps so far.
func (r *Recorder) Steps() []orchestrator.Step {
	return r.steps
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

// Store contains the methods of the store that a Reader needs.
type Store interface {
	Turn(ctx context.Context, id cli.TurnID) (orchestrator.Turn, error)
	StepsOf(ctx context.Context, turn cli.TurnID) ([]orchestrator.Step, error)
	Step(ctx context.Context, turn cli.TurnID, number int) (orchestrator.Step, error)
}

// Reader implements orchestrator.Steps.
type Reader struct{ Store Store }

// StepsOf implements orchestrator.Steps.
func (r Reader) StepsOf(ctx context.Context, in orchestrator.ConversationID, turn cli.TurnID) ([]orchestrator.Step,
	error) {
	if _, err := r.turn(ctx, in, turn); err != nil {
		return nil, err
	}
	return r.Store.StepsOf(ctx, turn)
}

// Step implements orchestrator.Steps.
func (r Reader) Step(ctx context.Context, in orchestrator.ConversationID, turn cli.TurnID,
	number int) (orchestrator.Step, error) {
	if _, err := r.turn(ctx, in, turn); err != nil {
		return orchestrator.Step{}, err
	}
	return r.Store.Step(ctx, turn, number)
}

// AnswerOf implements orchestrator.Steps.
func (r Reader) AnswerOf(ctx context.Context, in orchestrator.ConversationID, turn cli.TurnID) (string, error) {
	t, err := r.turn(ctx, in, turn)
	return t.Outcome.Text, err
}

func (r Reader) turn(ctx context.Context, in orchestrator.ConversationID, turn cli.TurnID) (orchestrator.Turn, error) {
	t, err := r.Store.Turn(ctx, turn)
	if err == nil && t.Prompt.Conversation != in {
		return orchestrator.Turn{}, orchestrator.ErrElsewhere
	}
	return t, err
}

// Events returns the events that a Recorder turned into these steps: the start and the end of each tool call, and each
// changed file. The events contain no input and no output.
func Events(stored []orchestrator.Step) (events []cli.Event) {
	for _, s := range stored {
		if s.Change != "" {
			events = append(events, cli.FileChanged{Path: s.Title, Kind: s.Change})
			continue
		}
		id := cli.ToolID(strconv.Itoa(s.Number))
		events = append(events, cli.ToolStarted{ID: id, Name: s.Tool},
			cli.ToolEnded{ID: id, ExitCode: s.ExitCode, Err: s.Err})
	}
	return events
}
