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
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// deskFake is a domain that records what it is asked.
type deskFake struct {
	journal *journalFake

	mu       sync.Mutex
	prompts  []orchestrator.Prompt
	calls    []string // everything else, one line each
	running  bool
	full     bool
	ahead    int
	fail     error // of every method, where set
	menu     []cli.MenuEntry
	sessions []orchestrator.Session
	status   orchestrator.Status
	repeated map[cli.TurnID]bool
	queued   map[cli.TurnID]bool
	hold     chan struct{} // where set, Submit waits for it
}

func (d *deskFake) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, fmt.Sprintf(format, args...))
}

func (d *deskFake) Calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

func (d *deskFake) Texts() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var texts []string
	for _, p := range d.prompts {
		texts = append(texts, p.Text)
	}
	return texts
}

func (d *deskFake) Submit(ctx context.Context, p orchestrator.Prompt) (orchestrator.Receipt, error) {
	if d.hold != nil {
		select {
		case <-d.hold:
		case <-ctx.Done():
			return orchestrator.Receipt{}, ctx.Err()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return orchestrator.Receipt{}, d.fail
	}
	if d.full {
		return orchestrator.Receipt{Full: true, Ahead: d.ahead}, nil
	}
	if p.Text == "panic" {
		panic("the desk panicked")
	}
	d.journal.handle(p.Updates)
	d.prompts = append(d.prompts, p)
	return orchestrator.Receipt{Turn: cli.TurnID(fmt.Sprintf("turn-%d", len(d.prompts))), Ahead: d.ahead}, nil
}

func (d *deskFake) Abort(_ context.Context, id orchestrator.ConversationID) (orchestrator.AbortReport, error) {
	d.note("abort %s", id.Key())
	d.mu.Lock()
	defer d.mu.Unlock()
	r := orchestrator.AbortReport{Running: d.running}
	d.running = false
	return r, d.fail
}

func (d *deskFake) CancelQueued(_ context.Context, turn cli.TurnID, by orchestrator.Press) (bool, error) {
	d.note("cancel %s by %d", turn, by.Person)
	d.mu.Lock()
	defer d.mu.Unlock()
	ok := d.queued[turn]
	delete(d.queued, turn)
	return ok, d.fail
}

func (d *deskFake) EditQueued(_ context.Context, id orchestrator.ConversationID, message int, text string) (bool, error) {
	d.note("edit %s %d %q", id.Key(), message, text)
	return d.ahead > 0, d.fail
}

func (d *deskFake) New(_ context.Context, id orchestrator.ConversationID) error {
	d.note("new %s", id.Key())
	return d.fail
}

func (d *deskFake) Resume(_ context.Context, id orchestrator.ConversationID, s orchestrator.SessionID) (orchestrator.Session, error) {
	d.note("resume %s %s", id.Key(), s)
	for _, known := range d.sessions {
		if known.ID == s {
			return known, d.fail
		}
	}
	return orchestrator.Session{}, orchestrator.ErrNoSession
}

func (d *deskFake) Sessions(context.Context, orchestrator.ConversationID) ([]orchestrator.Session, error) {
	return d.sessions, d.fail
}

func (d *deskFake) RunAgain(_ context.Context, turn cli.TurnID, by orchestrator.Press) (orchestrator.Receipt, error) {
	return d.repeat("again", turn, by)
}

func (d *deskFake) RunFresh(_ context.Context, turn cli.TurnID, by orchestrator.Press) (orchestrator.Receipt, error) {
	return d.repeat("fresh", turn, by)
}

func (d *deskFake) repeat(how string, turn cli.TurnID, by orchestrator.Press) (orchestrator.Receipt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return orchestrator.Receipt{}, d.fail
	}
	if d.repeated[turn] {
		return orchestrator.Receipt{}, orchestrator.ErrRepeated
	}
	if d.repeated == nil {
		d.repeated = make(map[cli.TurnID]bool)
	}
	d.repeated[turn] = true
	d.journal.handle(by.Updates)
	d.calls = append(d.calls, fmt.Sprintf("%s %s", how, turn))
	return orchestrator.Receipt{Turn: turn + "'", Ahead: d.ahead}, nil
}

func (d *deskFake) ShowAgain(_ context.Context, turn cli.TurnID, _ orchestrator.Press) error {
	d.note("show %s", turn)
	return d.fail
}

func (d *deskFake) SetModel(_ context.Context, id orchestrator.ConversationID, agent cli.Agent, model cli.ModelID, effort cli.Effort) error {
	d.note("model %s %s/%s %s", id.Key(), agent, model, effort)
	return d.fail
}

func (d *deskFake) Menu(context.Context) []cli.MenuEntry { return d.menu }

func (d *deskFake) SetDir(_ context.Context, id orchestrator.ConversationID, path string) (string, error) {
	d.note("cwd %s %s", id.Key(), path)
	return "/home/u/" + path, d.fail
}

func (d *deskFake) Status(_ context.Context, id orchestrator.ConversationID) (orchestrator.Status, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	st := d.status
	st.Conversation = id
	if d.running {
		st.Running = &orchestrator.RunningTurn{Turn: "running", Title: "something", Started: time.Now()}
	}
	return st, d.fail
}

// journalFake keeps the journal in memory, with the promises of the interface.
type journalFake struct {
	mu      sync.Mutex
	updates map[int64]*journaled
	letters []orchestrator.Letter
	parts   map[string][]orchestrator.CardPart
	fail    error // of AppendUpdates and FinishUpdates, where set
}

type journaled struct {
	raw     []byte
	handled bool
}

func newJournalFake() *journalFake {
	return &journalFake{updates: make(map[int64]*journaled), parts: make(map[string][]orchestrator.CardPart)}
}

func (j *journalFake) handle(ids []int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range ids {
		if u := j.updates[id]; u != nil {
			u.handled = true
		}
	}
}

// open lists the updates that are not handled.
func (j *journalFake) open() []int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	var ids []int64
	for id, u := range j.updates {
		if !u.handled {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// said lists the texts of all letters.
func (j *journalFake) said() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var texts []string
	for _, l := range j.letters {
		var c fakeLetter
		if json.Unmarshal(l.Content, &c) == nil {
			texts = append(texts, c.Text)
		}
	}
	return texts
}

func (j *journalFake) lastLetter(t *testing.T) fakeLetter {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.letters) == 0 {
		t.Fatal("no letter was written")
	}
	var c fakeLetter
	if err := json.Unmarshal(j.letters[len(j.letters)-1].Content, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (j *journalFake) AppendUpdates(_ context.Context, updates []orchestrator.Update) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fail != nil {
		return j.fail
	}
	for _, u := range updates {
		if j.updates[u.ID] == nil {
			j.updates[u.ID] = &journaled{raw: u.Raw}
		}
	}
	return nil
}

func (j *journalFake) PendingUpdates(_ context.Context, after int64, limit int) ([]orchestrator.Update, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []orchestrator.Update
	for _, id := range slices.Sorted(maps.Keys(j.updates)) {
		if u := j.updates[id]; id > after && !u.handled && len(out) < limit {
			out = append(out, orchestrator.Update{ID: id, Raw: u.raw})
		}
	}
	return out, nil
}

func (j *journalFake) LastUpdate(context.Context) (int64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	last := int64(0)
	for id := range j.updates {
		last = max(last, id)
	}
	return last, nil
}

func (j *journalFake) FinishUpdates(_ context.Context, ids []int64, letters ...orchestrator.Letter) error {
	j.mu.Lock()
	if j.fail != nil {
		j.mu.Unlock()
		return j.fail
	}
	for _, l := range letters {
		l.ID, l.State = int64(len(j.letters)+1), cmp.Or(l.State, orchestrator.Pending)
		j.letters = append(j.letters, l)
	}
	j.mu.Unlock()
	j.handle(ids)
	return nil
}

func (j *journalFake) PostLetter(ctx context.Context, l orchestrator.Letter) (int64, error) {
	return 1, j.FinishUpdates(ctx, nil, l)
}

func (j *journalFake) PendingLetters(context.Context) ([]orchestrator.Letter, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []orchestrator.Letter
	for _, l := range j.letters {
		if l.State == orchestrator.Pending {
			out = append(out, l)
		}
	}
	return out, nil
}

func (j *journalFake) MoveLetter(_ context.Context, id int64, state orchestrator.SendState, message int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := &j.letters[id-1]
	l.State, l.Message = state, message
	return nil
}

func (j *journalFake) LostLetters(context.Context) ([]orchestrator.Letter, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var lost []orchestrator.Letter
	for i, l := range j.letters {
		if l.State == orchestrator.Sending {
			j.letters[i].State = orchestrator.Unknown
			lost = append(lost, j.letters[i])
		}
	}
	return lost, nil
}

func (j *journalFake) SaveCard(context.Context, string, []byte) error { return nil }

func (j *journalFake) SaveCardPart(_ context.Context, turn string, part int, state orchestrator.SendState, message int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	parts := slices.DeleteFunc(j.parts[turn], func(p orchestrator.CardPart) bool { return p.Part == part })
	j.parts[turn] = append(parts, orchestrator.CardPart{Part: part, State: state, Message: message})
	return nil
}

func (j *journalFake) LoadCard(_ context.Context, turn string) ([]byte, []orchestrator.CardPart, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return nil, slices.Clone(j.parts[turn]), nil
}

// fakeLetter is a letter as mailFake writes it.
type fakeLetter struct {
	Text     string
	Keyboard Keyboard
	ReplyTo  int
}

type mailFake struct{}

func (mailFake) compose(id orchestrator.ConversationID, text string, k Keyboard, replyTo int) (orchestrator.Letter, error) {
	content, err := json.Marshal(fakeLetter{text, k, replyTo})
	return orchestrator.Letter{Conversation: id, Content: content}, err
}

func (mailFake) Wake() {}

// voiceFake records signs.
type voiceFake struct {
	mu      sync.Mutex
	signs   []string
	edits   []fakeLetter
	answers []string
}

func (v *voiceFake) react(id orchestrator.ConversationID, message int, emoji string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.signs = append(v.signs, fmt.Sprintf("react %s %d %s", id.Key(), message, emoji))
}

func (v *voiceFake) answer(_ context.Context, query, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answers = append(v.answers, text)
}

func (v *voiceFake) edit(_ orchestrator.ConversationID, message int, text string, k Keyboard) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.edits = append(v.edits, fakeLetter{text, k, message})
}

func (v *voiceFake) unbutton(id orchestrator.ConversationID, message int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.signs = append(v.signs, fmt.Sprintf("unbutton %s %d", id.Key(), message))
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
	journal := newJournalFake()
	rig := &inboundRig{
		journal: journal, desk: &deskFake{journal: journal}, voice: &voiceFake{}, logs: &logFake{},
		next: 100, message: 500,
	}
	rig.desk.status = orchestrator.Status{Agent: "claude", Model: "opus", Dir: "/home/u", Permission: cli.Ask}
	rig.router = assemble(parts{
		me:    identity{ID: 42, Username: "ductor_bot"},
		allow: Allow{Users: []orchestrator.PersonID{owner}, Groups: []int64{group}},
		desk:  rig.desk, journal: journal, mail: mailFake{}, voice: rig.voice,
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
	_ = r.journal.AppendUpdates(context.Background(), batch)
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
