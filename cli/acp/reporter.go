package acp

import (
	"encoding/json"
	"fmt"

	"ductor/cli"
	"ductor/cli/turn"
)

// reporter turns the updates of one turn into events. It is pure: the same updates give the same events.
type reporter struct {
	out    *turn.Emitter
	dir    string
	quirks Quirks

	tools   map[cli.ToolID]*tool
	block   int // counts the messages that tools part
	talking bool
	key     string // of the message at hand
	held    string // a chunk that may be an error
	calls   int    // of the model, as far as the agent tells of them
	mode    string // the mode the agent switched to without asking; empty if it did not
	plan    string // the last status of the plan
	ran     bool   // a tool was
	denials []cli.Denial
	unread  int
}

func newReporter(out *turn.Emitter, dir string, quirks Quirks) *reporter {
	return &reporter{out: out, dir: dir, quirks: quirks, tools: map[cli.ToolID]*tool{}}
}

func readUpdate(raw json.RawMessage) (update, bool) {
	var u update
	return u, len(raw) > 0 && json.Unmarshal(raw, &u) == nil && u.Kind != ""
}

// update takes one update. Kinds that are not known mean nothing to us.
func (r *reporter) update(raw json.RawMessage) {
	u, ok := readUpdate(raw)
	if !ok {
		r.unread++
		return
	}
	switch u.Kind {
	case updateMessage:
		r.text(u)
	case updateUsage:
		r.calls++
	case updateThought:
		r.release()
		r.out.Thinking(chunkText(u.Content))
	case updateTool, updateToolNow:
		r.tool(u)
	case updatePlan:
		r.planned(u.Entries)
	case updateMode:
		r.mode = u.ModeID
	}
}

func chunkText(raw json.RawMessage) string {
	var b block
	if json.Unmarshal(raw, &b) != nil {
		return ""
	}
	return b.words()
}

func (r *reporter) text(u update) {
	text := chunkText(u.Content)
	if text == "" || r.quirks.Notices && r.notice(text) {
		return
	}
	r.say(u.MessageID, text)
}

// say tells a piece of the message called id; an agent that names none begins another after each tool.
func (r *reporter) say(id, text string) {
	if !r.talking {
		r.talking = true
		r.block++
	}
	r.key = id
	if id == "" {
		r.key = fmt.Sprint("message ", r.block)
	}
	r.out.Text(r.key, text)
}

// tool takes a tool call or news of one.
func (r *reporter) tool(u update) {
	if u.ID == "" {
		r.unread++
		return
	}
	call := r.call(u.ID)
	var content []toolContent
	if len(u.Content) > 0 && json.Unmarshal(u.Content, &content) != nil {
		r.unread++
	}
	r.release()
	call.take(u.toolCall, content, r.quirks.ToolName)
	if call.refused || call.ended {
		return
	}
	r.start(call)
	if u.Status != nil && (*u.Status == statusDone || *u.Status == statusFailed) {
		r.end(call, *u.Status)
	}
}

func (r *reporter) call(id string) *tool {
	call := r.tools[cli.ToolID(id)]
	if call == nil {
		call = &tool{id: cli.ToolID(id)}
		r.tools[call.id] = call
	}
	return call
}

func (r *reporter) start(call *tool) {
	if call.started {
		return
	}
	r.talking, call.started, r.ran = false, true, true
	r.out.ToolStart(call.begun())
}

func (r *reporter) end(call *tool, status string) {
	call.ended = true
	if status == statusDone {
		for _, change := range call.changes(r.dir) {
			r.out.Pass(change)
		}
	}
	r.out.ToolEnd(call.over(status, r.quirks.ExitCode))
}

// asked takes what a request for permission says of its tool.
func (r *reporter) asked(a *ask) {
	a.tool = r.call(a.params.ToolCall.ID)
	var content []toolContent
	if len(a.params.ToolCall.Content) > 0 && json.Unmarshal(a.params.ToolCall.Content, &content) != nil {
		r.unread++
	}
	a.tool.take(a.params.ToolCall.toolCall, content, r.quirks.ToolName)
}

// deny records that a tool was not allowed. One that was shown already is ended.
func (r *reporter) deny(call *tool, why string) {
	begun := call.begun()
	r.denials = append(r.denials, cli.Denial{Tool: begun.Name, Title: begun.Title, Reason: why})
	call.refused = true
	if call.started && !call.ended {
		call.ended = true
		r.out.ToolEnd(cli.ToolEnded{ID: call.id, Err: "not allowed"})
	}
}

// planned tells how far the agent's plan is.
func (r *reporter) planned(entries []planEntry) {
	done, next := 0, ""
	for _, e := range entries {
		switch {
		case e.Status == statusDone:
			done++
		case next == "" || e.Status == "in_progress":
			next = e.Content
		}
	}
	line := cli.ShortLine(fmt.Sprintf("plan %d/%d %s", done, len(entries), next))
	if len(entries) == 0 || line == r.plan {
		return
	}
	r.plan = line
	r.out.Pass(cli.Status{Kind: cli.StatusWaiting, Detail: line})
}
