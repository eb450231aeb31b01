package acp

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"ductor/cli"
	"ductor/cli/acp/toolcall"
	"ductor/cli/turn"
)

// reporter converts the updates that the agent sends in one turn to events. It does no I/O. The same updates always
// result in the same events.
type reporter struct {
	out    *turn.Emitter
	dir    string
	quirks Quirks

	message message
	tools   tools
	held    string // text that looks like an error; the next update shows whether the error ends the turn
	calls   int    // number of model calls, as far as the agent reports them
	ran     bool
	cut     bool // whether ductor has interrupted the turn
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
	text := u.Content.Text()
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
	case updateTool:
		if t := r.tools.all[u.Call.ID]; t != nil && t.isReused(u.Call) {
			r.forget(u.Call.ID)
		}
		r.tool(u.Call)
	case updateToolNow:
		r.tool(u.Call)
	case updatePlan:
		r.planned(u)
	}
}

func (r *reporter) say(id, text string) { r.out.Text(r.message.piece(id, text, r.out.Now())) }

// message is the model's message that the agent is sending.
type message struct {
	repeats
	block  int  // number of the current block; text after a tool starts a new block
	parted bool // whether the next text starts a new block
	key    string
}

// piece returns the part of text that the agent has not sent before, and the message's key for turn.Emitter. id is the
// ID that the agent gave the message. After a tool, piece returns a new key, even for the same ID.
func (m *message) piece(id, text string, now time.Time) (key, news string) {
	if m.parted {
		m.parted, m.repeats = false, repeats{}
		m.block++
	}
	m.key = fmt.Sprint("message ", id, " ", m.block)
	return m.key, m.fresh(text, now)
}

// held returns the text in heldBack, and the message's key. The caller calls held at the end of the message. The text
// is then no repetition, so users must see it.
func (m *message) held() (key, text string) {
	text = m.heldBack
	m.repeats = repeats{}
	return m.key, text
}

// repeats removes text that the agent sends twice within a message. When the model's stream breaks, the agent pauses,
// and then sends the message again from its beginning. repeats does not remove a repetition without a pause, because
// the model itself may repeat text.
type repeats struct {
	sent     []byte
	last     time.Time // time of the last text
	paused   bool      // whether the agent has paused, so that its next text may be a repetition
	heldBack string    // text that is held back, because it may be a repetition
}

// repeatPause is the shortest pause of an agent after which its next text may be a repetition. Gemini and Qwen Code wait
// one second before they query the model again. repeatPause is shorter, because ductor may receive the text before the
// pause with a delay.
const repeatPause = 700 * time.Millisecond

// fresh returns the part of text that is not a repetition. It holds back text that may be the start of a repetition
// until more text arrives.
func (r *repeats) fresh(text string, now time.Time) string {
	if len(r.sent) > 0 && now.Sub(r.last) >= repeatPause {
		r.paused = true
		if begins(text, string(r.sent)) { // the message starts again, so the repetition in heldBack broke off
			r.heldBack = ""
		}
	}
	r.last, text, r.heldBack = now, r.heldBack+text, ""
	if r.paused && len(text) < len(r.sent) && begins(text, string(r.sent)) {
		r.heldBack = text
		return ""
	}
	if r.paused && begins(text, string(r.sent)) {
		text = text[len(r.sent):]
	}
	r.paused, r.sent = false, append(r.sent, text...)
	return text
}

// begins reports whether one of the texts is a prefix of the other.
func begins(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

func (r *reporter) emitHeldRepeat() { r.out.Text(r.message.held()) }

// tool handles a tool call, or an update of a tool call.
func (r *reporter) tool(c toolcall.Call) {
	if c.ID == "" {
		return
	}
	r.sayHeld()
	t := r.call(c)
	if t.isOver() || t.call.LacksInput(c) {
		return
	}
	r.startTool(t)
	if c.Status == toolcall.StatusDone || c.Status == toolcall.StatusFailed {
		r.endTool(t, c.Status)
	}
}

// forget forgets a tool call that is over, because the agent uses the ID of the call for another call.
func (r *reporter) forget(id string) {
	if t := r.tools.all[id]; t != nil && t.isOver() {
		delete(r.tools.all, id)
		r.out.Reuse(cli.ToolID(id))
	}
}

// call merges new data from the agent into the stored state of a tool call, and returns the merged state.
func (r *reporter) call(c toolcall.Call) *tool {
	t := r.tools.all[c.ID]
	if t == nil {
		t = &tool{call: toolcall.Call{ID: c.ID}}
		r.tools.all[c.ID], r.tools.running[c.ID] = t, t
	}
	t.merge(c, r.quirks.Tools.Name)
	if r.quirks.Tools.PlanFile != nil {
		t.planFile = r.quirks.Tools.PlanFile(t.call.ID, t.call.Title)
	}
	if t.planFile != "" {
		t.call.ToolKind = toolcall.KindSwitch
	}
	return t
}

// startTool records that the tool runs. It also emits the tool's start, if users have not seen it yet.
func (r *reporter) startTool(t *tool) {
	r.showTool(t)
	if t.phase == toolWaits {
		r.ran, t.phase = true, toolRuns
	}
}

// showTool emits the start of a tool, or a change of it. The tool may still wait for permission.
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
	t.phase, t.succeeded = toolEnded, status == toolcall.StatusDone
	delete(r.tools.running, t.call.ID)
	if status == toolcall.StatusDone {
		for _, change := range t.call.Changes(r.dir) {
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

// deny emits the end of a tool that was denied, and adds the denial to the turn's result.
func (r *reporter) deny(t *tool, why string) {
	r.showTool(t)
	r.denials = append(r.denials, cli.Denial{Tool: t.shown.Name, Title: t.shown.Title, Reason: why})
	r.out.ToolEnd(cli.ToolEnded{ID: t.shown.ID, Err: cli.ToolDenied})
	t.phase = toolRefused
	delete(r.tools.running, t.call.ID)
}

func (r *reporter) planned(u *update) {
	var ev cli.PlanChanged
	for _, e := range u.Entries {
		ev.Steps = append(ev.Steps, cli.PlanStep{Text: cli.ShortLine(e.Content), State: cli.PlanStateOf(e.Status)})
	}
	r.out.Pass(ev)
}
