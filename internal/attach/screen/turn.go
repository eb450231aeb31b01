package screen

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"ductor/internal/attach/wire"
)

// mostItems limits the items of a turn on the screen. The Steps button in the chat shows all items.
const mostItems = 1000

// turn is a turn on the screen, with its prompt, answer, tools and changes.
type turn struct {
	wire.Entry        // Answer, Tools and Changes are empty; t.items contains them
	size       int    // length of the answer in bytes
	status     string // activity of the agent other than text and tools
	prompt     *item
	items      []*item // answer, tools and changes, ordered by their position in the answer
	plan       *item
	ending     *item
}

func newTurn(e wire.Entry) *turn {
	t := &turn{prompt: newItem(ofPrompt), plan: newItem(ofNote), ending: newItem(ofNote)}
	t.replace(e)
	return t
}

// replace applies a new entry of the turn. If the entry is Replayed, it is incomplete, and the current items stay.
func (t *turn) replace(e wire.Entry) {
	answer, tools, changes := e.Answer, e.Tools, e.Changes
	e.Answer, e.Tools, e.Changes = "", nil, nil
	// The entry of an ended turn comes from the store, and its tools have other IDs than the tools in t.items. If the
	// answer has not changed, keep t.items.
	same := t.State.Over() && e.State == t.State && len(answer) == t.size
	t.Entry = e
	t.prompt.head, t.prompt.tail = headOf(e), strings.Join(e.Files, ", ")
	t.prompt.body.set(e.Prompt)
	t.showPlan(e.Plan)
	if same || e.Replayed && len(t.items) > 0 {
		return
	}
	old := map[string]*item{}
	var all []*item
	for _, it := range t.items {
		if old[it.id] = it; it.kind == ofThinking || it.kind == ofNote {
			all = append(all, it)
		}
	}
	for _, tool := range tools {
		all = append(all, toolItem(old["tool "+tool.ID], tool))
		delete(old, "tool "+tool.ID)
	}
	for _, c := range changes {
		all = append(all, changeItem(old[changeID(c)], c))
		delete(old, changeID(c)) // a second change of this file must not reuse the item of the first
	}
	slices.SortStableFunc(all, func(a, b *item) int { return cmp.Compare(a.offset, b.offset) })
	t.items, t.size = nil, 0
	for _, it := range all {
		t.extend(answer[t.size:max(min(it.offset, len(answer)), t.size)], old)
		t.items = append(t.items, it)
	}
	t.extend(answer[t.size:], old)
	t.end()
}

// extend appends a text to the answer. If old contains an item for this position, extend reuses the rows of the old
// item.
func (t *turn) extend(text string, old map[string]*item) {
	if text == "" {
		return
	}
	last := t.last()
	if last == nil || last.kind != ofAnswer {
		id := fmt.Sprint("answer ", t.size)
		if last = old[id]; last == nil {
			last = newItem(ofAnswer)
			last.id, last.offset = id, t.size
		}
		last.body.set("")
		t.add(last)
	}
	last.body.append(text)
	t.size += len(text)
}

func (t *turn) last() *item {
	if len(t.items) == 0 {
		return nil
	}
	return t.items[len(t.items)-1]
}

// text applies a new piece of the answer. The piece may also remove text at the end of the answer.
func (t *turn) text(piece wire.Text) {
	if t.State.Over() || t.Replayed {
		return
	}
	for i := len(t.items) - 1; i >= 0 && t.size > piece.Offset; i-- {
		if it := t.items[i]; it.kind == ofAnswer {
			back := min(t.size-piece.Offset, t.size-it.offset)
			it.body.truncate(back)
			t.size -= back
		}
	}
	t.status = ""
	t.extend(piece.Text, nil)
}

func (t *turn) thought(text string) {
	last := t.last()
	if last == nil || last.kind != ofThinking {
		last = newItem(ofThinking)
		last.offset = t.size
		t.add(last)
	}
	last.body.append(text)
}

func (t *turn) note(text string) {
	it := newItem(ofNote)
	it.offset = t.size
	it.body.set(text)
	t.add(it)
}

// tool shows a tool, or the new state of a tool that is already visible.
func (t *turn) tool(tool wire.Tool) {
	if t.Replayed || t.State.Over() {
		return
	}
	t.status = ""
	i := slices.IndexFunc(t.items, func(it *item) bool { return it.id == "tool "+tool.ID })
	if i >= 0 {
		toolItem(t.items[i], tool)
		return
	}
	t.add(toolItem(nil, tool))
}

func (t *turn) change(c wire.Change) {
	if !t.Replayed && !t.State.Over() {
		t.status = ""
		t.add(changeItem(nil, c))
	}
}

func (t *turn) add(it *item) {
	t.items = append(t.items, it)
	t.items = slices.Delete(t.items, 0, max(len(t.items)-mostItems, 0))
}

func toolItem(it *item, tool wire.Tool) *item {
	if it == nil {
		it = newItem(ofTool)
	}
	it.id, it.offset, it.mark = "tool "+tool.ID, tool.Offset, markOf(tool.State)
	if it.head = tool.Name + "  " + tool.Title; tool.Parent != "" {
		it.head = "> " + it.head
	}
	it.long = argumentsOf(tool)
	it.body.set(tool.Output)
	var tail []string
	if tool.Lost > 0 {
		tail = append(tail, fmt.Sprintf("%d bytes before are left out", tool.Lost))
	}
	if tool.Error != "" && !strings.Contains(inOneLine(tool.Output), inOneLine(tool.Error)) {
		tail = append(tail, tool.Error)
	}
	if tool.ExitCode != nil && *tool.ExitCode != 0 {
		tail = append(tail, fmt.Sprint("exit code ", *tool.ExitCode))
	}
	if d := time.Duration(tool.DurationMS) * time.Millisecond; d >= time.Second {
		tail = append(tail, d.Round(time.Second).String())
	}
	it.tail = strings.Join(tail, ", ")
	return it
}

func inOneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// argumentsOf returns the arguments of a tool, one per line. It omits an argument that equals the tool's title.
func argumentsOf(tool wire.Tool) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(tool.Input, &fields) != nil {
		return string(tool.Input)
	}
	var lines []string
	for name, value := range fields {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		if text != tool.Title {
			lines = append(lines, name+": "+text)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func markOf(s wire.ToolState) mark {
	switch s {
	case wire.ToolDone:
		return success
	case wire.ToolFailed:
		return failure
	}
	return running
}

func changeID(c wire.Change) string { return fmt.Sprint("change ", c.Offset, " ", c.Path) }

func changeItem(it *item, c wire.Change) *item {
	if it == nil {
		it = newItem(ofChange)
	}
	it.id, it.offset, it.mark, it.head = changeID(c), c.Offset, success, c.Kind+"  "+c.Path
	it.body.set(c.Diff)
	return it
}

// headOf returns the line above a prompt, which shows where the prompt came from.
func headOf(e wire.Entry) string {
	from := "from the chat"
	switch {
	case e.Job != "":
		from = "job " + e.Job
	case e.Terminal:
		from = "from a terminal"
	}
	if e.Agent != "" {
		from += "  to " + strings.TrimSpace(e.Agent+" "+e.Model)
	}
	return e.Queued.Local().Format("15:04") + "  " + from
}

func (t *turn) showPlan(steps []wire.Step) {
	if t.State.Over() {
		steps = nil
	}
	var lines []string
	for _, s := range steps {
		box := map[string]string{"done": "[x] ", "active": "[>] "}[s.State]
		lines = append(lines, cmp.Or(box, "[ ] ")+s.Text)
	}
	t.plan.body.set(strings.Join(lines, "\n"))
}

func (t *turn) end() {
	var parts []string
	switch t.State {
	case wire.StateFailed:
		parts = append(parts, cmp.Or(t.Failure, "failed"))
	case wire.StateDone, wire.StateQueued, wire.StateRunning:
	case wire.StateSteered:
		parts = append(parts, "added to the running turn")
	default:
		parts = append(parts, string(t.State))
		if t.Failure != "" {
			parts = append(parts, t.Failure)
		}
	}
	if t.State.Over() {
		if d := time.Duration(t.DurationMS) * time.Millisecond; d > 0 {
			parts = append(parts, d.Round(time.Second/10).String())
		}
		if t.CostUSD > 0 {
			parts = append(parts, fmt.Sprintf("$%.2f", t.CostUSD))
		}
	}
	t.ending.body.set(strings.Join(parts, ", "))
}

// all returns all items of the turn, from top to bottom.
func (t *turn) all() []*item {
	return slices.Concat([]*item{t.prompt}, t.items, []*item{t.plan, t.ending})
}
