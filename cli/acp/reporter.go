package acp

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"ductor/cli"
	"ductor/cli/turn"
)

// reporter turns the updates of one turn into events. It is pure: the same updates give the same events.
type reporter struct {
	out    *turn.Emitter
	dir    string
	quirks Quirks

	message
	tools   map[string]*tool
	held    string // a chunk that may be an error
	calls   int    // of the model, as far as the agent tells of them
	ran     bool   // a tool was
	denials []cli.Denial
	fill    cli.Fill
}

func newReporter(out *turn.Emitter, dir string, quirks Quirks) *reporter {
	return &reporter{out: out, dir: dir, quirks: quirks, tools: map[string]*tool{}, message: message{parted: true}}
}

// update takes one update. Kinds that are not known mean nothing to us.
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

// say tells a piece of the message called id; an agent that names none begins another after each tool.
func (r *reporter) say(id, text string) {
	if r.parted {
		r.parted, r.repeats = false, repeats{}
		r.block++
	}
	r.key = cmp.Or(id, fmt.Sprint("message ", r.block))
	if r.quirks.HidesTrouble {
		text = r.fresh(text)
	}
	r.out.Text(r.key, text)
}

// message is the one at hand.
type message struct {
	repeats
	block  int  // counts those that tools part
	parted bool // what is said next begins another
	key    string
}

// repeats finds what is said again, after a stream broke, in a message.
type repeats struct {
	said  []byte
	again string
}

// minRepeat is how long a message must be to be taken for one that is said again.
const minRepeat = 32

// fresh is what a piece adds to the message. One that may begin it anew is held back until that is known.
func (r *repeats) fresh(text string) string {
	text = r.again + text
	r.again = ""
	if len(r.said) >= minRepeat {
		switch {
		case len(text) >= len(r.said) && strings.HasPrefix(text, string(r.said)):
			rest := text[len(r.said):]
			r.said = append(r.said, rest...)
			return rest
		case bytes.HasPrefix(r.said, []byte(text)):
			r.again = text
			return ""
		}
	}
	r.said = append(r.said, text...)
	return text
}

// sayAgain tells what was held back, since the message ended before it was said again.
func (r *reporter) sayAgain() {
	text := r.again
	r.repeats = repeats{}
	r.out.Text(r.key, text)
}

// tool takes a tool call or news of one.
func (r *reporter) tool(c toolCall) {
	if c.ID == "" {
		return
	}
	r.sayHeld()
	t := r.call(c)
	if t.phase == toolRefused || t.phase == toolEnded {
		return
	}
	r.startTool(t)
	if c.Status == statusDone || c.Status == statusFailed {
		r.endTool(t, c.Status)
	}
}

// call finds what is known of a tool call, and adds what the agent says of it.
func (r *reporter) call(c toolCall) *tool {
	t := r.tools[c.ID]
	if t == nil {
		t = &tool{toolCall: toolCall{ID: c.ID}}
		r.tools[c.ID] = t
	}
	t.merge(c, r.quirks.ToolName)
	if t.planFile = r.quirks.planFile(t.ID, t.Title); t.planFile != "" {
		t.ToolKind = kindSwitch
	}
	return t
}

func (r *reporter) startTool(t *tool) {
	if t.phase != toolNamed {
		return
	}
	r.sayAgain()
	r.parted, r.ran, t.phase = true, true, toolRuns
	r.out.ToolStart(t.began())
}

func (r *reporter) endTool(t *tool, status string) {
	t.phase = toolEnded
	if status == statusDone {
		for _, change := range t.changes(r.dir) {
			r.out.Pass(change)
		}
	}
	r.out.ToolEnd(t.over(status, r.quirks.Failure))
}

// deny records that a tool was not allowed. One that was shown already is ended.
func (r *reporter) deny(t *tool, why string) {
	r.sayAgain()
	began := t.began()
	r.denials = append(r.denials, cli.Denial{Tool: began.Name, Title: began.Title, Reason: why})
	if t.phase == toolRuns {
		r.out.ToolEnd(cli.ToolEnded{ID: began.ID, Err: cli.ToolDenied})
	}
	r.parted, t.phase = true, toolRefused
}

// planned tells the agent's plan.
func (r *reporter) planned(u *update) {
	var ev cli.PlanChanged
	for _, e := range u.Entries {
		ev.Steps = append(ev.Steps, cli.PlanStep{Text: cli.ShortLine(e.Content), State: cli.PlanStateOf(e.Status)})
	}
	r.out.Pass(ev)
}
