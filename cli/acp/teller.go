package acp

import (
	"encoding/json"
	"fmt"

	"ductor/cli"
)

// teller turns the updates of one turn into events. It is pure: the same updates give the same events.
type teller struct {
	out    *cli.Emitter
	dir    string
	quirks Quirks

	tools   map[cli.ToolID]*tool
	block   int // counts the messages that tools part
	talking bool
	key     string // of the message that is being told
	held    string // a chunk that may be an error
	calls   int    // of the model, as far as the agent tells of them
	mode    string // the mode the agent went into by itself; empty if it did not
	plan    string // what was told of the plan
	ran     bool   // a tool was
	denials []cli.Denial
	unread  int
}

func newTeller(out *cli.Emitter, dir string, quirks Quirks) *teller {
	return &teller{out: out, dir: dir, quirks: quirks, tools: map[cli.ToolID]*tool{}}
}

func readUpdate(raw json.RawMessage) (update, bool) {
	var u update
	return u, len(raw) > 0 && json.Unmarshal(raw, &u) == nil && u.Kind != ""
}

// update takes one update. Kinds that are not known mean nothing to us.
func (t *teller) update(raw json.RawMessage) {
	u, ok := readUpdate(raw)
	if !ok {
		t.unread++
		return
	}
	switch u.Kind {
	case updateMessage:
		t.text(u)
	case updateUsage:
		t.calls++
	case updateThought:
		t.release()
		t.out.Thinking(chunkText(u.Content))
	case updateTool, updateToolNow:
		t.tool(u)
	case updatePlan:
		t.planned(u.Entries)
	case updateMode:
		t.mode = u.ModeID
	}
}

func chunkText(raw json.RawMessage) string {
	var b block
	if json.Unmarshal(raw, &b) != nil {
		return ""
	}
	return b.words()
}

func (t *teller) text(u update) {
	text := chunkText(u.Content)
	if text == "" || t.quirks.Notices && t.notice(text) {
		return
	}
	t.say(u.MessageID, text)
}

// say tells a piece of the message called id; an agent that names none begins another after each tool.
func (t *teller) say(id, text string) {
	if !t.talking {
		t.talking = true
		t.block++
	}
	t.key = id
	if id == "" {
		t.key = fmt.Sprint("message ", t.block)
	}
	t.out.Text(t.key, text)
}

// tool takes a tool call or news of one.
func (t *teller) tool(u update) {
	if u.ID == "" {
		t.unread++
		return
	}
	call := t.call(u.ID)
	var content []toolContent
	if len(u.Content) > 0 && json.Unmarshal(u.Content, &content) != nil {
		t.unread++
	}
	t.release()
	call.take(u.toolCall, content, t.quirks.ToolName)
	if call.refused || call.ended {
		return
	}
	t.start(call)
	if u.Status != nil && (*u.Status == statusDone || *u.Status == statusFailed) {
		t.end(call, *u.Status)
	}
}

func (t *teller) call(id string) *tool {
	call := t.tools[cli.ToolID(id)]
	if call == nil {
		call = &tool{id: cli.ToolID(id)}
		t.tools[call.id] = call
	}
	return call
}

func (t *teller) start(call *tool) {
	if call.started {
		return
	}
	t.talking, call.started, t.ran = false, true, true
	t.out.ToolStart(call.begun())
}

func (t *teller) end(call *tool, status string) {
	call.ended = true
	if status == statusDone {
		for _, change := range call.changes(t.dir) {
			t.out.Pass(change)
		}
	}
	t.out.ToolEnd(call.over(status, t.quirks.ExitCode))
}

// asked takes what a request for permission says of its tool.
func (t *teller) asked(a *ask) {
	a.tool = t.call(a.params.ToolCall.ID)
	var content []toolContent
	if len(a.params.ToolCall.Content) > 0 && json.Unmarshal(a.params.ToolCall.Content, &content) != nil {
		t.unread++
	}
	a.tool.take(a.params.ToolCall.toolCall, content, t.quirks.ToolName)
}

// deny records that a tool was not allowed. One that was shown already is ended.
func (t *teller) deny(call *tool, why string) {
	begun := call.begun()
	t.denials = append(t.denials, cli.Denial{Tool: begun.Name, Title: begun.Title, Reason: why})
	call.refused = true
	if call.started && !call.ended {
		call.ended = true
		t.out.ToolEnd(cli.ToolEnded{ID: call.id, Err: "not allowed"})
	}
}

// planned tells how far the agent's plan is.
func (t *teller) planned(entries []planEntry) {
	done, next := 0, ""
	for _, e := range entries {
		switch {
		case e.Status == statusDone:
			done++
		case next == "" || e.Status == "in_progress":
			next = e.Content
		}
	}
	line := oneLine(fmt.Sprintf("plan %d/%d %s", done, len(entries), next))
	if len(entries) == 0 || line == t.plan {
		return
	}
	t.plan = line
	t.out.Pass(cli.Status{Kind: cli.StatusWaiting, Detail: line})
}
