package attach

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"ductor/cli"
	"ductor/internal/attach/wire"
	"ductor/orchestrator"
)

// entryOf converts a stored turn to an entry of the protocol. The entry lacks the turn's steps.
func entryOf(t orchestrator.Turn) wire.Entry {
	e := wire.Entry{
		Turn: string(t.ID), State: wire.State(t.State), Prompt: t.Prompt.Text,
		Terminal: strings.HasPrefix(string(t.ID), wire.TurnPrefix), Job: t.Wants.Title,
		Agent: string(t.Agent), Model: string(t.Model), Queued: t.Queued,
	}
	for _, f := range t.Prompt.Attachments {
		e.Files = append(e.Files, f.Name)
	}
	if e.State.Over() {
		complete(&e, t)
	}
	return e
}

// complete copies the outcome of an ended turn to its entry.
func complete(e *wire.Entry, t orchestrator.Turn) {
	o := t.Outcome
	e.State = wire.State(cmp.Or(o.State, t.State))
	e.Agent, e.Model = cmp.Or(string(o.Agent), e.Agent), cmp.Or(string(o.Model), e.Model)
	e.Answer, e.Failure = cli.Shorten(o.Text, mostAnswer), o.Failure
	e.Ended, e.DurationMS, e.CostUSD = t.Ended, o.Duration.Milliseconds(), o.CostUSD
}

// addSteps adds the stored steps of a turn to its entry. Steps may lack their output, because the store loads outputs
// separately.
func addSteps(e *wire.Entry, steps []orchestrator.Step) {
	for _, s := range steps {
		if s.Change != "" {
			e.Changes = append(e.Changes, wire.Change{Turn: e.Turn, Path: s.Title, Kind: string(s.Change),
				Diff: s.Output, Offset: s.Offset})
			continue
		}
		tool := wire.Tool{
			Turn: e.Turn, ID: strconv.Itoa(s.Number), Name: s.Tool, Title: s.Title, State: wire.ToolDone,
			Output: s.Output, Lost: s.Lost + s.Size - len(s.Output), ExitCode: s.ExitCode, Error: s.Err,
			DurationMS: s.Duration.Milliseconds(), Offset: s.Offset,
		}
		if json.Valid([]byte(s.Input)) {
			tool.Input = json.RawMessage(s.Input)
		}
		if (cli.ToolEnded{Err: s.Err, ExitCode: s.ExitCode}).Failed() {
			tool.State = wire.ToolFailed
		}
		e.Tools = append(e.Tools, tool)
	}
}

// If a message is too long for a line, encode calls lean until the message is short enough, but at most `leanings`
// times. leanAnswer is the maximum size of the prompt and of the answer in a shortened entry, in bytes.
const (
	leanings   = 12
	leanAnswer = 256 << 10
)

// lean shortens a message. It removes details from an entry, or the older half of the entries from a snapshot.
func lean(m wire.Message) wire.Message {
	if m.Entry != nil {
		e := leanEntry(*m.Entry)
		return wire.Message{Entry: &e}
	}
	if m.Snapshot == nil {
		return m
	}
	shown := *m.Snapshot
	shown.Entries = slices.Clone(shown.Entries[len(shown.Entries)/2:])
	for i, e := range shown.Entries {
		shown.Entries[i] = leanEntry(e)
	}
	return wire.Message{Snapshot: &shown}
}

func leanEntry(e wire.Entry) wire.Entry {
	e.Answer, e.Prompt = cli.Shorten(e.Answer, leanAnswer), cli.Shorten(e.Prompt, leanAnswer)
	e.Tools, e.Changes = slices.Clone(e.Tools), slices.Clone(e.Changes)
	for i := range e.Tools {
		tool := &e.Tools[i]
		tool.Lost, tool.Output, tool.Input = tool.Lost+len(tool.Output), "", nil
	}
	for i := range e.Changes {
		e.Changes[i].Diff = ""
	}
	return e
}
