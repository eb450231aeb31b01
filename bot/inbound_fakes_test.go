package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"ductor/bot/approval"
	"ductor/bot/outbox"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// fakeLetter is a letter as mailFake writes it.
type fakeLetter struct {
	Text     string
	Keyboard tgapi.Keyboard
	ReplyTo  int
}

type mailFake struct{}

func (mailFake) compose(id orchestrator.ConversationID, text string, k tgapi.Keyboard, replyTo int) (orchestrator.Notice, error) {
	content, err := json.Marshal(fakeLetter{text, k, replyTo})
	return orchestrator.Notice{Conversation: id, Content: content}, err
}

// composeFollowed has the letter become message 9 at once.
func (f mailFake) composeFollowed(id orchestrator.ConversationID, text string, k tgapi.Keyboard, replyTo int, sent func(message int)) (orchestrator.Notice, error) {
	sent(9)
	return f.compose(id, text, k, replyTo)
}

// sendEarly leaves it to keep: the letter is stored, and becomes message 9 at once.
func (f mailFake) sendEarly(to orchestrator.ConversationID, replyTo int, text func() (string, tgapi.Keyboard), sent func(message int)) early {
	text()
	sent(9)
	return earlyFake{f, to, replyTo}
}

type earlyFake struct {
	mail    mailFake
	to      orchestrator.ConversationID
	replyTo int
}

func (e earlyFake) keep(text string, k tgapi.Keyboard) (orchestrator.Notice, bool) {
	l, err := e.mail.compose(e.to, text, k, e.replyTo)
	return l, err == nil
}

func (earlyFake) kept(bool) {}

func (mailFake) Wake() {}

// voiceFake records signs.
type voiceFake struct {
	mu      sync.Mutex
	signs   []string
	edits   []fakeLetter
	answers []string
}

func (v *voiceFake) react(id orchestrator.ConversationID, message int, emoji string, _ time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.signs = append(v.signs, fmt.Sprintf("react %s %d %s", id.Key(), message, emoji))
}

func (v *voiceFake) answer(_ context.Context, query, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answers = append(v.answers, text)
}

func (v *voiceFake) edit(_ orchestrator.ConversationID, message int, text string, k tgapi.Keyboard) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.edits = append(v.edits, fakeLetter{text, k, message})
}

func (v *voiceFake) settle(id orchestrator.ConversationID, message int, text string, k tgapi.Keyboard) {
	v.edit(id, message, text, k)
}

func (v *voiceFake) unbutton(id orchestrator.ConversationID, message int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.signs = append(v.signs, fmt.Sprintf("unbutton %s %d", id.Key(), message))
}

func (v *voiceFake) remove(id orchestrator.ConversationID, message int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.signs = append(v.signs, fmt.Sprintf("remove %s %d", id.Key(), message))
}

func (v *voiceFake) say(id orchestrator.ConversationID, text string) {
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

// inboundRig is the inbound side of a bot on fakes.
type inboundRig struct {
	*router
	desk    *deskFake
	journal *journalFake
	voice   *voiceFake
	logs    *logFake
	next    int64
	message int
}

const (
	owner = 7
	group = -100
)

func newInboundRig(t *testing.T) *inboundRig {
	t.Helper()
	return newInboundRigOver(t, nil)
}

func newInboundRigOver(t *testing.T, jobs orchestrator.Jobs) *inboundRig {
	t.Helper()
	journal := newJournalFake()
	rig := &inboundRig{
		journal: journal, desk: &deskFake{journal: journal}, voice: &voiceFake{}, logs: &logFake{},
		next: 100, message: 500,
	}
	rig.desk.status = orchestrator.Status{Agent: "claude", Model: "opus", Dir: "/home/u", Permission: cli.Ask}
	approvals := approval.New(approval.Options{Journal: journal, Log: slog.New(rig.logs), Now: time.Now})
	approvals.Attach(rig.desk)
	rig.router = assemble(parts{
		me:    identity{ID: 42, Username: "ductor_bot"},
		allow: Allow{Users: []orchestrator.PersonID{owner}, Groups: []int64{group}},
		desk:  rig.desk, jobs: jobs, journal: journal, mail: mailFake{}, voice: rig.voice,
		approvals:  approvals,
		queue:      newQueueCards(nil, nil, journal, slog.New(rig.logs)),
		windows:    mergeWindows{album: 700 * time.Millisecond, paste: 700 * time.Millisecond},
		abortWords: []string{"stop", "wait"},
		log:        slog.New(rig.logs), now: time.Now, random: &counterReader{},
	})
	return rig
}

// send journals and dispatches updates as the poller does.
func (r *inboundRig) send(updates ...map[string]any) {
	var batch []orchestrator.Update
	for _, u := range updates {
		r.next++
		u["update_id"] = r.next
		raw, _ := json.Marshal(u)
		batch = append(batch, orchestrator.Update{ID: r.next, Raw: raw})
	}
	_, _ = r.journal.AppendUpdates(context.Background(), batch)
	r.dispatch(context.Background(), batch)
}

func (r *inboundRig) end() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r.lanes.stop(ctx)
}

// text is a private message of the owner; fields override.
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

// inGroup makes a message one of the allowed group.
func inGroup() map[string]any {
	return map[string]any{"chat": map[string]any{"id": group, "type": "supergroup", "title": "Team"}}
}

// press is a button pressed by the owner in the private chat.
func (r *inboundRig) press(data string, message int) map[string]any {
	return map[string]any{"callback_query": map[string]any{
		"id": "q", "from": map[string]any{"id": owner, "first_name": "Ann"}, "data": data,
		"message": map[string]any{"message_id": message, "date": 1, "chat": map[string]any{"id": owner, "type": "private"}},
	}}
}

// counterReader is randomness without chance.
type counterReader struct{ n byte }

func (r *counterReader) Read(p []byte) (int, error) {
	for i := range p {
		r.n++
		p[i] = r.n
	}
	return len(p), nil
}

// logFake keeps log lines.
type logFake struct {
	mu    sync.Mutex
	lines []string
}

func (l *logFake) Enabled(context.Context, slog.Level) bool { return true }
func (l *logFake) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logFake) WithGroup(string) slog.Handler            { return l }
func (l *logFake) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

func (l *logFake) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

func (v *voiceFake) slowed(int64) outbox.Slowdown { return outbox.Slowdown{} }
