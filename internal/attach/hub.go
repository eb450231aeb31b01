// Package attach lets the owner use conversations from terminals. The owner is the user who set up ductor and controls
// it. The package sends the events of conversations to the clients that `ductor attach` started, and handles the
// requests of these clients. Package wire defines the protocol.
package attach

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"ductor/cli"
	"ductor/internal/attach/wire"
	"ductor/orchestrator"
)

// Hub passes the events of conversations to the terminals that opened them. Its methods do not wait for terminals.
// Safe for concurrent use.
type Hub struct {
	now func() time.Time
	log *slog.Logger

	mu    sync.Mutex
	rooms map[orchestrator.ConversationID]*room
	all   map[*terminal]bool
}

// room is the part of a conversation's state that is not in the store. Hub.mu guards it.
type room struct {
	turns     map[cli.TurnID]*turn // running turns
	notices   []wire.Notice        // the newest notices
	approvals map[orchestrator.ApprovalID]bool
	deciding  map[orchestrator.ApprovalID]*decision // approvals for which a terminal's decision is in progress
}

// mostNotices limits the notices that a terminal gets when it opens a conversation.
const mostNotices = 20

// NewHub creates a Hub.
func NewHub(now func() time.Time, log *slog.Logger) *Hub {
	return &Hub{
		now: now, log: log, rooms: map[orchestrator.ConversationID]*room{}, all: map[*terminal]bool{},
	}
}

func (h *Hub) roomLocked(in orchestrator.ConversationID) *room {
	r := h.rooms[in]
	if r == nil {
		r = &room{turns: map[cli.TurnID]*turn{}, approvals: map[orchestrator.ApprovalID]bool{},
			deciding: map[orchestrator.ApprovalID]*decision{}}
		h.rooms[in] = r
	}
	return r
}

// sendLocked sends a message to the terminals that have a conversation open.
func (h *Hub) sendLocked(in orchestrator.ConversationID, m wire.Message) {
	var line []byte
	for t := range h.all {
		if t.in == nil || *t.in != in {
			continue
		}
		if line == nil {
			line = h.encode(m)
		}
		t.queue(line)
	}
}

// encode returns the line for a message. If the message is too long for a line, encode omits parts of it.
func (h *Hub) encode(m wire.Message) []byte {
	for range leanings {
		var line bytes.Buffer
		out := json.NewEncoder(&line)
		out.SetEscapeHTML(false) // escaping makes some texts six times as long
		err := out.Encode(m)
		if err == nil && line.Len() <= wire.MaxLine {
			return line.Bytes()
		}
		h.log.Warn("a message is too long for a terminal", "bytes", line.Len(), "err", err)
		m = lean(m)
	}
	return []byte(`{"status":{"turn":"","warning":true,` +
		`"sentence":"Something here is too long for a terminal; the chat shows it."}}` + "\n")
}

// sendActivityLocked sends the Activity of a conversation to all terminals, even if they show another conversation.
func (h *Hub) sendActivityLocked(in orchestrator.ConversationID) {
	if len(h.all) == 0 {
		return
	}
	a := h.activityLocked(in)
	line := h.encode(wire.Message{Activity: &a})
	for t := range h.all {
		t.queue(line)
	}
}

func (h *Hub) activity(in orchestrator.ConversationID) wire.Activity {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.activityLocked(in)
}

func (h *Hub) activityLocked(in orchestrator.ConversationID) wire.Activity {
	a := wire.Activity{Conversation: string(in.Key())}
	if r := h.rooms[in]; r != nil {
		a.Running, a.Approvals = len(r.turns) > 0, len(r.approvals)
	}
	return a
}

// Follow implements orchestrator.Viewers.Follow.
func (h *Hub) Follow(t orchestrator.Turn, replayed bool) func(ev cli.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.roomLocked(t.Prompt.Conversation)
	of := newTurn(t, replayed)
	r.turns[t.ID] = of
	h.sendLocked(t.Prompt.Conversation, wire.Message{Entry: of.shown()})
	h.sendActivityLocked(t.Prompt.Conversation)
	return func(ev cli.Event) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if m := of.observe(ev); m != nil {
			h.sendLocked(t.Prompt.Conversation, *m)
		}
	}
}

// Ended implements orchestrator.Viewers.Ended.
func (h *Hub) Ended(t orchestrator.Turn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.roomLocked(t.Prompt.Conversation)
	of := r.turns[t.ID]
	if of == nil { // the turn did not run in this process
		of = newTurn(t, false)
	}
	delete(r.turns, t.ID)
	e := of.shown()
	e.Replayed = false
	complete(e, t)
	if e.Ended.IsZero() {
		e.Ended = h.now()
	}
	h.sendLocked(t.Prompt.Conversation, wire.Message{Entry: e})
	h.sendActivityLocked(t.Prompt.Conversation)
}

// Waits sends a waiting turn to terminals. ahead counts the turns before this turn in the queue. It is 0 if this turn
// has left the queue.
func (h *Hub) Waits(t orchestrator.Turn, ahead int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[t.Prompt.Conversation]; r != nil && r.turns[t.ID] != nil {
		return
	}
	e := entryOf(t)
	e.Ahead = ahead
	if ahead == 0 && e.State == wire.StateQueued { // the turn will start in a moment, and Follow then sends the entry
		return
	}
	h.sendLocked(t.Prompt.Conversation, wire.Message{Entry: &e})
}

// Approval sends the new state of an approval to terminals.
func (h *Hub) Approval(a orchestrator.Approval) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.roomLocked(a.Conversation)
	if a.State == orchestrator.ApprovalOpen {
		r.approvals[a.ID] = true
	} else {
		delete(r.approvals, a.ID)
	}
	shown := approvalOf(a, h.now())
	if d := r.deciding[a.ID]; d != nil && shown.Chat {
		d.outcome = &shown
		return
	}
	h.sendLocked(a.Conversation, wire.Message{Approval: &shown})
	h.sendActivityLocked(a.Conversation)
}

// decision exists while terminals decide an approval. The owner may decide the same approval in the chat at the same
// time. So the Hub sends the outcome only after it knows which decision was first.
type decision struct {
	terminals int            // number of terminals that are currently deciding the approval
	outcome   *wire.Approval // the approval after the decision; nil before the decision
}

// decide lets a terminal decide an approval. It calls the function do, which returns false if another decision was
// faster. decide then sends the approval to terminals, and includes whether the decision came from a terminal or from
// the chat.
func (h *Hub) decide(in orchestrator.ConversationID, id orchestrator.ApprovalID, do func() (won bool)) {
	h.mu.Lock()
	r := h.roomLocked(in)
	d := r.deciding[id]
	if d == nil {
		d = &decision{}
		r.deciding[id] = d
	}
	d.terminals++
	h.mu.Unlock()
	won := do()
	h.mu.Lock()
	defer h.mu.Unlock()
	d.terminals--
	if d.terminals == 0 {
		delete(r.deciding, id)
	}
	if d.outcome == nil || !won && d.terminals > 0 {
		return
	}
	d.outcome.Terminal, d.outcome.Chat = won, !won
	h.sendLocked(in, wire.Message{Approval: d.outcome})
	h.sendActivityLocked(in)
	d.outcome = nil
}

// Notice sends a message of the chat to terminals. A second call with the same id has no effect.
func (h *Hub) Notice(in orchestrator.ConversationID, id, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := wire.Notice{ID: id, Text: text, At: h.now()}
	r := h.roomLocked(in)
	if slices.ContainsFunc(r.notices, func(old wire.Notice) bool { return old.ID == id }) {
		return
	}
	if r.notices = append(r.notices, n); len(r.notices) > mostNotices {
		r.notices = slices.Delete(r.notices, 0, 1)
	}
	h.sendLocked(in, wire.Message{Notice: &n})
}

// open subscribes a terminal to the events of a conversation. It returns the conversation's running turns and recent
// notices, which the store does not contain.
func (h *Hub) open(t *terminal, in orchestrator.ConversationID) (running []wire.Entry, notices []wire.Notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.in = &in
	t.hold()
	r := h.roomLocked(in)
	for _, id := range slices.Sorted(maps.Keys(r.turns)) {
		running = append(running, *r.turns[id].shown())
	}
	return running, slices.Clone(r.notices)
}

func (h *Hub) join(t *terminal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all[t] = true
}

func (h *Hub) leave(t *terminal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, t)
}

func (h *Hub) terminals() []*terminal {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.all))
}
