package bot

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/approval"
	"ductor/bot/bottest"
	"ductor/bot/edits"
	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/cli/naming"
	"ductor/orchestrator"
)

// fakeNotice is the content of a message, and the message that it replies to or edits.
type fakeNotice struct {
	Text     string
	Keyboard tgapi.Keyboard
	ReplyTo  int
}

// messagesFake has messages that are never sent, and become message 9 at once.
type messagesFake struct{ *message.Messages }

func (messagesFake) Follow(_ string, arrived func(id int)) { arrived(9) }

// stuckMessages returns messages that are never sent.
func stuckMessages(journal *journalFake, log *slog.Logger) *message.Messages {
	out := bottest.NewOutbox()
	_ = out.Drain(context.Background())
	return message.New(out, nil, journal, nil, log)
}

// voiceFake records signs.
type voiceFake struct {
	mu      sync.Mutex
	signs   []string
	edits   []fakeNotice
	answers []string
}

func (v *voiceFake) React(id orchestrator.ConversationID, message int, emoji string, _ time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.signs = append(v.signs, fmt.Sprintf("react %s %d %s", id.Key(), message, emoji))
}

func (v *voiceFake) Answer(_ context.Context, query, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answers = append(v.answers, text)
}

func (v *voiceFake) Edit(_ orchestrator.ConversationID, message int, text string, k tgapi.Keyboard) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if message != 0 {
		v.edits = append(v.edits, fakeNotice{text, k, message})
	}
}

func (v *voiceFake) Unbutton(id orchestrator.ConversationID, message int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if message != 0 {
		v.signs = append(v.signs, fmt.Sprintf("unbutton %s %d", id.Key(), message))
	}
}

func (v *voiceFake) Rebutton(id orchestrator.ConversationID, message int, _ tgapi.Keyboard) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if message != 0 {
		v.signs = append(v.signs, fmt.Sprintf("rebutton %s %d", id.Key(), message))
	}
}

func (v *voiceFake) Remove(id orchestrator.ConversationID, message int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.signs = append(v.signs, fmt.Sprintf("remove %s %d", id.Key(), message))
}

func (v *voiceFake) Tidy(chat int64, message int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.signs = append(v.signs, fmt.Sprintf("tidy %d %d", chat, message))
}

func (v *voiceFake) Say(id orchestrator.ConversationID, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.signs = append(v.signs, fmt.Sprintf("say %s %s", id.Key(), text))
}

func (v *voiceFake) Signs() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.signs)
}

func (v *voiceFake) lastAnswer() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.answers) == 0 {
		return "(none)"
	}
	return v.answers[len(v.answers)-1]
}

// noSessions has no sessions.
type noSessions struct{ orchestrator.Sessions }

func (noSessions) FindSessions(context.Context, orchestrator.SessionQuery) ([]orchestrator.FoundSession, bool, error) {
	return nil, false, nil
}

// inboundRig is the inbound side of a bot with fakes.
type inboundRig struct {
	*updates.Router
	*handlers
	options updates.RouterOptions
	desk    *deskFake
	journal *journalFake
	voice   *voiceFake
	logs    *bottest.Log
	next    int64
	message int
}

const (
	owner = 7
	group = -100
)

func newInboundRig(t *testing.T, jobs ...orchestrator.Jobs) *inboundRig {
	t.Helper()
	journal := newJournalFake()
	rig := &inboundRig{
		journal: journal, desk: &deskFake{journal: journal}, voice: &voiceFake{}, logs: &bottest.Log{},
		next: 100, message: 500,
	}
	rig.desk.status = orchestrator.Status{Agent: "claude", Model: "opus", Dir: "/home/u", Permission: cli.Ask}
	log := slog.New(rig.logs)
	messages := stuckMessages(journal, slog.New(slog.DiscardHandler))
	rig.options = updates.RouterOptions{
		Me:    updates.Identity{ID: 42, Username: "ductor_bot"},
		Turns: rig.desk, Feedback: rig.voice, Finisher: updates.NewFinisher(journal, messagesFake{messages}, log),
		Allow: updates.Allow{Users: orchestrator.Roster{owner: orchestrator.RoleOwner}, Policy: always(updates.Policy{
			AllowedGroups: []int64{group}, Reactions: true, AbortWords: []string{"stop", "wait"},
		})},
		AlbumWindow: 700 * time.Millisecond, PasteWindow: 700 * time.Millisecond,
		Log: log, Now: time.Now,
	}
	approvals := approval.New(approval.Options{Messages: messages, Journal: journal, Log: log, Now: time.Now})
	approvals.Attach(rig.desk)
	rig.handlers = newHandlers(parts{
		opts: Options{
			Jobs: cmp.Or(jobs...), Journal: journal, Sessions: noSessions{}, Group: func() []string { return nil },
			Aliases: func() map[string]naming.Alias { return map[string]naming.Alias{"fast": {Use: "claude/opus high"}} },
			Reload:  func(context.Context, orchestrator.Press) string { return "reloaded" },
		},
		desk: rig.desk, feedback: rig.voice, chat: &Chat{messages: messages, approvals: approvals, queue: newQueueCards(messages, nil, edits.NewPrompts(nil, nil, nil, nil))},
	}, rig.options)
	rig.configure(func(*updates.RouterOptions) {})
	return rig
}

// configure creates the router again, with the options that change modifies.
func (r *inboundRig) configure(change func(o *updates.RouterOptions)) {
	change(&r.options)
	r.Router = r.handlers.router(r.options)
}

// send stores and dispatches updates as the poller does.
func (r *inboundRig) send(updates ...map[string]any) {
	var batch []orchestrator.Update
	for _, u := range updates {
		r.next++
		u["update_id"] = r.next
		raw, _ := json.Marshal(u)
		batch = append(batch, orchestrator.Update{ID: r.next, Raw: raw, Received: time.Now()})
	}
	_, _ = r.journal.AppendUpdates(context.Background(), batch)
	r.Dispatch(context.Background(), batch)
}

// settle waits, in fake time, until no prompt waits for further parts.
func (r *inboundRig) settle() {
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

func (r *inboundRig) end() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r.Router.Stop(ctx)
}

// text returns a private message of the owner. fields override its fields.
func (r *inboundRig) text(text string, fields ...map[string]any) map[string]any {
	r.message++
	m := map[string]any{
		"message_id": r.message, "date": 1000, "text": text,
		"from": map[string]any{"id": owner, "first_name": "Ann"}, "chat": map[string]any{"id": owner, "type": "private"},
	}
	for _, f := range fields {
		for k, v := range f {
			if v == nil {
				delete(m, k)
			} else {
				m[k] = v
			}
		}
	}
	return map[string]any{"message": m}
}

// inGroup returns the fields of a message in the allowed group.
func inGroup() map[string]any {
	return map[string]any{"chat": map[string]any{"id": group, "type": "supergroup", "title": "Team"}}
}

// press returns a press by the owner in the private chat. fields override the fields of the message with the button.
func (r *inboundRig) press(data string, message int, fields ...map[string]any) map[string]any {
	m := map[string]any{
		"message_id": message, "date": 1, "chat": map[string]any{"id": owner, "type": "private"},
		"reply_markup": json.RawMessage(`{"inline_keyboard": [[{"text": "x", "callback_data": "` + data + `"}]]}`),
	}
	for _, f := range fields {
		maps.Copy(m, f)
	}
	return map[string]any{"callback_query": map[string]any{
		"id": "q", "from": map[string]any{"id": owner, "first_name": "Ann"}, "data": data, "message": m,
	}}
}

func (v *voiceFake) EditRich(id orchestrator.ConversationID, message int, t render.Text, k tgapi.Keyboard) {
	v.Edit(id, message, t.Text, k)
}

func (v *voiceFake) Slowed(int64) outbox.Slowdown { return outbox.Slowdown{} }
