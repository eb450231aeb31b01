package claude

import (
	"encoding/json"
	"strconv"
	"strings"
)

// synthetic is the model's name on messages that Claude Code wrote itself: errors and local commands.
// They are no answer.
const synthetic = "<synthetic>"

// flow is the message that streams in now, block by block.
type flow struct {
	id     string
	open   bool // no message_stop yet
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
func (p *parser) stream(l *line) {
	ev := l.Event
	if ev == nil || l.Parent != "" {
		return
	}
	switch ev.Type {
	case "message_start":
		p.setStatus("idle", "")
		if ev.Message != nil {
			p.begin(ev.Message.ID)
		}
	case "content_block_start":
		p.blockStart(ev)
	case "content_block_delta":
		p.blockDelta(ev)
	case "content_block_stop":
		p.blockStop(ev)
	case "message_stop":
		p.flow.open = false
	}
}

// begin starts a message. One that is still open was given up: a retry streams it anew.
func (p *parser) begin(id string) {
	p.giveUp()
	p.flow.id, p.flow.open, p.flow.blocks = id, true, nil
}

// giveUp takes back what an unfinished message showed, because another message says it again.
func (p *parser) giveUp() {
	if !p.flow.open {
		return
	}
	p.flow.open = false
	for i := len(p.flow.blocks) - 1; i >= 0; i-- {
		b := p.flow.blocks[i]
		p.em.DropText(b.key)
		p.dropTool(b.tool.ID)
	}
}

func (p *parser) blockStart(ev *streamEvent) {
	if ev.Block == nil {
		return
	}
	b := p.flow.add(ev.Index, ev.Block.Type)
	b.tool = *ev.Block
	p.text(b.key, ev.Block.Text)
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

func (p *parser) blockDelta(ev *streamEvent) {
	if ev.Delta == nil {
		return
	}
	switch d := ev.Delta; d.Type {
	case "text_delta":
		p.text(p.flow.block(ev.Index, "text").key, d.Text)
	case "thinking_delta":
		b := p.flow.block(ev.Index, "thinking")
		b.thought = b.thought || d.Thinking != ""
		p.em.Thinking(d.Thinking)
	case "input_json_delta":
		p.flow.block(ev.Index, "tool_use").input.WriteString(d.PartialJSON)
	}
}

// blockStop starts a tool whose input streamed in. The assistant line, which usually comes first,
// did so already.
func (p *parser) blockStop(ev *streamEvent) {
	b := p.flow.block(ev.Index, "")
	if !isToolUse(b.kind) {
		return
	}
	if input := json.RawMessage(b.input.String()); json.Valid(input) {
		b.tool.Input = input
	}
	p.startTool(b.tool, "")
}

// assistant takes a whole message, in most versions one block of it. What was streamed is only
// corrected, never repeated.
func (p *parser) assistant(l *line) {
	m := l.Message
	if m == nil {
		return
	}
	if l.Error != "" && l.Parent == "" {
		p.trouble.apiError = l.Error
	}
	if m.Model == synthetic {
		return
	}
	if l.Parent != "" {
		p.subAgent(m, l.Parent)
		return
	}
	p.setStatus("idle", "")
	if p.flow.open && m.ID != p.flow.id {
		p.giveUp()
	}
	for _, b := range m.blocks() {
		p.wholeBlock(m.ID, b)
	}
}

func (p *parser) wholeBlock(message string, b block) {
	switch {
	case b.Type == "text":
		if have := p.flow.match(message, "text"); b.Text != "" {
			p.opened(have.key)
			p.em.FullText(have.key, b.Text)
		}
	case b.Type == "thinking":
		if have := p.flow.match(message, "thinking"); !have.thought {
			p.em.Thinking(b.Thinking)
		}
	case isToolUse(b.Type):
		p.startTool(b, "")
	case b.ToolUseID != "": // the result of a tool that ran at the model's side
		p.endTool(b, nil)
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
func (p *parser) subAgent(m *message, parent string) {
	for _, b := range m.blocks() {
		if isToolUse(b.Type) {
			p.startTool(b, parent)
		}
	}
}

func (p *parser) text(key, delta string) {
	if delta != "" {
		p.opened(key)
		p.em.Text(key, delta)
	}
}

// opened remembers the blocks of the answer in their order.
func (p *parser) opened(key string) {
	if n := len(p.keys); n == 0 || p.keys[n-1] != key {
		p.keys = append(p.keys, key)
	}
}

// takeBack takes the whole answer back.
func (p *parser) takeBack() {
	for i := len(p.keys) - 1; i >= 0; i-- {
		p.em.DropText(p.keys[i])
	}
	p.keys = nil
}
