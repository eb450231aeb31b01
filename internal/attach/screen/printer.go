package screen

import (
	"bytes"
	"strings"

	"ductor/internal/attach/wire"
)

// Printer converts messages from ductor to plain lines for other programs. It prints the unfinished turns and open
// approvals of the first Snapshot. After that, it prints each change once.
type Printer struct {
	look  Look
	out   strings.Builder
	began bool
	turns map[string]*printed
	done  map[string]bool // tools, changes, notices and approvals that were printed
}

// printed is the state of a turn, and the part of the turn that a Printer has printed.
type printed struct {
	state  wire.State
	answer []byte // the received part of the answer
	bytes  int    // number of printed bytes of answer
	// how many tools and changes were printed
	tools, changes int
}

// NewPrinter returns a Printer.
func NewPrinter(ascii bool) *Printer {
	return &Printer{look: Look{ASCII: ascii, Plain: true}, turns: map[string]*printed{}, done: map[string]bool{}}
}

// State returns the state of a turn, or "" if the turn has not begun.
func (p *Printer) State(turn string) wire.State {
	if t := p.turns[turn]; t != nil {
		return t.state
	}
	return ""
}

// Apply returns the lines to print for a message.
func (p *Printer) Apply(m wire.Message) string {
	p.out.Reset()
	switch {
	case m.Snapshot != nil:
		p.snapshot(*m.Snapshot)
	case m.Reply != nil && m.Reply.Error != "":
		p.print("! ", m.Reply.Error)
	case m.Entry != nil:
		p.entry(*m.Entry)
	case m.Text != nil:
		p.text(*m.Text)
	case m.Tool != nil:
		p.tool(*m.Tool)
	case m.Change != nil:
		p.change(m.Change.Turn, *m.Change)
	case m.Status != nil && m.Status.Warning:
		p.print("! ", m.Status.Sentence)
	case m.Approval != nil:
		p.approval(*m.Approval)
	case m.Notice != nil:
		p.notice(*m.Notice)
	}
	return p.out.String()
}

// print prints each line of a text after a prefix.
func (p *Printer) print(prefix, text string) {
	for line := range strings.Lines(p.look.clean(text)) {
		p.out.WriteString(prefix + strings.TrimSuffix(line, "\n") + "\n")
	}
}

// once returns true if the object with this ID was not printed before. It then records the object as printed.
func (p *Printer) once(id string) bool {
	if p.done[id] {
		return false
	}
	p.done[id] = true
	return true
}

func (p *Printer) snapshot(s wire.Snapshot) {
	for _, e := range s.Entries {
		if !p.began && e.State.Over() {
			p.turns[e.Turn] = &printed{state: e.State}
			continue
		}
		p.entry(e)
	}
	for _, n := range s.Notices {
		if !p.began {
			p.done["notice "+n.ID] = true
		}
		p.notice(n)
	}
	for _, a := range s.Approvals {
		p.approval(a)
	}
	p.began = true
}

func (p *Printer) entry(e wire.Entry) {
	t := p.turns[e.Turn]
	if e.State == wire.StateQueued || t != nil && t.state.Over() {
		return
	}
	if t == nil {
		t = &printed{}
		p.turns[e.Turn] = t
		p.print("> ", e.Prompt)
	}
	if e.Replayed {
		t.state = e.State
		return
	}
	// When a turn ends, its tools get new IDs, so that p cannot recognize the tools that it has already printed.
	// Instead, skip as many tools as p printed while the turn was running.
	over := e.State.Over()
	for i, tool := range e.Tools {
		if over && i < t.tools {
			continue
		}
		if tool.Offset > t.bytes {
			p.replace(t, 0, e.Answer[:min(tool.Offset, len(e.Answer))])
		}
		p.tool(tool)
	}
	for i := t.changes; i < len(e.Changes); i++ {
		p.change(e.Turn, e.Changes[i])
	}
	p.replace(t, 0, e.Answer)
	p.flush(t, over)
	t.state = e.State
	if over {
		ended := newTurn(e).ending.body.text
		p.print("= ", string(ended))
		*t = printed{state: e.State}
	}
}

func (p *Printer) text(piece wire.Text) {
	if t := p.turns[piece.Turn]; t != nil && !t.state.Over() {
		p.replace(t, piece.Offset, piece.Text)
		p.flush(t, false)
	}
}

// replace keeps the first offset bytes of the answer, and replaces the rest by text. If this changes text that was
// already printed, the next flush prints the changed text.
func (p *Printer) replace(t *printed, offset int, text string) {
	answer := append(t.answer[:min(offset, len(t.answer)):min(offset, len(t.answer))], text...)
	if same := min(t.bytes, len(answer)); !bytes.Equal(answer[:same], t.answer[:same]) || same < t.bytes {
		p.print("! ", "The agent takes back a part of its answer.")
		for t.bytes = same; !bytes.Equal(answer[:t.bytes], t.answer[:t.bytes]); {
			t.bytes = bytes.LastIndexByte(answer[:t.bytes-1], '\n') + 1
		}
	}
	t.answer = answer
}

// flush prints those complete lines of the answer that were not printed yet. If all is true, it also prints an
// incomplete last line.
func (p *Printer) flush(t *printed, all bool) {
	end := bytes.LastIndexByte(t.answer, '\n') + 1
	if all {
		end = len(t.answer)
	}
	if end > t.bytes {
		rest := string(t.answer[t.bytes:end])
		// If the printed part does not end with a line break, print has added one. Do not print it again.
		if t.bytes > 0 && t.answer[t.bytes-1] != '\n' {
			rest = strings.TrimPrefix(rest, "\n")
		}
		p.print("", rest)
		t.bytes = end
	}
}

func (p *Printer) tool(tool wire.Tool) {
	t := p.turns[tool.Turn]
	if t == nil || t.state.Over() || tool.State == wire.ToolRunning || !p.once("tool "+tool.Turn+" "+tool.ID) {
		return
	}
	t.tools++
	p.flush(t, true)
	it := toolItem(nil, tool)
	p.print(map[mark]string{success: "+ ", failure: "x "}[it.mark], it.head)
	p.print("    ", string(it.body.text))
	p.print("    ", it.tail)
}

func (p *Printer) change(turn string, c wire.Change) {
	t := p.turns[turn]
	if t == nil || t.state.Over() {
		return
	}
	t.changes++
	p.flush(t, true)
	p.print("+ ", c.Kind+"  "+c.Path)
	p.print("    ", c.Diff)
}

// approval prints an approval: every field of an open request, or the decision of a closed one.
func (p *Printer) approval(a wire.Approval) {
	if !p.once("approval " + a.ID + " " + string(a.State)) {
		return
	}
	if a.State != wire.ApprovalOpen {
		p.print("? ", decisionOf(a))
		return
	}
	p.print("? ", a.Agent+" asks; decide in the chat:")
	for k := newAsk(a); ; {
		for _, r := range k.text {
			p.print("?   ", p.look.reveal(r.text))
		}
		if len(k.answers)+1 >= len(k.Questions) {
			return
		}
		k.answer(nil)
	}
}

func (p *Printer) notice(n wire.Notice) {
	if p.once("notice " + n.ID) {
		p.print("# ", n.Text)
	}
}
