package bot_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"ductor/bot"
	"ductor/cli"
	"ductor/internal/store"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// mortalStore is a database that dies with its process: every write is a step of m.
type mortalStore struct {
	*mortal
	*store.DB
}

func (s mortalStore) AppendUpdates(ctx context.Context, u []orchestrator.Update) (fresh []orchestrator.Update, err error) {
	err = s.step("append", func() (err error) {
		fresh, err = s.DB.AppendUpdates(ctx, u)
		return err
	})
	return fresh, err
}

func (s mortalStore) Flush(ctx context.Context) error {
	return s.step("flush", func() error { return s.DB.Flush(ctx) })
}

func (s mortalStore) FinishUpdates(ctx context.Context, ids []int64, l ...orchestrator.Message) error {
	return s.step("finish", func() error { return s.DB.FinishUpdates(ctx, ids, l...) })
}

func (s mortalStore) ForgetUpdates(ctx context.Context, ids []int64, l ...orchestrator.Message) error {
	return s.step("forget", func() error { return s.DB.ForgetUpdates(ctx, ids, l...) })
}

func (s mortalStore) SaveMessage(ctx context.Context, row orchestrator.Message) error {
	return s.step(stepOf(row), func() error { return s.DB.SaveMessage(ctx, row) })
}

func (s mortalStore) SaveCard(ctx context.Context, turn string, content []byte) error {
	return s.step("card", func() error { return s.DB.SaveCard(ctx, turn, content) })
}

func (s mortalStore) EnqueueTurn(ctx context.Context, t orchestrator.Turn, forget ...orchestrator.AgentEnv) error {
	return s.step("enqueue", func() error { return s.DB.EnqueueTurn(ctx, t, forget...) })
}

func (s mortalStore) StartTurn(ctx context.Context, t orchestrator.Turn, at cli.Start) (ok bool, err error) {
	err = s.step("start", func() (err error) { ok, err = s.DB.StartTurn(ctx, t, at); return err })
	return ok, err
}

func (s mortalStore) FinishTurn(ctx context.Context, id cli.TurnID, at time.Time, o orchestrator.Outcome) error {
	return s.step("outcome", func() error { return s.DB.FinishTurn(ctx, id, at, o) })
}

func (s mortalStore) MarkDelivered(ctx context.Context, id cli.TurnID) error {
	return s.step("delivered", func() error { return s.DB.MarkDelivered(ctx, id) })
}

func (s mortalStore) CreateSession(ctx context.Context, n orchestrator.Session) error {
	return s.step("session", func() error { return s.DB.CreateSession(ctx, n) })
}

func (s mortalStore) SetAgentSession(ctx context.Context, id orchestrator.SessionID, of orchestrator.AgentEnv,
	native orchestrator.AgentSession) error {
	return s.step("native", func() error { return s.DB.SetAgentSession(ctx, id, of, native) })
}

// echo is an agent that answers every prompt within a second, and counts.
type echo struct {
	orchestrator.Gateway // nil: other methods are never called

	life *mortal // nil for an agent that does not die

	mu   *sync.Mutex
	runs map[string]int
}

func (e echo) Run(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	if e.life != nil && e.life.isDead() {
		return cli.Result{Err: cli.Failf(cli.Crashed, agent, "dead")}
	}
	prompt := req.Prompt[strings.LastIndexByte(req.Prompt, '\n')+1:] // without the history before it
	if err := req.Started(ctx, cli.Start{Run: "run"}); err != nil {
		return cli.StartResult(ctx, agent, err)
	}
	e.mu.Lock()
	e.runs[prompt]++
	e.mu.Unlock()
	text := "answer to " + prompt
	emit(cli.SessionStarted{AgentSessionID: "native"})
	for _, word := range strings.SplitAfter(text, " ") {
		time.Sleep(300 * time.Millisecond)
		emit(cli.TextDelta{Text: word})
	}
	r := cli.Result{Text: text, Duration: time.Second}
	emit(r)
	return r
}

// Survey reports that the agent's turns are lost: the agent lived and died with its ductor.
func (echo) Survey(_ context.Context, open []cli.OpenTurn) (map[cli.TurnID]cli.Remains, error) {
	out := make(map[cli.TurnID]cli.Remains)
	for _, t := range open {
		out[t.Turn] = cli.RemainsUnknown
	}
	return out, nil
}

func (e echo) Resume(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	return e.Run(ctx, agent, req, emit)
}

func (echo) Settled(cli.TurnID)          {}
func (echo) Abort(cli.Conversation) bool { return false }
func (echo) Outliving(cli.TurnID) func(context.Context) []cli.ProcessName {
	return func(context.Context) []cli.ProcessName { return nil }
}
func (echo) Bring(context.Context, cli.Sandbox, []string) error { return nil }
func (echo) Release(cli.Conversation)                           {}
func (echo) Warm(cli.Agent, cli.Request)                        {}
func (echo) Live(context.Context) cli.Living                    { return cli.Living{} }
func (echo) Menu(context.Context, cli.Sandbox, cli.Accounts, ...cli.Agent) []cli.MenuEntry {
	return nil
}
func (echo) CannotHold(cli.Agent, cli.Request) *cli.Failure                     { return nil }
func (echo) Cannot(cli.Sandbox, cli.Agent, cli.PermissionMode) (_ lang.Message) { return }

func (echo) ShowSkill(_ context.Context, _ cli.Agent, _ cli.Request, asked cli.ApprovalAsked) cli.ApprovalAsked {
	return asked
}
func (echo) ProjectFields(cli.Sandbox, cli.Agent, string) ([]cli.Field, string) { return nil, "" }
func (echo) Default(context.Context, cli.Sandbox, cli.Accounts) (cli.Agent, *cli.Failure, error) {
	return "claude", nil, nil
}
func (echo) Substitute(context.Context, cli.Sandbox, cli.Accounts, []cli.Agent) (cli.Agent, bool) {
	return "", false
}

func (m *mortal) isDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// ductor is a whole ductor except for the agent: bot, orchestrator, database.
type ductor struct {
	bot  *bot.Bot
	desk *conversation.Engine
	done chan error
	end  context.CancelFunc
}

type everything interface {
	orchestrator.Store
	orchestrator.Journal
}

func startDuctor(t *testing.T, h *botRig, db everything, agent orchestrator.Gateway) *ductor {
	t.Helper()
	h.opts.Journal = db
	b, err := bot.New(context.Background(), h.opts)
	if err != nil {
		t.Fatal(err)
	}
	opts := conversation.Options{
		Store: db, Gateway: agent, Chat: b.Chat(), Snapshots: h.snapshots,
		DeliveryWait: 10 * time.Second, Now: time.Now, NewID: uuid.NewString,
		Logger: slog.New(slog.NewTextHandler(h.log, nil)),
	}
	opts.Dir, opts.Roots = "/", []string{"/"}
	opts.Screen = b.Chat()
	opts.Approvers = func(_ orchestrator.ConversationID, sender orchestrator.PersonID) []orchestrator.PersonID {
		return []orchestrator.PersonID{sender, 8}
	}
	opts.Mode, opts.QueueMax, opts.Sessions.HandoffTokens = cli.Ask, 10, 1000
	desk := conversation.New(opts)
	ctx, cancel := context.WithCancel(context.Background())
	d := &ductor{bot: b, desk: desk, done: make(chan error, 1), end: cancel}
	go func() {
		aborts, err := b.StoredAborts(ctx)
		if err == nil {
			err = desk.Recover(ctx, aborts...)
		}
		if err == nil {
			err = b.Run(ctx, desk, aborts...)
		}
		d.done <- err
	}()
	return d
}

// withDatabase runs a test like simulated, with a database for startDuctor.
func withDatabase(t *testing.T, test func(t *testing.T, h *botRig, db *store.DB)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db, err := store.Open(t.Context(), filepath.Join(dir, "ductor.db"), store.Options{})
		must(t, err)
		defer db.Close()
		test(t, newHouse(t, filepath.Join(dir, "uploads")), db)
	})
}

// enough is the time in which the budget of a chat allows all owed calls.
const enough = time.Minute

// stop stops the parts in order. A dead part has nothing left to do and stops at once.
func (d *ductor) stop(patience time.Duration) error {
	d.end()
	err := <-d.done
	last, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	d.desk.Close(last)
	return errors.Join(err, d.bot.Close(last))
}

// TestNoDeathLosesOrDoublesATurn kills the whole of ductor between any two writes to its database while it handles two
// prompts and a command, and starts it again. Each prompt runs at most once. Each ends in the chat: as its answer, as
// interrupted, or as perhaps shown already, the latter two with a button.
func TestNoDeathLosesOrDoublesATurn(t *testing.T) {
	everyDeath(t, runAndDie(t, 0, false), 20, func(t *testing.T, at int, after bool) { runAndDie(t, at, after) })
}

func runAndDie(t *testing.T, at int, after bool) (steps []string) {
	withDatabase(t, func(t *testing.T, h *botRig, db *store.DB) {
		var mu sync.Mutex
		runs := make(map[string]int)
		wire := h.opts.Transport
		life := &mortal{transport: wire, death: death{at: at, after: after}, died: make(chan struct{})}

		h.opts.Transport = life
		first := startDuctor(t, h, mortalStore{life, db}, echo{life: life, mu: &mu, runs: runs})
		h.ann.Send(h.chat, "one")
		h.ann.Send(h.chat, "two")
		time.Sleep(100 * time.Millisecond)
		h.ann.Send(h.chat, "/status")
		select {
		case <-life.died:
		case <-time.After(time.Minute):
		}
		_ = first.stop(time.Millisecond)
		steps = life.log

		h.opts.Transport = wire
		second := startDuctor(t, h, db, echo{mu: &mu, runs: runs})
		time.Sleep(5 * time.Minute)
		if err := second.stop(enough); err != nil {
			t.Errorf("the second ductor ended with %v", err)
		}
		shown := h.chat.Transcript()
		buttons := strings.Count(shown, "Run again") + strings.Count(shown, "Show again")
		for _, prompt := range []string{"one", "two"} {
			answers := strings.Count(shown, "answer to "+prompt)
			if runs[prompt] > 1 || answers > 1 {
				t.Errorf("%q ran %d times and is answered %d times", prompt, runs[prompt], answers)
			}
			if answers == 0 {
				buttons--
			}
		}
		if buttons < 0 {
			t.Errorf("an outcome is missing without a word")
		}
		open, err := db.PendingUpdates(t.Context(), 0, 100)
		if err != nil || len(open) > 0 {
			t.Errorf("open updates %v, %v", open, err)
		}
		if t.Failed() {
			t.Logf("runs %v, steps %q\n%s\n%s", runs, life.log, shown, h.log)
		}
	})
	return steps
}

// TestNothingThatAnAbortFollowsBeginsAfterARestart starts ductor with messages that the previous process stored and did
// not handle, and with a queued turn.
func TestNothingThatAnAbortFollowsBeginsAfterARestart(t *testing.T) {
	withDatabase(t, func(t *testing.T, h *botRig, db *store.DB) {
		in := orchestrator.ConversationID{Chat: 7}
		queued := orchestrator.Turn{ID: "queued", State: orchestrator.TurnQueued, Queued: time.Now(),
			Prompt: orchestrator.Prompt{Conversation: in, Person: 7, Text: "queued", Message: 1}}
		if err := db.EnqueueTurn(t.Context(), queued); err != nil {
			t.Fatal(err)
		}
		var all []orchestrator.Update
		for i, text := range []string{"stored", "/new", "/abort", "newer"} {
			const format = `{"message":{"message_id":%d,"from":{"id":7},"chat":{"id":7,"type":"private"},"text":%q}}`
			raw := fmt.Appendf(nil, format, i+2, text)
			all = append(all, orchestrator.Update{ID: int64(i + 1), Raw: raw, Received: time.Now()})
		}
		if _, err := db.AppendUpdates(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		runs := make(map[string]int)
		d := startDuctor(t, h, db, echo{mu: &mu, runs: runs})
		time.Sleep(time.Minute)
		if err := d.stop(enough); err != nil {
			t.Errorf("ductor ended with %v", err)
		}
		if len(runs) != 1 || runs["newer"] != 1 {
			t.Errorf("runs %v\n%s\n%s", runs, h.chat.Transcript(), h.log)
		}
		if shown := h.chat.Transcript(); !strings.Contains(shown, "2 waiting messages") {
			t.Errorf("the abort does not count what it dropped:\n%s", shown)
		}
	})
}
