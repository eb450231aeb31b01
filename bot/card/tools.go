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

// toolLine is the line in a card that shows one use of a tool. When the tool has ended, the line also shows the result.
type toolLine struct {
	lang        lang.Printer
	name, title string
	state       toolState
	ran         stopwatch
	held        cli.ApprovalID // the approval that the tool waits for; "" if it does not wait
	result      string         // text after the title when the tool has ended, such as "exit 1 · 1.2 s"
	hidden      bool           // true if the line is empty because another line summarizes this tool
	folded      map[string]int // number of uses of each tool, if the line summarizes several tools; otherwise nil
	children    int            // number of tools that a sub-agent used; 0 for other tools
	output      string         // end of the tool's output; only in rich cards
	diff        string         // end of the diff of the changed file; only in rich cards
}

type toolState int

const (
	toolRunning toolState = iota
	toolSucceeded
	toolFailed
	toolDenied
	toolUnreported // the tool still runs, or the agent did not report how the tool ended
)

func (t *toolLine) ended() bool  { return t.state != toolRunning }
func (t *toolLine) failed() bool { return t.state == toolFailed || t.state == toolDenied }

// toolRef refers to the line that shows a tool. A tool of a sub-agent has no line of its own: the line of the sub-agent
// shows the number of its tools.
type toolRef struct {
	line  *toolLine
	child bool
}

// Maximum lengths in UTF-16 units. toolMax is the maximum length of the whole line.
const (
	titleMax = 60
	toolMax  = 140

	reasonMax = 90
)

// foldAbove is the maximum number of consecutive tool lines. If there are more lines, the oldest successful ones become
// a single summary.
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

// changeTool updates the name and title of a running tool. It reports whether the tool's line changed.
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
	if t.held != "" { // the duration includes a wait of unknown length for a user
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

func toolName(p lang.Printer, name string) string {
	return render.ShortLine(render.ToolName(p, name), render.NameLimit)
}

// holdTool shows that a tool waits for a user's approval. It reports whether the tool's line changed. An approval for
// one of ductor's own tools does not contain the ID of the call, so holdTool chooses a running call of this tool. If no
// such call has a line yet, the tool's next line shows that the tool waits.
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

// earlyAsk is a request for approval that arrived before the event that starts its tool. ductor knows only the name of
// the tool.
type earlyAsk struct {
	id   cli.ApprovalID
	name string
}

// runningTool returns the last running tool with the given name that does not wait for an approval, or nil.
func (d *document) runningTool(name string) *toolLine {
	for _, s := range slices.Backward(d.segments) {
		if t := s.tool; t != nil && t.name == name && !t.ended() && t.held == "" {
			return t
		}
	}
	return nil
}

// releaseTool records that a request for approval was answered or withdrawn. It reports whether a tool was waiting for
// the approval.
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

// addFile adds a note about a changed file, unless the line of a recent tool already mentions the file.
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

// fold combines the oldest successful tool lines at the end of the document if there are too many.
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

// absorb adds the tools of another line to the summary in t, and hides the other line.
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

// slack returns by how many UTF-16 units the line may still grow.
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

// inner returns the number of tools that the sub-agent used, as text. It returns "" if the sub-agent used no tools.
func (t *toolLine) inner() string {
	if t.children == 0 {
		return ""
	}
	return suffix(t.lang.Text("card.tools-inside", t.children))
}

// summary returns the text of a line that combines several tools, such as "12 tools: Bash ×7, Read ×5".
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

// toolResult returns the text after the title of a tool that has ended: exit code or error, and duration.
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
