package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"ductor/internal/attach/wire"
)

// The smallest supported terminal.
const (
	leastWidth  = 10
	leastHeight = 5
)

// View is the content of the terminal.
type View struct {
	Rows []string // rows of the terminal; the only escape codes are for colours
	X, Y int      // position of the cursor; a negative Y hides the cursor
}

// View returns the current screen. If the screen shows rows of an approval, these rows then count as read.
func (s *Screen) View(look Look) View {
	if look.Width < leastWidth || look.Height < leastHeight {
		return View{Rows: []string{ansi.Truncate("too small", look.Width, "")}, Y: -1}
	}
	c := s.shown()
	input, x, y := s.inputRows(look)
	bottom := append(s.queueRows(look), look.paint(faint, strings.Repeat(look.mark("─", "-"), look.Width)))
	top := []string{s.header(look)}
	var asked []string
	if k := s.ask(); k != nil {
		asked = s.askRows(k, look, look.Height-len(top)-len(input)-1)
		if s.focus != onPrompt {
			bottom = bottom[len(bottom)-1:] // show only the separator line, because the approval needs the space
		}
	}
	if left := look.Height - len(top) - len(asked) - len(input); len(bottom) > left {
		bottom = bottom[len(bottom)-max(left, 0):]
	}
	height := look.Height - len(top) - len(asked) - len(bottom) - len(input)
	rows := c.viewport(look, height, s.open)
	for len(rows) < height {
		rows = append(rows, "")
	}
	rows = slices.Concat(top, rows, asked, bottom, input)
	return View{rows, x, len(rows) - len(input) + y}
}

// header returns the row with the name of the conversation, and the number of approvals in other conversations.
func (s *Screen) header(look Look) string {
	c := s.shown()
	parts := []string{cmp.Or(s.titleOf(s.wanted), c.about.Title, "ductor")}
	if s.Link != "" {
		parts = append([]string{s.Link}, parts...)
	}
	for _, part := range []string{strings.TrimSpace(c.about.Agent + " " + c.about.Model), c.about.Mode, c.about.Dir} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	waits := 0
	for _, other := range s.all {
		if other.Key != s.wanted {
			waits += other.Approvals
		}
	}
	if waits > 0 {
		parts = append([]string{fmt.Sprintf("(!) %d in other chats: Ctrl+N", waits)}, parts...)
	}
	line := look.one(strings.Join(parts, " "+look.mark("·", "|")+" "), look.Width)
	return look.paint(reverse, line+strings.Repeat(" ", max(look.Width-ansi.StringWidth(line), 0)))
}

func (s *Screen) titleOf(key string) string {
	for _, c := range s.all {
		if c.Key == key {
			return c.Title
		}
	}
	return ""
}

// queueRows returns rows for the running turn, the queue, and the pending requests.
func (s *Screen) queueRows(look Look) []string {
	const most = 4
	c := s.shown()
	var rows []string
	if t := c.running(); t != nil {
		status := look.mark("●", "*") + " " + cmp.Or(t.status, "working") + " (Ctrl+X stops it)"
		rows = append(rows, look.paint(yellow, look.one(status, look.Width)))
	}
	for _, e := range c.queue {
		rows = append(rows, look.paint(faint, look.one("next: "+e.Prompt, look.Width)))
	}
	for _, p := range s.pending {
		if p.Conversation == s.wanted {
			rows = append(rows, look.paint(faint, look.one("sending: "+textOf(p.Request), look.Width)))
		}
	}
	if hidden := len(rows) - most; hidden > 0 {
		rows = append(rows[:most], look.paint(faint, look.one(fmt.Sprintf("and %d more", hidden), look.Width)))
	}
	return rows
}

func textOf(r wire.Request) string {
	switch {
	case r.Prompt != nil:
		return r.Prompt.Text
	case r.Command != nil:
		return r.Command.Text
	case r.Decide != nil:
		return "your decision"
	}
	return "stop"
}

// inputRows returns rows for the current input and the help line, and the position of the cursor.
func (s *Screen) inputRows(look Look) (rows []string, x, y int) {
	label := map[focus]string{onReason: "reason: ", onAnswer: "answer: ", onSecret: "answer: "}[s.focus]
	label = cmp.Or(label, "> ")
	inner := look
	inner.Width -= len(label)
	lines, x, y := s.editor().layout(inner, s.focus == onSecret)
	most := max(look.Height/4, 1)
	first := min(max(y-most+1, 0), max(len(lines)-most, 0))
	for i, line := range lines[first:min(first+most, len(lines))] {
		before := strings.Repeat(" ", len(label))
		if i == 0 {
			before = look.paint(cyan, label)
		}
		rows = append(rows, before+line)
	}
	y -= first
	if s.focus == onAsk {
		y = -look.Height // a negative row hides the cursor
	}
	if look.Height >= 10 {
		rows = append(rows, look.paint(faint, look.one(s.help(), look.Width)))
	}
	return rows, x + len(label), y
}

func (s *Screen) help() string {
	switch s.focus {
	case onAsk:
		return "Enter choose  Up/Down  PgDn read on  Esc back"
	case onPrompt:
		if s.ask() != nil {
			return "Tab decide  Enter send  Ctrl+C leave"
		}
		return "Enter send  Ctrl+C leave  Alt+Enter new line  PgUp back  Ctrl+O outputs  Ctrl+N next chat  " +
			"Ctrl+R edit last waiting"
	}
	return "Enter send  Esc back"
}

// askRows returns rows for an approval and its options, at most `most` rows.
func (s *Screen) askRows(k *ask, look Look, most int) []string {
	focused := s.focus != onPrompt
	title := k.Agent + " asks"
	if n := len(s.shown().asks); n > 1 {
		title += fmt.Sprintf(" (1 of %d)", n)
	}
	if !k.Expires.IsZero() {
		title += ", until " + k.Expires.Local().Format("15:04")
	}
	rows := []string{look.paint(yellow, look.one(look.mark("▲", "!")+" "+title, look.Width))}
	if !focused {
		rows = append(rows, k.preview(look, max(min(most/2, 8)-2, 0))...)
		return append(rows, look.paint(yellow, look.one("Tab: read and decide", look.Width)))
	}
	room := max((most-1)/2, 1)
	k.shown = max(most-1-len(k.optionRows(look, room, true))-1, 1)
	for _, r := range k.page(look, k.shown) {
		rows = append(rows, look.paint(r.style, r.text))
	}
	if why := k.whyShut(); why != "" {
		rows = append(rows, look.paint(red, look.one(why, look.Width)))
	} else if k.unread() {
		more := fmt.Sprintf("%d more rows: PgDn. Then you can allow it.", len(k.rows)-k.read)
		rows = append(rows, look.paint(red, look.one(more, look.Width)))
	}
	return append(rows, k.optionRows(look, room, s.focus == onAsk)...)
}

// preview returns the first rows of a request. These rows do not count as read.
func (k *ask) preview(look Look, most int) []string {
	var rows []string
	for _, r := range k.lines(look) {
		if len(rows) == most {
			break
		}
		rows = append(rows, look.paint(r.style, r.text))
	}
	return rows
}

// optionRows returns at most `most` rows of options, around the option under the cursor.
func (k *ask) optionRows(look Look, most int, cursor bool) []string {
	var rows []string
	from := 0
	for i, o := range k.options() {
		style, mark := normal, "  "
		if i == k.choice && cursor {
			from, style, mark = len(rows), bold, look.mark("❯ ", "> ")
		}
		if o.choice != wire.Deny && o.choice != wire.Answer && k.unread() {
			style = faint
		}
		inner := look
		inner.Width -= 2
		for j, line := range wrap(look.reveal(o.label), inner.Width, atWords) {
			if j > 0 {
				mark = "  "
			}
			rows = append(rows, mark+look.paint(style, line))
		}
	}
	from = max(min(from, len(rows)-most), 0)
	return rows[from:min(from+most, len(rows))]
}

// viewport returns the rows of the conversation that fit into the given height: the last rows, or the rows to which the
// user scrolled.
func (c *conversation) viewport(look Look, height int, open bool) []string {
	var all []*item
	for _, b := range c.blocks {
		all = append(all, b.all()...)
	}
	if len(all) == 0 || height <= 0 {
		return nil
	}
	drawn := func(i int) drawn { return all[i].draw(look, open) }
	at := slices.Index(all, c.lowest)
	if c.lowest == nil || at < 0 {
		at = len(all) - 1
		c.lowestRows = drawn(at).len()
	}
	// After scrolling, another item may be the lowest one on the screen. Find this item.
	c.lowestRows, c.page = min(c.lowestRows, drawn(at).len())-c.scrolled, height
	for c.scrolled = 0; at < len(all)-1 && c.lowestRows > drawn(at).len(); at++ {
		c.lowestRows -= drawn(at).len()
	}
	for ; at > 0 && c.lowestRows <= 0; at-- {
		c.lowestRows += drawn(at - 1).len()
	}
	c.lowestRows = max(min(c.lowestRows, drawn(at).len()), 0)
	var shown []string
	for i := at; i >= 0 && len(shown) < height; i-- {
		d := drawn(i)
		to := d.len()
		if i == at {
			to = c.lowestRows
		}
		shown = slices.Concat(d.rows(max(to-height+len(shown), 0), to), shown)
	}
	// If rows at the top of the screen are now empty, move the conversation up, and show further rows at the bottom.
	for i, from := at, c.lowestRows; len(shown) < height && i < len(all); i, from = i+1, 0 {
		d := drawn(i)
		to := min(from+height-len(shown), d.len())
		shown = append(shown, d.rows(from, to)...)
		at, c.lowestRows = i, to
	}
	c.lowest = all[at]
	left := drawn(at).len() - c.lowestRows
	for i := at + 1; i < len(all) && left == 0; i++ {
		left = drawn(i).len()
	}
	if left == 0 {
		c.lowest = nil
	}
	return shown
}
