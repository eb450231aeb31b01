package claude

import (
	"encoding/json"
	"strconv"
	"strings"

	"ductor/cli"
	"ductor/cli/turn"
)

// synthetic is the model's name on messages that Claude Code wrote itself: errors and local commands.
// They are no answer.
const synthetic = "<synthetic>"

// flow is the message that streams in now, block by block.
type flow struct {
	tools
	status
	id     string
	open   bool // no message_stop yet, or another message takes its place
	blocks []*flowBlock
	whole  map[string]int // per message: whole blocks that came without being streamed
}

type flowBlock struct {
	index   int
	kind    string // text, thinking, tool_use, …
	key     string
	whole   bool // its assistant line came
	thought bool // thinking was shown as it came
	tool    block
	input   strings.Builder
}

// stream takes a piece of a message as the model's API sent it.
func (f *flow) stream(l *line) {
	ev := l.Event
	if ev == nil || l.Parent != "" {
		return
	}
	switch ev.Type {
	case "message_start":
		f.show(cli.StatusIdle, "")
		if ev.Message != nil {
			f.begin(ev.Message.ID)
		}
	case "content_block_start":
		f.blockStart(ev)
	case "content_block_delta":
		f.blockDelta(ev)
	case "content_block_stop":
		f.blockStop(ev)
	case "message_stop":
		f.open = l.Abandoned != nil
	}
}

// begin starts a message. One that is still open was given up: a retry streams it anew.
func (f *flow) begin(id string) {
	f.giveUp()
	f.id, f.open, f.blocks = id, true, nil
}

// giveUp takes back what an unfinished message showed, because another message says it again.
func (f *flow) giveUp() {
	if !f.open {
		return
	}
	f.open = false
	for i := len(f.blocks) - 1; i >= 0; i-- {
		b := f.blocks[i]
		f.em.GiveUp(b.key)
		f.drop(b.tool.ID)
	}
}

func (f *flow) blockStart(ev *streamEvent) {
	if ev.Block == nil {
		return
	}
	b := f.add(ev.Index, ev.Block.Type)
	b.tool = *ev.Block
	f.em.Text(b.key, ev.Block.Text)
}

func (f *flow) add(index int, kind string) *flowBlock {
	b := &flowBlock{index: index, kind: kind, key: f.id + "/" + strconv.Itoa(index)}
	f.blocks = append(f.blocks, b)
	return b
}

// block finds the newest block with this index; deltas of one that never started are of the kind given.
func (f *flow) block(index int, kind string) *flowBlock {
	for i := len(f.blocks) - 1; i >= 0; i-- {
		if f.blocks[i].index == index {
			return f.blocks[i]
		}
	}
	return f.add(index, kind)
}

func (f *flow) blockDelta(ev *streamEvent) {
	if ev.Delta == nil {
		return
	}
	switch d := ev.Delta; d.Type {
	case "text_delta":
		f.em.Text(f.block(ev.Index, "text").key, d.Text)
	case "thinking_delta":
		b := f.block(ev.Index, "thinking")
		b.thought = b.thought || d.Thinking != ""
		f.em.Thinking(d.Thinking)
	case "input_json_delta":
		f.block(ev.Index, "tool_use").input.WriteString(d.PartialJSON)
	}
}

// blockStop starts a tool whose input streamed in. The assistant line, which usually comes first,
// did so already.
func (f *flow) blockStop(ev *streamEvent) {
	b := f.block(ev.Index, "")
	if !isToolUse(b.kind) {
		return
	}
	if input := json.RawMessage(b.input.String()); json.Valid(input) {
		b.tool.Input = input
	}
	f.start(b.tool, "")
}

// assistant takes a whole message, in most versions one block of it. What was streamed is only
// corrected, never repeated.
func (f *flow) assistant(l *line) {
	m := l.Message
	if m == nil {
		return
	}
	if m.Model == synthetic {
		return
	}
	if l.Parent != "" {
		f.subAgent(m, l.Parent)
		return
	}
	f.show(cli.StatusIdle, "")
	if f.open && m.ID != f.id {
		f.giveUp()
	}
	for _, b := range m.blocks() {
		f.wholeBlock(m.ID, b)
	}
}

func (f *flow) wholeBlock(message string, b block) {
	switch {
	case b.Type == "text":
		if have := f.match(message, "text"); b.Text != "" {
			f.em.FullText(have.key, b.Text)
		}
	case b.Type == "thinking":
		if have := f.match(message, "thinking"); !have.thought {
			f.em.Thinking(b.Thinking)
		}
	case isToolUse(b.Type):
		f.start(b, "")
	case b.ToolUseID != "": // the result of a tool that ran at the model's side
		f.end(b, nil)
	}
}

// match finds the streamed block that a whole one completes, or makes one up for a message that was not
// streamed.
func (f *flow) match(message, kind string) *flowBlock {
	if message == f.id {
		for _, b := range f.blocks {
			if b.kind == kind && !b.whole {
				b.whole = true
				return b
			}
		}
	}
	if f.whole == nil {
		f.whole = map[string]int{}
	}
	f.whole[message]++
	return &flowBlock{kind: kind, key: message + "/whole/" + strconv.Itoa(f.whole[message])}
}

// subAgent shows the tools a sub-agent uses. What it says is for the agent that asked it, not for people.
func (f *flow) subAgent(m *message, parent string) {
	for _, b := range m.blocks() {
		if isToolUse(b.Type) {
			f.start(b, parent)
		}
	}
}

// status is what the user is shown of what Claude is busy with.
type status struct {
	out   *turn.Emitter
	shown cli.StatusKind
}

// show passes a status on when it says something new; idle only ends one that was shown.
func (s *status) show(kind cli.StatusKind, detail string) {
	if kind == cli.StatusIdle && s.shown == "" || kind == s.shown && detail == "" {
		return
	}
	s.shown = kind
	if kind == cli.StatusIdle {
		s.shown = ""
	}
	s.out.Pass(cli.Status{Kind: kind, Detail: detail})
}

// retrying passes on that the model is asked again.
func (s *status) retrying(r cli.Retry) {
	s.shown = cli.StatusRetrying
	s.out.Pass(cli.Status{Kind: cli.StatusRetrying, Retry: r})
}
