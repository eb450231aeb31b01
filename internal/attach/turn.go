package attach

import (
	"cmp"
	"slices"

	"ductor/cli"
	"ductor/internal/attach/wire"
	"ductor/orchestrator"
)

// Limits of an entry, in bytes.
const (
	mostOutput = 64 << 10 // maximum size of the output of one tool, or of one diff
	mostOfTurn = 1 << 20  // maximum size of all outputs and diffs of a turn
	mostAnswer = 2 << 20  // maximum size of an answer in an entry
)

// turn is the part of a running turn that terminals show. Hub.mu guards it.
type turn struct {
	entry  wire.Entry // the entry, with an empty Answer
	answer []byte
	size   int // total size of inputs, outputs and diffs in the entry, in bytes
}

func newTurn(t orchestrator.Turn, replayed bool) *turn {
	e := entryOf(t)
	e.State, e.Replayed = wire.StateRunning, replayed
	return &turn{entry: e}
}

// shown returns a copy of the entry, including the answer.
func (t *turn) shown() *wire.Entry {
	e := t.entry
	e.Answer = string(t.answer)
	e.Tools, e.Changes, e.Plan = slices.Clone(e.Tools), slices.Clone(e.Changes), slices.Clone(e.Plan)
	return &e
}

// observe applies an event. It returns the message for terminals, or nil if terminals do not show the event. After a
// restart, ductor replays the old events of a turn. observe returns nil for these events, and the complete entry when
// the replay ends.
func (t *turn) observe(ev cli.Event) *wire.Message {
	m := t.apply(ev)
	if _, ends := ev.(cli.CaughtUp); ends && t.entry.Replayed {
		t.entry.Replayed = false
		return &wire.Message{Entry: t.shown()}
	}
	if t.entry.Replayed {
		return nil
	}
	return m
}

func (t *turn) apply(ev cli.Event) *wire.Message {
	id, at := t.entry.Turn, len(t.answer)
	switch ev := ev.(type) {
	case cli.TextDelta:
		t.answer = append(t.answer, ev.Text...)
		return &wire.Message{Text: &wire.Text{Turn: id, Offset: at, Text: ev.Text}}
	case cli.TextRetracted:
		t.answer = t.answer[:max(at-ev.Bytes, 0)]
		return &wire.Message{Text: &wire.Text{Turn: id, Offset: len(t.answer)}}
	case cli.ThinkingDelta:
		return &wire.Message{Thought: &wire.Thought{Turn: id, Text: ev.Text}}
	case cli.ToolStarted:
		t.grow(len(ev.Input))
		tool := wire.Tool{
			Turn: id, ID: string(ev.ID), Parent: string(ev.Parent), Name: ev.Name, Title: ev.WholeTitle(),
			Input: slices.Clone(ev.Input), State: wire.ToolRunning, Offset: at,
		}
		t.entry.Tools = append(t.entry.Tools, tool)
		return &wire.Message{Tool: &tool}
	case cli.ToolChanged:
		if i := t.indexOf(ev.ID); i >= 0 {
			t.grow(len(ev.Input))
			tool := &t.entry.Tools[i]
			tool.Name, tool.Title, tool.Input = ev.Name, ev.WholeTitle(), slices.Clone(ev.Input)
			shown := *tool
			return &wire.Message{Tool: &shown}
		}
	case cli.ToolEnded:
		return t.endTool(ev)
	case cli.FileChanged:
		diff, _ := cli.Tail(ev.Diff, mostOutput)
		t.grow(len(diff))
		change := wire.Change{Turn: id, Path: ev.Path, Kind: string(ev.Kind), Diff: diff, Offset: at}
		t.entry.Changes = append(t.entry.Changes, change)
		return &wire.Message{Change: &change}
	case cli.PlanChanged:
		t.entry.Plan = planOf(ev)
		return &wire.Message{Plan: &wire.Plan{Turn: id, Steps: t.entry.Plan}}
	case cli.SessionStarted:
		return t.setModel(ev.Model)
	case cli.Substituted:
		t.entry.Agent, t.entry.Model = string(ev.By), ""
	}
	if s := statusOf(ev, id); s != nil {
		return &wire.Message{Status: s}
	}
	return nil
}

func (t *turn) setModel(model cli.ModelID) *wire.Message {
	if model == "" || t.entry.Model == string(model) {
		return nil
	}
	t.entry.Model = string(model)
	return &wire.Message{Entry: t.shown()}
}

func (t *turn) indexOf(tool cli.ToolID) int {
	return slices.IndexFunc(t.entry.Tools, func(known wire.Tool) bool { return known.ID == string(tool) })
}

func (t *turn) endTool(ev cli.ToolEnded) *wire.Message {
	i := t.indexOf(ev.ID)
	if i < 0 {
		return nil
	}
	tool := &t.entry.Tools[i]
	tool.State, tool.ExitCode, tool.Error = wire.ToolDone, ev.ExitCode, ev.Err
	tool.DurationMS = ev.Duration.Milliseconds()
	if ev.Failed() {
		tool.State = wire.ToolFailed
	}
	output, lost := cli.Tail(ev.Output, mostOutput)
	t.grow(len(output))
	tool.Output, tool.Lost = output, lost
	shown := *tool
	return &wire.Message{Tool: &shown}
}

// grow adds n to the size of the entry. If the entry is then too large, grow removes the oldest outputs of the entry.
func (t *turn) grow(n int) {
	t.size += n
	for i := 0; i < len(t.entry.Tools) && t.size > mostOfTurn; i++ {
		old := &t.entry.Tools[i]
		t.size -= len(old.Output) + len(old.Input)
		old.Lost, old.Output, old.Input = old.Lost+len(old.Output), "", nil
	}
	for i := 0; i < len(t.entry.Changes) && t.size > mostOfTurn; i++ {
		t.size -= len(t.entry.Changes[i].Diff)
		t.entry.Changes[i].Diff = ""
	}
}

func planOf(ev cli.PlanChanged) (steps []wire.Step) {
	for _, s := range ev.Steps {
		steps = append(steps, wire.Step{Text: s.Text, State: string(cmp.Or(s.State, cli.PlanOpen))})
	}
	return steps
}

// statusOf describes an event in a sentence for the user. It returns nil if terminals do not show the event.
func statusOf(ev cli.Event, turn string) *wire.Status {
	s := &wire.Status{Turn: turn}
	switch ev := ev.(type) {
	case cli.Status:
		s.Warning = ev.Kind == cli.StatusWarning || ev.Kind == cli.StatusNotice
		s.Sentence = cmp.Or(ev.Detail, statusSentence(ev.Kind))
		if ev.Kind == cli.StatusIdle {
			s.Sentence = ""
		}
	case cli.CompactBoundary:
		s.Warning, s.Sentence = true, "The agent shortened its context."
	case cli.RateLimited:
		s.Warning, s.Sentence = true, "The agent's usage limit is near."
		if !ev.ResetAt.IsZero() {
			s.Sentence = "The agent's usage limit is near; it resets at " + ev.ResetAt.Local().Format("15:04") + "."
		}
	case cli.Substituted:
		s.Warning, s.Sentence = true, ev.By.Name()+" runs this turn, because "+ev.Why.Agent.Name()+" could not."
	case cli.HandedOver:
		if ev.LeftOut == 0 && !ev.Shortened {
			return nil
		}
		s.Warning, s.Sentence = true, ev.To.Name()+" got a shortened history of this session."
	default:
		return nil
	}
	return s
}

func statusSentence(kind cli.StatusKind) string {
	switch kind {
	case cli.StatusStarting:
		return "Starting…"
	case cli.StatusWaiting:
		return "Waiting for the model…"
	case cli.StatusCompacting:
		return "Shortening the context…"
	case cli.StatusRetrying:
		return "The model's service failed; trying again…"
	case cli.StatusPaused:
		return "Waiting before the next try…"
	}
	return ""
}
