package turn

import (
	"cmp"
	"strings"
	"time"

	"ductor/cli"
)

// Emitter makes sure that a provider's events keep the contract of cli.Event. Providers identify each message of an
// answer by a key. If a message arrives again, its text replaces the earlier text with the same key. The Emitter ends
// every tool, and emits a single Result. An Emitter serves one turn. It is not safe for concurrent use.
type Emitter struct {
	agent   cli.Agent
	now     func() time.Time
	emit    func(cli.Event)
	started time.Time

	session   *cli.SessionStarted // nil until the agent names its session
	accepted  bool                // whether the agent has accepted the prompt
	blocks    []textBlock
	text      strings.Builder // the emitted answer: the blocks, separated by blank lines
	confirmed int             // length of the answer without text that GiveUp declared invalid; -1 if there is none
	tools     tools
	done      bool
	replaying bool // the events are from the time before ductor attached
}

type textBlock struct {
	key   string // identifies a message, or a part of one; chosen by the provider
	start int    // offset in the answer at which the block's separator starts
	sep   int    // length of the separator before the block
}

// NewEmitter creates an Emitter that passes events to emit. It measures durations with now.
func NewEmitter(agent cli.Agent, now func() time.Time, emit func(cli.Event)) *Emitter {
	return &Emitter{agent: agent, now: now, emit: emit, started: now(), confirmed: -1, tools: newTools()}
}

// replay starts the replay of old output. Until CaughtUp, it calls timestamp for the time of each event. If timestamp
// returns zero, the event has the current time. The turn started at the first of these times.
func (e *Emitter) replay(timestamp func() time.Time) {
	clock := e.now
	e.now = func() time.Time {
		if at := timestamp(); !at.IsZero() {
			return at
		}
		return clock()
	}
	e.replaying, e.started = true, e.now()
}

// Replaying reports whether the current event happened before ductor attached. A later event in the old output may
// contradict this event: for example, a request may have been answered.
func (e *Emitter) Replaying() bool { return e.replaying }

// Now returns the time of the current event.
func (e *Emitter) Now() time.Time { return e.now() }

// Session emits the agent's session and model if they are new or have changed.
func (e *Emitter) Session(id cli.AgentSessionID, model cli.ModelID) {
	e.Started(cli.SessionStarted{AgentSessionID: id, Model: model})
}

// Started emits next if it differs from the last SessionStarted. If next has no ID, Started uses the ID of the last
// SessionStarted. It emits nothing as long as the session has no ID.
func (e *Emitter) Started(next cli.SessionStarted) {
	next.Model = named(next.Model)
	if e.session != nil {
		next.AgentSessionID = cmp.Or(next.AgentSessionID, e.session.AgentSessionID)
	}
	if e.done || next.AgentSessionID == "" || e.session != nil && *e.session == next {
		return
	}
	first := e.session == nil
	e.session = &next
	e.emit(next)
	if first && e.accepted {
		e.emit(cli.PromptAccepted{})
	}
}

// named returns a model's name without the prefix and suffix that Qwen Code adds: NAME for
// $runtime|openai|NAME(openai). It returns "" if the agent chooses the model itself.
func named(model cli.ModelID) cli.ModelID {
	id := string(model)
	if i := strings.LastIndexByte(id, '|'); i >= 0 {
		id, _, _ = strings.Cut(id[i+1:], "(")
	}
	if id == "auto" || strings.HasPrefix(id, "auto-") {
		return ""
	}
	return cli.ModelID(id)
}

// busiest returns the model with the most output, or "" if there is none. It skips "auto", which is Gemini's name for
// unknown models.
func busiest(all map[cli.ModelID]cli.Usage) (most cli.ModelID) {
	for id, u := range all {
		if named(id) == "" {
			continue
		}
		if most == "" || cmp.Or(cmp.Compare(u.Output, all[most].Output), cmp.Compare(most, id)) > 0 {
			most = id
		}
	}
	return most
}

// Named reports whether the agent has reported its session.
func (e *Emitter) Named() bool { return e.session != nil }

// Accepted emits PromptAccepted, but not before SessionStarted. Only the first call has an effect.
func (e *Emitter) Accepted() {
	if e.done || e.accepted {
		return
	}
	if e.accepted = true; e.Named() {
		e.emit(cli.PromptAccepted{})
	}
}

// Text appends delta to the last block if that block has this key. Otherwise Text starts a new block at the end of the
// answer. Text reports whether it emitted text. Text emits nothing while the agent only repeats text that GiveUp
// declared invalid.
func (e *Emitter) Text(key, delta string) (news bool) {
	if e.done || delta == "" {
		return false
	}
	if n := len(e.blocks); n == 0 || e.blocks[n-1].key != key {
		e.open(key)
	}
	return e.add(delta)
}

// FullText sets the complete text of the block with this key. For the last block, it emits only the difference to the
// previous text. If there is no such block, FullText starts one. FullText does nothing if an earlier block has the key.
func (e *Emitter) FullText(key, text string) {
	if e.done {
		return
	}
	last := len(e.blocks) - 1
	for i, b := range e.blocks {
		if b.key == key && i != last {
			return
		}
	}
	if last < 0 || e.blocks[last].key != key {
		e.Text(key, text)
		return
	}
	if text == "" {
		e.retract(e.length() - e.blocks[last].start)
		e.blocks = e.blocks[:last]
		return
	}
	have := e.Answer()[e.blocks[last].start+e.blocks[last].sep:]
	same := commonPrefix(have, text)
	if same < len(have) {
		e.retract(len(have) - same)
	}
	e.add(text[same:])
}

// GiveUp declares the last block invalid, but only if the block has this key. The agent will send the block again. The
// block's text remains visible until the new text differs from it, so that the chat does not flicker if a stream breaks
// repeatedly. If the turn fails, the text remains in the answer.
func (e *Emitter) GiveUp(key string) {
	last := len(e.blocks) - 1
	if e.done || last < 0 || e.blocks[last].key != key {
		return
	}
	e.confirmed = e.blocks[last].start
	e.blocks = e.blocks[:last]
}

// TakeBack retracts the complete answer.
func (e *Emitter) TakeBack() {
	if !e.done {
		e.retract(e.length())
		e.blocks = nil
	}
}

// Thinking emits a ThinkingDelta.
func (e *Emitter) Thinking(text string) {
	if !e.done && text != "" {
		e.emit(cli.ThinkingDelta{Text: text})
	}
}

// ToolStart emits t and returns true, unless the agent repeats an announcement. After a tool has ended, a call with the
// same ID but another name or input is another tool. ToolStart ignores a tool without an ID.
func (e *Emitter) ToolStart(t cli.ToolStarted) (news bool) {
	if e.done || t.ID == "" {
		return false
	}
	now := e.now()
	parent := e.tools.eventID(t.Parent)
	call, news := e.tools.start(t, now)
	if !news {
		return false
	}
	e.forget()
	if e.replaying {
		t.At = now
	}
	t.ID, t.Parent = call.id, parent
	e.emit(titled(t))
	return true
}

// Reuse records that the agent uses the ID of an ended tool for another tool. Then the next call of ToolStart starts a
// tool even if its name and input are the same.
func (e *Emitter) Reuse(id cli.ToolID) { e.tools.reuse(id) }

// titled returns a tool call with its title if the tool is ductor's own.
func titled(t cli.ToolStarted) cli.ToolStarted {
	if cli.OwnTool(t.Name) != "" {
		t.Title = cli.OwnTitle(t.Input)
	}
	return t
}

// ToolChange emits t as the new description of an open tool.
func (e *Emitter) ToolChange(t cli.ToolStarted) {
	call := e.tools.running(t.ID)
	if e.done || call == nil {
		return
	}
	call.digest = callDigest(t)
	t.ID, t.Parent = call.id, e.tools.eventID(t.Parent)
	e.emit(cli.ToolChanged{ToolStarted: titled(t)})
}

// ToolStartOrChange is like ToolStart for a tool that is not open. If the tool is open and t has another name or input,
// ToolStartOrChange emits t as the new description.
func (e *Emitter) ToolStartOrChange(t cli.ToolStarted) {
	if call := e.tools.running(t.ID); call == nil {
		e.ToolStart(t)
	} else if call.digest != callDigest(t) {
		e.ToolChange(t)
	}
}

// ToolEnd emits t if the tool is open. It sets a missing duration.
func (e *Emitter) ToolEnd(t cli.ToolEnded) {
	if call := e.tools.running(t.ID); call != nil {
		e.endTool(call, t)
	}
}

func (e *Emitter) endTool(call *toolCall, t cli.ToolEnded) {
	if e.done {
		return
	}
	if t.ID = call.id; t.Duration == 0 {
		t.Duration = e.now().Sub(call.started)
	}
	e.tools.end(call)
	e.emit(t)
}

// Pass emits an event for which Emitter has no other method, such as Status, FileChanged or the agent's requests.
func (e *Emitter) Pass(ev cli.Event) {
	switch asked := ev.(type) {
	case cli.CaughtUp:
		e.replaying = false
	case cli.ApprovalAsked:
		asked.Started = e.tools.requestedID(asked.Started)
		ev = asked
	case cli.QuestionAsked:
		asked.Started = e.tools.requestedID(asked.Started)
		ev = asked
	}
	if !e.done {
		e.emit(ev)
	}
}

// OpenTools returns the number of tools that have not ended.
func (e *Emitter) OpenTools() int { return len(e.tools.open) }

// Answer returns the answer so far, without text that GiveUp declared invalid.
func (e *Emitter) Answer() string { return e.text.String()[:e.length()] }

// length returns the length of Answer.
func (e *Emitter) length() int {
	if e.confirmed >= 0 {
		return e.confirmed
	}
	return e.text.Len()
}

func (e *Emitter) forget() {
	if e.confirmed >= 0 {
		e.retract(0)
	}
}

// Finished reports whether Finish was called.
func (e *Emitter) Finished() bool { return e.done }

// Finish ends the open tools and emits r with the text of the answer. It sets the session, the model and the duration
// if they are missing. If ductor has detached from the turn, the tools remain open, because they are still running.
// Only the first call has an effect.
func (e *Emitter) Finish(r cli.Result) {
	if e.done {
		return
	}
	for len(e.tools.open) > 0 && !r.Detached {
		e.endTool(e.tools.open[0], cli.ToolEnded{Err: cli.ToolCutShort})
	}
	if r.Err == nil && !r.Aborted && !r.Detached {
		e.forget()
	}
	r.Text = e.text.String()
	if e.session != nil {
		r.AgentSessionID = cmp.Or(r.AgentSessionID, e.session.AgentSessionID)
		r.Model = cmp.Or(named(r.Model), e.session.Model)
	}
	if r.Model == "" { // the agent chose the model itself
		r.Model = busiest(r.Consumed.ByModel)
	}
	if r.Duration == 0 {
		r.Duration = e.now().Sub(e.started)
	}
	if r.Err != nil && r.Err.Agent == "" {
		r.Err.Agent = e.agent
	}
	e.done = true
	e.emit(r)
}

func (e *Emitter) open(key string) {
	b := textBlock{key: key, start: e.length()}
	if b.start > 0 {
		e.add(blockSeparator)
		b.sep = e.length() - b.start
	}
	e.blocks = append(e.blocks, b)
}

const blockSeparator = "\n\n"

// MaxAnswer limits the size of an answer in bytes. A note replaces the text beyond the limit.
const MaxAnswer = 10 << 20

const answerCut = "\n\n(ductor keeps 10 MB of an answer; the rest is dropped.)"

// add appends s to the answer. If s repeats text that GiveUp declared invalid, add emits only the part that differs.
// add reports whether it emitted text.
func (e *Emitter) add(s string) bool {
	if e.confirmed >= 0 {
		same := commonPrefix(e.text.String()[e.confirmed:], s)
		e.confirmed += same
		if s = s[same:]; s != "" {
			word := e.lastWord()
			e.retract(len(word))
			s = word + s
		}
	}
	if e.confirmed == e.text.Len() {
		e.confirmed = -1
	}
	room := MaxAnswer - e.text.Len()
	if s == "" || room < 0 {
		return false
	}
	if len(s) > room {
		s = strings.ToValidUTF8(s[:room], "") + answerCut
	}
	e.text.WriteString(s)
	e.emit(cli.TextDelta{Text: s})
	return true
}

// retract removes the last n bytes of the answer, and any text that GiveUp declared invalid.
func (e *Emitter) retract(n int) {
	n += e.text.Len() - e.length()
	e.confirmed = -1
	if n == 0 {
		return
	}
	kept := e.text.String()[:e.text.Len()-n]
	e.text.Reset()
	e.text.WriteString(kept)
	e.emit(cli.TextRetracted{Bytes: n})
}
