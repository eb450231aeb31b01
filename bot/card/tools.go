package card

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/lang"
)

// toolLine is one tool as the card shows it: one line that turns into its result.
type toolLine struct {
	lang        lang.Printer
	name, title string
	began       time.Time     // zero where that is not known
	elapsed     time.Duration // how long it runs, as far as that is shown
	state       toolState
	held        cli.ApprovalID // waits for a user to let it run
	waited      bool           // did so, until began
	result      string         // of an ended tool, such as "exit 1 · 1.2 s"
	hidden      bool           // the line of an earlier tool stands for it
	folded      map[string]int // by name, the tools that this line stands for, itself included
	inside
}

// inside is what a tool line stands above.
type inside struct {
	children int    // tools that a sub-agent started by this one used
	output   string // the end of it, in a rich card
	diff     string // likewise, of the file that it changed
}

type toolState int

const (
	toolRunning toolState = iota
	toolSucceeded
	toolFailed
	toolDenied // failed, since it was not allowed to run
	toolUntold // it goes on, or the agent does not say how it ended
)

func (t *toolLine) ended() bool  { return t.state != toolRunning }
func (t *toolLine) failed() bool { return t.state == toolFailed || t.state == toolDenied }

// toolRef ties an id to the line that shows it; a sub-agent's tool is shown by its parent's line.
type toolRef struct {
	line  *toolLine
	child bool
}

// Bounds of a tool line in UTF-16 units. A line is never longer than toolMax, whatever becomes of the tool.
const (
	titleMax = 60
	toolMax  = 140

	reasonMax = 90 // why a tool failed, as far as the line has room
)

// Many tools in a row stay compact: when more than foldAbove lines follow each other, the oldest that went
// well become one.
const foldAbove = 10

func (d *document) startTool(ev cli.ToolStarted) {
	if _, known := d.tools[ev.ID]; known {
		return
	}
	if parent, ok := d.tools[ev.Parent]; ok && ev.Parent != "" {
		parent.line.children++
		d.tools[ev.ID] = toolRef{parent.line, true}
		return
	}
	t := &toolLine{lang: d.lang, name: toolName(d.lang, ev.Name), title: render.ShortLine(ev.Title, titleMax), began: d.now}
	if !ev.At.IsZero() {
		t.began = ev.At
	}
	d.tools[ev.ID] = toolRef{line: t}
	if i := slices.IndexFunc(d.turn.early, func(a earlyAsk) bool { return a.name == t.name }); i >= 0 {
		t.held = d.turn.early[i].id
		d.turn.early = slices.Delete(d.turn.early, i, i+1)
	}
	d.running++
	d.push(&segment{kind: toolSegment, tool: t})
}

func (d *document) endTool(ev cli.ToolEnded) bool {
	ref, ok := d.tools[ev.ID]
	if !ok || ref.child || ref.line.ended() {
		return false
	}
	t := ref.line
	d.running--
	if t.waited { // the wait is no time that it took
		ev.Duration = min(ev.Duration, max(d.now.Sub(t.began), 0))
	}
	if t.held != "" { // no event said that it may run
		ev.Duration, t.held = 0, ""
	}
	switch {
	case ev.Failed():
		t.state = toolFailed
	case ev.Err != "":
		t.state = toolUntold
	default:
		t.state = toolSucceeded
	}
	t.result, t.output = toolResult(d.lang, ev), d.keepEnd(ev.Output)
	d.fold()
	return true
}

// toolName is the name of a tool as a line has it.
func toolName(p lang.Printer, name string) string {
	return render.ShortLine(render.ToolName(p, name), render.NameLimit)
}

// hold shows that a tool waits for a user. What ductor's own tools ask names the tool, and may come before the agent shows the call.
func (d *document) hold(id cli.ApprovalID, call cli.ToolID, tool string) bool {
	ref := d.tools[call]
	if cli.OwnTool(tool) != "" && ref.line == nil {
		name := toolName(d.lang, tool)
		if ref.line = d.runningTool(name); ref.line == nil {
			d.turn.early = append(d.turn.early, earlyAsk{id, name})
		}
	}
	if ref.line == nil || ref.child || ref.line.ended() {
		return false
	}
	ref.line.held, ref.line.elapsed = id, 0
	return true
}

// earlyAsk is what a tool of this name asks whose call is not shown yet.
type earlyAsk struct {
	id   cli.ApprovalID
	name string
}

// runningTool finds the last tool of a name that runs and waits for no user; nil if there is none.
func (d *document) runningTool(name string) *toolLine {
	for _, s := range slices.Backward(d.segments) {
		if t := s.tool; t != nil && t.name == name && !t.ended() && t.held == "" {
			return t
		}
	}
	return nil
}

// release shows that what an agent asked is answered, or no longer asked: a tool that waited for it runs, from now
// on, or is about to end.
func (d *document) release(id cli.ApprovalID) (seen bool) {
	d.turn.early = slices.DeleteFunc(d.turn.early, func(a earlyAsk) bool { return a.id == id })
	others := len(d.turn.early) > 0
	for _, ref := range d.tools {
		switch t := ref.line; {
		case ref.child || t.held == "":
		case t.held == id:
			t.held, t.waited, t.began, seen = "", true, d.now, true
		default:
			others = true
		}
	}
	if d.wait.state == waitAsked && !others {
		d.setWait(waitQuiet, "")
	}
	return seen
}

// addFile mentions a changed file, unless a tool's line does already.
func (d *document) addFile(ev cli.FileChanged) bool {
	name := path.Base(ev.Path)
	for i := len(d.segments) - 1; i >= 0 && d.segments[i].kind == toolSegment; i-- {
		if t := d.segments[i].tool; strings.Contains(t.title, render.ShortenPlain(name, titleMax/2)) {
			t.diff = d.keepEnd(ev.Diff)
			return t.diff != ""
		}
	}
	d.addNote(render.Concat(render.Plain(render.ChangeSign(ev.Kind)+" "), render.Styled(render.Code, render.ShortLine(ev.Path, titleMax)),
		render.Plain(render.DiffCount(ev.Diff))))
	d.last().diff = d.keepEnd(ev.Diff)
	return true
}

// fold hides the oldest lines that went well in the row of tools at the end of the document.
func (d *document) fold() {
	from := len(d.segments)
	for from > 0 && d.segments[from-1].kind == toolSegment {
		from--
	}
	var shown []*toolLine
	for _, s := range d.segments[from:] {
		if !s.tool.hidden {
			shown = append(shown, s.tool)
		}
	}
	var host *toolLine
	for i, t := range shown {
		if len(shown)-i <= foldAbove/2 {
			return
		}
		if t.state != toolSucceeded && t.state != toolUntold {
			continue
		}
		if host == nil {
			if host = t; t.folded == nil && len(shown) <= foldAbove {
				return
			}
			continue
		}
		host.take(t)
	}
}

// take makes t's line stand for other too.
func (t *toolLine) take(other *toolLine) {
	if t.folded == nil {
		t.folded = map[string]int{t.name: 1}
	}
	if other.folded == nil {
		t.folded[other.name]++
	}
	for name, n := range other.folded {
		t.folded[name] += n
	}
	if other.state == toolUntold {
		t.state = toolUntold
	}
	t.children += other.children
	other.hidden, other.folded, other.children = true, nil, 0
}

// slack is how many units the line may still grow by.
func (t *toolLine) slack() int {
	if t.hidden || t.failed() {
		return 0
	}
	return max(toolMax-render.Len(t.rendered().Text), 0)
}

func (t *toolLine) rendered() render.Text {
	if t.hidden {
		return render.Text{}
	}
	if t.folded != nil {
		return render.Shorten(render.Plain(t.icon()+t.summary()+t.inner()), toolMax)
	}
	icon, result := t.icon(), ""
	switch {
	case t.ended():
		result = suffix(t.result)
	case t.held == "" && t.elapsed > 0:
		result = suffix(t.lang.Elapsed(t.elapsed))
	}
	parts := []render.Text{render.Plain(icon + t.name)}
	if t.title != "" {
		parts = append(parts, render.Plain(" "), render.Styled(render.Code, t.title))
	}
	parts = append(parts, render.Plain(t.inner()+result))
	return render.Shorten(render.Concat(parts...), toolMax)
}

// icon begins the line.
func (t *toolLine) icon() string {
	switch {
	case t.state == toolSucceeded:
		return "✓ "
	case t.state == toolUntold:
		return "• "
	case t.state == toolDenied:
		return "⛔ "
	case t.state == toolFailed:
		return "✗ "
	case t.held != "":
		return "🔐 "
	}
	return "⏳ "
}

// inner counts the tools of a sub-agent.
func (t *toolLine) inner() string {
	if t.children == 0 {
		return ""
	}
	return suffix(t.lang.Text("card.tools-inside", t.children))
}

// summary is "12 tools: Bash ×7, Read ×5".
func (t *toolLine) summary() string {
	names, total := make([]string, 0, len(t.folded)), 0
	for name, n := range t.folded {
		names, total = append(names, name), total+n
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(t.folded[b], t.folded[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s ×%d", name, t.folded[name])
	}
	return t.lang.Text("card.tools-folded", total, t.lang.List(names...))
}

// toolResult is what the line says behind the title once the tool has ended.
func toolResult(p lang.Printer, ev cli.ToolEnded) string {
	var parts []string
	if ev.ExitCode != nil && *ev.ExitCode != 0 {
		parts = append(parts, p.Text("card.tool-exit", *ev.ExitCode))
	} else if ev.Err != "" && ev.Err != cli.ToolUntold {
		parts = append(parts, toolError(p, ev.Err))
	}
	if ev.Duration >= 100*time.Millisecond {
		parts = append(parts, p.Elapsed(ev.Duration))
	}
	return strings.Join(parts, " · ")
}

func toolError(p lang.Printer, err string) string {
	switch err {
	case cli.ToolCutShort:
		return p.Text("card.tool-did-not-end")
	case cli.ToolDenied:
		return p.Text("card.tool-denied")
	case cli.ToolGoesOn:
		return p.Text("card.tool-goes-on")
	}
	return render.ShortLine(err, reasonMax)
}

func suffix(s string) string {
	if s == "" {
		return ""
	}
	return " · " + s
}
