package claude

import (
	"encoding/json"
	"strconv"
	"strings"

	"ductor/cli"
	"ductor/cli/turn"
)

// synthetic is the model in messages that Claude Code itself wrote: errors and output of local commands. They are not
// part of the answer.
const synthetic = "<synthetic>"

// flow is the message that Claude is streaming, as a list of blocks.
type flow struct {
	tools
	status
	id     string
	open   bool // whether the message is unfinished and was not replaced by another message
	blocks []*flowBlock
	whole  map[string]int // for each message ID, the number of complete blocks that were not streamed
}

type flowBlock struct {
	index   int
	kind    string // text, thinking, tool_use, …
	key     string
	whole   bool // whether the complete block has arrived
	thought bool // whether thinking was emitted while the block was streamed
	tool    block
	input   strings.Builder
}

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

// begin starts a message. It retracts an unfinished previous message, because Claude then streams that message again.
func (f *flow) begin(id string) {
	f.giveUp()
	f.id, f.open, f.blocks = id, true, nil
}

// giveUp retracts an unfinished message, because Claude will repeat it.
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

// block returns the newest block with the given index in the message. If there is none, it adds a block of the given
// kind.
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

// blockStop starts a tool whose streamed input is complete. In most cases, the complete message has already arrived and
// started the tool.
func (f *flow) blockStop(ev *streamEvent) {
	b := f.block(ev.Index, "")
	if !isToolUse(b.kind) {
		return
	}
	if input := json.RawMessage(b.input.String()); json.Valid(input) {
		b.tool.Input = input
	}
	f.start(f.id, b.tool, "")
}

// assistant handles a complete message. In most versions of Claude, such a message contains a single block. The text of
// the message corrects the streamed text. assistant does not emit text again that was already streamed.
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
		f.start(message, b, "")
	case b.ToolUseID != "": // result of a tool that the API itself ran
		f.end(b, nil)
	}
}

// match returns the streamed block that belongs to a complete block. If the message was not streamed, it returns a new
// block.
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

// subAgent emits the tools of a sub-agent. It ignores the sub-agent's text, which is meant for the main agent.
func (f *flow) subAgent(m *message, parent string) {
	for _, b := range m.blocks() {
		if isToolUse(b.Type) {
			f.start(m.ID, b, parent)
		}
	}
}

// status is the activity of Claude that users see, such as waiting or retrying.
type status struct {
	out   *turn.Emitter
	shown cli.StatusKind
}

// show emits a changed status. It emits StatusIdle only after another status.
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

// retrying emits that Claude repeats a request to its model.
func (s *status) retrying(r cli.Retry) {
	s.shown = cli.StatusRetrying
	s.out.Pass(cli.Status{Kind: cli.StatusRetrying, Retry: r})
}
