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

// toolLine is the line of a tool in the card. At the end it shows the result.
type toolLine struct {
	lang        lang.Printer
	name, title string
	state       toolState
	ran         stopwatch
	held        cli.ApprovalID // the approval for which the tool waits
	result      string         // result of an ended tool, such as "exit 1 · 1.2 s"
	hidden      bool           // the line of an earlier tool represents the tool
	folded      map[string]int // number of tools that this line represents, by name, including its own
	children    int            // number of tools used by the tool's sub-agent
	output      string         // end of the output, in a rich card
	diff        string         // end of the file's diff, in a rich card
}

type toolState int

const (
	toolRunning toolState = iota
	toolSucceeded
	toolFailed
	toolDenied     // the tool was not allowed to run
	toolUnreported // the tool continues, or the agent does not report its end
)

func (t *toolLine) ended() bool  { return t.state != toolRunning }
func (t *toolLine) failed() bool { return t.state == toolFailed || t.state == toolDenied }

// toolRef refers to the line that shows a tool. A sub-agent's tool is shown on the line of its parent.
type toolRef struct {
	line  *toolLine
	child bool
}

// Maximum lengths in a tool line, in UTF-16 units. The whole line never exceeds toolMax.
const (
	titleMax = 60
	toolMax  = 140

	reasonMax = 90 // the reason of a failure; shorter if the line has less room
)

// foldAbove is how many tool lines may follow each other. Beyond that, the oldest successful lines become one line.
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
	t := &toolLine{
		lang: d.lang, name: toolName(d.lang, ev.Name), title: render.ShortLine(ev.Title, titleMax),
		ran: stopwatch{since: d.now},
	}
	if !ev.At.IsZero() {
		t.ran.since = ev.At
	}
	d.tools[ev.ID] = toolRef{line: t}
	if i := slices.IndexFunc(d.turn.early, func(a earlyAsk) bool { return a.name == t.name }); i >= 0 {
		t.held = d.turn.early[i].id
		d.turn.early = slices.Delete(d.turn.early, i, i+1)
	}
	d.running++
	d.push(&segment{kind: toolSegment, tool: t})
}

// changeTool updates the name and title of a running tool. It reports whether the line changed.
func (d *document) changeTool(ev cli.ToolChanged) bool {
	ref := d.tools[ev.ID]
	if ref.line == nil || ref.child || ref.line.ended() {
		return false
	}
	before := *ref.line
	ref.line.name, ref.line.title = toolName(d.lang, ev.Name), render.ShortLine(ev.Title, titleMax)
	return ref.line.name != before.name || ref.line.title != before.title
}

func (d *document) endTool(ev cli.ToolEnded) bool {
	ref, ok := d.tools[ev.ID]
	if !ok || ref.child || ref.line.ended() {
		return false
	}
	t := ref.line
	d.running--
	ev.Duration = t.ran.withoutWait(ev.Duration, d.now)
	if t.held != "" { // no event reported that the approval was answered
		ev.Duration, t.held = 0, ""
	}
	switch {
	case ev.Failed():
		t.state = toolFailed
	case ev.Err != "":
		t.state = toolUnreported
	default:
		t.state = toolSucceeded
	}
	t.result, t.output = toolResult(d.lang, ev), d.keepEnd(ev.Output)
	d.fold()
	return true
}

// toolName returns the name of a tool for its line.
func toolName(p lang.Printer, name string) string {
	return render.ShortLine(render.ToolName(p, name), render.NameLimit)
}

// holdTool shows that a tool waits for a user. The approval of one of ductor's own tools contains only the tool's
// name, and may come before the event that starts the tool.
func (d *document) holdTool(id cli.ApprovalID, call cli.ToolID, tool string) bool {
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
	ref.line.held, ref.line.ran.shown = id, 0
	return true
}

// earlyAsk is an approval that came before the event that starts its tool. Only the tool's name is known.
type earlyAsk struct {
	id   cli.ApprovalID
	name string
}

// runningTool returns the last running tool with a name that waits for no approval, or nil.
func (d *document) runningTool(name string) *toolLine {
	for _, s := range slices.Backward(d.segments) {
		if t := s.tool; t != nil && t.name == name && !t.ended() && t.held == "" {
			return t
		}
	}
	return nil
}

// releaseTool records that an approval was answered or withdrawn. The tool that waited for it now runs, or ends soon.
func (d *document) releaseTool(id cli.ApprovalID) (seen bool) {
	d.turn.early = slices.DeleteFunc(d.turn.early, func(a earlyAsk) bool { return a.id == id })
	others := len(d.turn.early) > 0
	for _, ref := range d.tools {
		switch t := ref.line; {
		case ref.child || t.held == "":
		case t.held == id:
			t.held, seen = "", true
			t.ran.restart(d.now)
		default:
			others = true
		}
	}
	if d.wait.state == waitAsked && !others {
		d.setWait(waitQuiet, "")
	}
	return seen
}

// addFile mentions a changed file, unless a tool's line does.
func (d *document) addFile(ev cli.FileChanged) bool {
	name := path.Base(ev.Path)
	for i := len(d.segments) - 1; i >= 0 && d.segments[i].kind == toolSegment; i-- {
		if t := d.segments[i].tool; strings.Contains(t.title, render.ShortenPlain(name, titleMax/2)) {
			t.diff = d.keepEnd(ev.Diff)
			return t.diff != ""
		}
	}
	d.addNote(render.Concat(render.Plain(render.ChangeSign(ev.Kind)+" "),
		render.Styled(render.Code, render.ShortLine(ev.Path, titleMax)),
		render.Plain(render.DiffCount(ev.Diff))))
	d.last().diff = d.keepEnd(ev.Diff)
	return true
}

// fold hides the oldest successful lines in the last row of tools.
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
		if t.state != toolSucceeded && t.state != toolUnreported {
			continue
		}
		if host == nil {
			if host = t; t.folded == nil && len(shown) <= foldAbove {
				return
			}
			continue
		}
		host.absorb(t)
	}
}

// absorb makes t's line represent the tools of the line other too.
func (t *toolLine) absorb(other *toolLine) {
	if t.folded == nil {
		t.folded = map[string]int{t.name: 1}
	}
	if other.folded == nil {
		t.folded[other.name]++
	}
	for name, n := range other.folded {
		t.folded[name] += n
	}
	if other.state == toolUnreported {
		t.state = toolUnreported
	}
	t.children += other.children
	other.hidden, other.folded, other.children = true, nil, 0
}

// slack returns by how many units the line may still grow.
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
	case t.held == "" && t.ran.shown > 0:
		result = suffix(t.lang.Elapsed(t.ran.shown))
	}
	parts := []render.Text{render.Plain(icon + t.name)}
	if t.title != "" {
		parts = append(parts, render.Plain(" "), render.Styled(render.Code, t.title))
	}
	parts = append(parts, render.Plain(t.inner()+result))
	return render.Shorten(render.Concat(parts...), toolMax)
}

// icon returns the start of the line.
func (t *toolLine) icon() string {
	switch {
	case t.state == toolSucceeded:
		return "✓ "
	case t.state == toolUnreported:
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

// inner returns the number of tools that the tool's sub-agent used, as text.
func (t *toolLine) inner() string {
	if t.children == 0 {
		return ""
	}
	return suffix(t.lang.Text("card.tools-inside", t.children))
}

// summary returns a text such as "12 tools: Bash ×7, Read ×5".
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

// toolResult returns the text after the title for a tool that has ended.
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
