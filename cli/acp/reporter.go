package acp

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// reporter converts the updates of one turn to events. It is pure: the same updates give the same events.
type reporter struct {
	out    *turn.Emitter
	dir    string
	quirks Quirks

	message message
	tools   tools
	held    string // a chunk that may be an error
	calls   int    // of the model, as far as the agent reports them
	ran     bool   // a tool ran
	cut     bool   // the turn must end
	denials []cli.Denial
	fill    cli.Fill
}

func newReporter(out *turn.Emitter, dir string, quirks Quirks) *reporter {
	return &reporter{
		out: out, dir: dir, quirks: quirks, message: message{parted: true},
		tools: tools{map[string]*tool{}, map[string]*tool{}, map[string]command{}},
	}
}

// update handles one update. It ignores unknown kinds.
func (r *reporter) update(u *update) {
	text := u.Content.text()
	switch u.Kind {
	case updateMessage:
		if text != "" && !(r.quirks.Notices && r.notice(text)) {
			r.say(u.MessageID, text)
		}
	case updateUsage:
		r.out.Accepted()
		r.calls++
		r.fill = cli.Fill{Used: u.Used, Limit: u.Size}
	case updateThought:
		r.sayHeld()
		r.out.Thinking(text)
	case updateTool, updateToolNow:
		r.tool(u.toolCall)
	case updatePlan:
		r.planned(u)
	}
}

// say adds a piece to the message called id.
func (r *reporter) say(id, text string) { r.out.Text(r.message.piece(id, text, r.out.Now())) }

// message is the current message.
type message struct {
	repeats
	block  int  // counts the blocks that tools separate
	parted bool // the next text starts another block
	key    string
}

// piece returns the new part of the text of a piece, and the key of its message, which the agent calls id. Text after a
// tool starts a new paragraph, even in the same message.
func (m *message) piece(id, text string, now time.Time) (key, news string) {
	if m.parted {
		m.parted, m.repeats = false, repeats{}
		m.block++
	}
	m.key = fmt.Sprint("message ", id, " ", m.block)
	return m.key, m.fresh(text, now)
}

// held returns the text that is held back. The message ended before this text had completely repeated the earlier text.
func (m *message) held() (key, text string) {
	text = m.again
	m.repeats = repeats{}
	return m.key, text
}

// repeats removes repeated text from one message. If its stream breaks, an agent pauses, asks its model again and sends
// the beginning of the message a second time. Text that repeats without a pause is the model's own, so it stays.
type repeats struct {
	said  []byte
	last  time.Time // time of the last piece
	anew  bool      // the next text may start the message again
	again string    // text since then, if said starts with it
}

// repeatPause is the shortest pause after which a message may start again. Gemini and Qwen Code wait for a second
// before they ask their model again, but ductor may not notice all of that second.
const repeatPause = 700 * time.Millisecond

// fresh returns the new part of a piece. If a piece may be the start of a repetition, fresh holds it back until that is
// clear.
func (r *repeats) fresh(text string, now time.Time) string {
	if len(r.said) > 0 && now.Sub(r.last) >= repeatPause {
		r.anew = true
		if begins(text, string(r.said)) { // an earlier restart of the message failed too
			r.again = ""
		}
	}
	r.last, text, r.again = now, r.again+text, ""
	if r.anew && len(text) < len(r.said) && begins(text, string(r.said)) {
		r.again = text
		return ""
	}
	if r.anew && begins(text, string(r.said)) {
		text = text[len(r.said):]
	}
	r.anew, r.said = false, append(r.said, text...)
	return text
}

// begins reports whether a starts with b, or b with a.
func begins(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

// emitHeldRepeat emits the held text of the message.
func (r *reporter) emitHeldRepeat() { r.out.Text(r.message.held()) }

// tool handles a tool call or an update of one.
func (r *reporter) tool(c toolCall) {
	if c.ID == "" {
		return
	}
	r.sayHeld()
	t := r.call(c)
	if t.phase == toolRefused || t.phase == toolEnded || t.lacksInput(c) {
		return
	}
	r.startTool(t)
	if c.Status == statusDone || c.Status == statusFailed {
		r.endTool(t, c.Status)
	}
}

// call returns the known state of a tool call, and merges in the agent's new data.
func (r *reporter) call(c toolCall) *tool {
	t := r.tools.all[c.ID]
	if t == nil {
		t = &tool{call: toolCall{ID: c.ID}}
		r.tools.all[c.ID], r.tools.running[c.ID] = t, t
	}
	t.merge(c, r.quirks.Tools.Name)
	if t.planFile = r.quirks.planFile(t.call.ID, t.call.Title); t.planFile != "" {
		t.call.ToolKind = kindSwitch
	}
	return t
}

// startTool shows that a tool runs.
func (r *reporter) startTool(t *tool) {
	r.showTool(t)
	if t.phase == toolWaits {
		r.ran, t.phase = true, toolRuns
	}
}

// showTool shows the last known state of a tool, which may not be allowed yet.
func (r *reporter) showTool(t *tool) {
	before := t.shown
	t.shown = t.began(r.dir)
	switch {
	case t.phase == toolNamed:
		r.emitHeldRepeat()
		r.message.parted, t.phase = true, toolWaits
		r.out.ToolStart(t.shown)
	case !reflect.DeepEqual(before, t.shown):
		r.out.ToolChange(t.shown)
	}
}

func (r *reporter) endTool(t *tool, status string) {
	t.phase = toolEnded
	delete(r.tools.running, t.call.ID)
	if status == statusDone {
		for _, change := range t.changes(r.dir) {
			if !slices.Contains(t.wrote, change.Path) {
				r.out.Pass(change)
			}
		}
	}
	end := t.over(status, r.quirks.Tools.Failure)
	if own := r.ended(t); own != nil && end.ExitCode == nil {
		end.ExitCode, end.Err, end.Output = own.ExitCode, own.Err, cmp.Or(end.Output, own.Output)
	}
	if r.cut && end.Err == cli.ToolUntold {
		end.Err = cli.ToolCutShort
	}
	r.out.ToolEnd(end)
}

// deny shows that a tool was not allowed.
func (r *reporter) deny(t *tool, why string) {
	r.showTool(t)
	r.denials = append(r.denials, cli.Denial{Tool: t.shown.Name, Title: t.shown.Title, Reason: why})
	r.out.ToolEnd(cli.ToolEnded{ID: t.shown.ID, Err: cli.ToolDenied})
	t.phase = toolRefused
	delete(r.tools.running, t.call.ID)
}

// planned emits the agent's plan.
func (r *reporter) planned(u *update) {
	var ev cli.PlanChanged
	for _, e := range u.Entries {
		ev.Steps = append(ev.Steps, cli.PlanStep{Text: cli.ShortLine(e.Content), State: cli.PlanStateOf(e.Status)})
	}
	r.out.Pass(ev)
}
