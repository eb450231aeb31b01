package screen

import (
	"cmp"
	"fmt"
	"strings"
)

type kind string

const (
	ofPrompt   kind = "prompt"
	ofAnswer   kind = "answer"
	ofThinking kind = "thinking"
	ofTool     kind = "tool"
	ofChange   kind = "change"
	ofNote     kind = "note"
)

// outputRows limits the rows of a tool's output. The limit does not apply if the user has chosen to see complete
// outputs.
const outputRows = 8

// item is a part of a conversation on the screen, such as a prompt, a piece of the answer or a tool.
type item struct {
	kind   kind
	id     string // unique among the items of the turn; empty for thoughts and notes
	offset int    // position in the answer, in bytes
	head   string // the first line, such as the title of a tool
	long   string // arguments of a tool; visible only if the user has chosen to see complete outputs
	tail   string // the last line, such as the result of a tool
	mark   mark
	body   growing
}

// mark is the state of an item. The screen shows it as a symbol.
type mark string

const (
	noMark  mark = ""
	running mark = "running"
	success mark = "success"
	failure mark = "failure"
)

func newItem(of kind) *item {
	it := &item{kind: of, body: growing{how: atWords}}
	switch of {
	case ofTool:
		it.body.how = anywhere
	case ofChange:
		it.body.how, it.body.style = anywhere, diffStyle
	}
	return it
}

func diffStyle(line string) style {
	switch {
	case strings.HasPrefix(line, "@@"):
		return cyan
	case strings.HasPrefix(line, "+"):
		return green
	case strings.HasPrefix(line, "-"):
		return red
	}
	return normal
}

// drawn is an item that was broken into rows.
type drawn struct {
	look       Look
	head, tail []string // first and last lines with escape codes
	before     string   // prefix of every row of the body, with escape codes
	body       []row
	style      style // default style of the rows of body
}

func (d drawn) len() int { return len(d.head) + len(d.body) + len(d.tail) }

// rows returns the rows with indexes from `from` up to, but not including, `to`. The rows contain escape codes.
func (d drawn) rows(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		switch body := i - len(d.head); {
		case body < 0:
			out = append(out, d.head[i])
		case body < len(d.body):
			r := d.body[body]
			out = append(out, d.before+d.look.paint(cmp.Or(r.style, d.style), r.text))
		default:
			out = append(out, d.tail[body-len(d.body)])
		}
	}
	return out
}

// draw breaks an item into rows. If open is true, the rows include all output and arguments of a tool.
func (it *item) draw(look Look, open bool) drawn {
	look.Height = 0
	d, inner := drawn{look: look}, look
	switch it.kind {
	case ofPrompt:
		d.before, d.style = look.paint(cyan, look.mark("▌", "|"))+" ", bold
		inner.Width -= 2
		d.head = []string{"", d.before + look.paint(faint, look.one(it.head, inner.Width))}
		if it.tail != "" {
			d.tail = []string{d.before + look.paint(faint, look.one("+ "+it.tail, inner.Width))}
		}
		d.body = it.body.lines(inner)
	case ofAnswer:
		d.body = it.body.lines(inner)
		for len(d.body) > 0 && strings.TrimSpace(d.body[0].text) == "" {
			d.body = d.body[1:]
		}
	case ofThinking, ofNote:
		d.style = faint
		d.body = it.body.lines(inner)
	default:
		it.drawTool(&d, open)
	}
	return d
}

func (it *item) drawTool(d *drawn, open bool) {
	look, inner := d.look, d.look
	d.before = strings.Repeat(" ", min(4, look.Width/8))
	inner.Width -= len(d.before)
	d.head = []string{it.markOf(look) + look.paint(bold, look.one(it.head, look.Width-2))}
	note := func(text string) string { return d.before + look.paint(faint, look.one(text, inner.Width)) }
	if open && it.long != "" {
		for _, text := range wrap(look.clean(it.long), inner.Width, anywhere) {
			d.head = append(d.head, d.before+look.paint(faint, text))
		}
	}
	d.body = it.body.lines(inner)
	if hidden := len(d.body) - outputRows; hidden > 1 && !open {
		d.head = append(d.head, note(fmt.Sprintf("%s %d more rows: Ctrl+O", look.mark("…", "..."), hidden)))
		d.body = d.body[hidden:]
	}
	if it.tail != "" {
		d.tail = []string{note(it.tail)}
	}
}

// markOf returns the item's symbol, followed by a space.
func (it *item) markOf(look Look) string {
	switch it.mark {
	case success:
		return look.paint(green, look.mark("✓", "+")) + " "
	case failure:
		return look.paint(red, look.mark("✗", "x")) + " "
	}
	return look.paint(yellow, look.mark("●", "*")) + " "
}
