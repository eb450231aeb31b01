package consult_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/cli"
	"ductor/internal/store"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/consult"
	"ductor/orchestrator/conversation"
	"ductor/orchestrator/side"
)

// fate is the outcome of a prompt.
type fate string

const (
	answered      fate = "it is answered"
	notStarted    fate = "the agent does not start"
	limited       fate = "the agent accepts it, and has reached its limit"
	halfway       fate = "the agent fails in its answer"
	forgotten     fate = "the agent lost its session, and answers in another"
	stopped       fate = "it is stopped before the agent read it"
	stoppedRead   fate = "it is stopped after the agent read it, without a sign of that"
	stoppedOn     fate = "it is stopped after the agent accepted it"
	restarted     fate = "ductor ends before the agent read it"
	restartedRead fate = "ductor ends after the agent read it, without a sign of that"
	asking        fate = "the agent consults another one, and answers"
	meanwhile     fate = "a user consults another agent meanwhile, and it is answered"
)

// memory is an agent's memory of one session of its own.
type memory struct {
	plain, marked string // marked has the entries that it may have seen before
	leftOut       int    // entries that the chat said were left out
	unknown       bool   // a prompt had an unknown outcome
}

// three is a session with three agents that remember everything they read. The keys of maps by lane are true for
// consultations, and false for turns.
type three struct {
	*process
	path     string
	budget   int
	fates    map[bool]fate // by lane, of the next prompt
	other    cli.Agent     // the agent that is consulted while a turn runs
	asked    chan struct{} // an agent waits
	memories map[cli.AgentSessionID]*memory
	checks   map[bool]func(leftOut int) // by lane; compares the memory of the agent that accepted the last prompt
	last     cli.TurnID
}

// process is one process of ductor.
type process struct {
	db       *store.DB
	talks    *conversation.Engine
	consults *consult.Engine
	shown    *shown
}

func (p *process) stop() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.consults.Close(context.Background())
	p.talks.Close(ctx)
	p.db.Close()
}

var here = orchestrator.ConversationID{Chat: 7}

func (w *three) start() {
	db, err := store.Open(context.Background(), w.path, store.Options{})
	if err != nil {
		panic(err)
	}
	gateway, chat, log := gateway{run: w.run}, &shown{}, slog.New(slog.DiscardHandler)
	if w.process != nil {
		chat.faults = w.shown.all()
	}
	newID := func() string { return name("id") }
	o := conversation.Options{
		Store: db, Orders: db, Gateway: gateway, Chat: chat, DeliveryWait: time.Second,
		NewID: newID, Now: time.Now, Logger: log,
		After: func(time.Duration, func()) func() bool { return func() bool { return true } },
	}
	o.Dir, o.Roots = filepath.Dir(w.path), []string{filepath.Dir(w.path)}
	o.Mode, o.QueueMax, o.Sessions.HandoffTokens = cli.Ask, 3, w.budget
	talks := conversation.New(o)
	client := side.Client{Gateway: gateway, NewID: newID}
	w.process = &process{db: db, talks: talks, shown: chat, consults: consult.New(consult.Options{
		CheckDir: o.Places.CheckDir, Side: client, Store: db, Session: talks.SideSession, Names: db, SideRequest: talks.SideRequest,
		Budget:  func() int { return w.budget },
		Shorten: side.Shortener{Side: client, Logger: log}, Now: time.Now, Logger: log,
		Works: consult.Works{Audit: func(context.Context, ...orchestrator.AuditEntry) error { return nil }},
	})}
	if err := talks.Recover(context.Background()); err != nil {
		panic(err)
	}
}

var named atomic.Int64

// name returns a new word. No word is part of another one.
func name(kind string) string { return fmt.Sprintf("%s%d;", kind, named.Add(1)) }

func (w *three) fault(format string, args ...any) { w.shown.fault(fmt.Sprintf(format, args...)) }

// run is the agents' side of a prompt.
func (w *three) run(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	aside := strings.HasPrefix(string(req.Conversation), "side/")
	fate := w.fates[aside]
	if err := req.Started(ctx, cli.Start{Run: "run"}); err != nil {
		return cli.StartResult(ctx, who, err)
	}
	id := req.Resume
	if fate == forgotten && id != "" {
		w.fates[aside] = answered
		return cli.Result{Err: cli.Failf(cli.ResumeFailed, who, "")}
	}
	if id == "" {
		id = cli.AgentSessionID(name(string(who)))
		w.memories[id] = &memory{}
	}
	m := w.memories[id]
	emit(cli.SessionStarted{AgentSessionID: id})
	switch fate {
	case notStarted:
		m.unknown = true
		return cli.Result{Err: cli.Failf(cli.NetworkDown, who, "")}
	case stoppedRead, restartedRead:
		m.read(req.Prompt)
		fallthrough
	case stopped, restarted:
		m.unknown = true
		w.asked <- struct{}{}
		<-ctx.Done()
		return cli.Cut(ctx, who)
	}
	if strings.Contains(req.Prompt, "[You may have seen this.]") && !m.unknown {
		w.fault("%s may have seen something, though every outcome is known: %s", id, req.Prompt)
	}
	emit(cli.PromptAccepted{})
	m.read(req.Prompt)
	w.accepted(id, m, req, aside)
	switch fate {
	case limited:
		return cli.Result{Err: cli.Failf(cli.LimitReached, who, ""), AgentSessionID: id}
	case stoppedOn:
		w.asked <- struct{}{}
		<-ctx.Done()
		return cli.Cut(ctx, who)
	case asking:
		w.fates[true] = answered
		m.plain += w.consult(orchestrator.ConsultQuestion{For: &orchestrator.ActiveTurn{
			Turn: orchestrator.Turn{ID: req.Turn, Session: orchestrator.SessionID(req.Session)}, Request: req}}).Text
	case meanwhile:
		w.fates[true] = answered
		w.consult(orchestrator.ConsultQuestion{})
	}
	result := cli.Result{Text: name("answer"), AgentSessionID: id}
	m.plain += result.Text
	emit(cli.TextDelta{Text: result.Text})
	if fate == halfway {
		result.Err = cli.Failf(cli.NetworkDown, who, "")
	}
	return result
}

// read adds a prompt to the memory.
func (m *memory) read(prompt string) {
	marked, mark := false, false
	for line := range strings.Lines(prompt) {
		switch {
		case strings.HasPrefix(line, "[You may have seen this.]"):
			mark = true
			continue
		case strings.HasPrefix(line, "User: "), strings.HasPrefix(line, "Question to "),
			strings.HasPrefix(line, "[End of "):
			marked, mark = mark, false
		}
		if marked {
			m.marked += line
		} else {
			m.plain += line
		}
	}
}

// accepted prepares the comparison of an agent's memory with the entries of the session so far. The caller makes it
// after the chat has shown the number of entries that were left out.
func (w *three) accepted(id cli.AgentSessionID, m *memory, req cli.Request, aside bool) {
	lines := strings.Split(req.Prompt, "\n")
	if own := lines[len(lines)-1]; strings.Count(req.Prompt, own) != 1 {
		w.fault("the prompt %s is its own history: %s", own, req.Prompt)
	}
	turns, err := w.db.History(context.Background(), orchestrator.SessionID(req.Session), 100)
	if err != nil {
		w.fault("%v", err)
	}
	plain, marked := m.plain, m.marked
	w.checks[aside] = func(leftOut int) {
		m.leftOut += leftOut
		missing, asked := 0, map[string]int{}
		for _, t := range turns {
			asked[t.Prompt.Text]++
		}
		for _, t := range turns {
			told := strings.Count(plain, ": "+t.Prompt.Text)
			if strings.Contains("\n"+plain, "\n"+t.Prompt.Text) {
				told++ // as the request
			}
			if told > 1 && asked[t.Prompt.Text] == 1 {
				w.fault("%s was told %s %d times:\n%s", id, t.Prompt.Text, told, plain)
			}
			text := t.Outcome.Text
			switch n := strings.Count(plain, text); {
			case text == "":
			case n > 1:
				w.fault("%s was told %s %d times:\n%s", id, text, n, plain)
			case n == 0 && !strings.Contains(marked, text):
				missing++
			}
		}
		if missing > m.leftOut {
			w.fault("%s does not know %d entries, and the chat says that %d are left out:\n%s\nIt may have seen:\n%s",
				id, missing, m.leftOut, plain, marked)
		}
	}
}

// compare runs the comparison of a lane, if its agent accepted the prompt.
func (w *three) compare(aside bool, leftOut int) {
	if check := w.checks[aside]; check != nil {
		check(leftOut)
		delete(w.checks, aside)
	}
}

// consult asks the other agent to the end.
func (w *three) consult(q orchestrator.ConsultQuestion) orchestrator.ConsultAnswer {
	q.Conversation, q.Model.Agent, q.Text = here, w.other, name("question")
	a, err := w.consults.Ask(context.Background(), q)
	if err == nil && a.Text == "" {
		w.fault("it has no answer: %+v", a)
	}
	w.compare(true, a.LeftOut)
	return a
}

// aside has a user consult an agent.
func (w *three) aside() {
	switch w.fates[true] {
	case stopped, stoppedRead, stoppedOn:
		w.during(func() { w.consult(orchestrator.ConsultQuestion{}) }, func() { w.consults.Abort(here) })
	case restarted, restartedRead:
		w.during(func() { w.consult(orchestrator.ConsultQuestion{}) }, func() {
			if err := w.consults.Close(context.Background()); err != nil {
				w.fault("%v", err)
			}
		})
		w.stop()
		w.start()
	default:
		w.consult(orchestrator.ConsultQuestion{})
	}
}

// during runs then while f waits for an agent.
func (w *three) during(f, then func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	<-w.asked
	then()
	<-done
}

// turn runs a prompt to its end: a new one for an agent, or the last one again if it did not succeed.
func (w *three) turn(t *rapid.T, again bool, who cli.Agent) {
	by := orchestrator.Press{Conversation: here, Person: 1, Role: orchestrator.RoleUser}
	var receipt orchestrator.Receipt
	fate := w.fates[false] // the agent changes the map
	last, err := w.db.Turn(context.Background(), w.last)
	if again && err == nil && last.State != orchestrator.TurnDone {
		receipt, err = w.talks.Choose(context.Background(), w.last, orchestrator.ActionAgain, by)
	} else {
		receipt, err = w.talks.Submit(context.Background(), orchestrator.Prompt{Conversation: here, Person: 1,
			Text: name("prompt")}, orchestrator.Wants{Agent: who})
	}
	if err != nil {
		t.Fatal(err)
	}
	w.last = receipt.Turn
	switch fate {
	case stopped, stoppedRead, stoppedOn:
		<-w.asked
		_, err = w.talks.Stop(context.Background(), by, func(*orchestrator.Stopping) {},
			func(orchestrator.AbortReport) orchestrator.Handled { return orchestrator.Handled{} })
	case restarted, restartedRead:
		<-w.asked
		w.stop()
		w.start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Microsecond) {
		if now, err := w.db.Turn(context.Background(), w.last); err == nil && now.Delivered {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the turn does not end")
		}
	}
	w.compare(false, w.shown.take())
}

// TestEveryEntryIsToldOnce: whatever happens to turns and consultations of three agents in one session, an agent that
// accepts a prompt knows each answer of the session so far. It was told the answer exactly once, or again with the
// words that it may have seen it after a prompt of unknown outcome, or the chat counted it as left out. A prompt that
// is repeated is never its own history.
func TestEveryEntryIsToldOnce(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("25"); err != nil {
			t.Fatal(err)
		}
		defer f.Value.Set(f.DefValue) //nolint:errcheck // it was its value
	}
	agents := rapid.SampledFrom([]cli.Agent{"claude", "codex", "gemini"})
	rapid.Check(t, func(rt *rapid.T) {
		w := &three{
			path: filepath.Join(t.TempDir(), "ductor.db"), asked: make(chan struct{}), fates: map[bool]fate{},
			memories: map[cli.AgentSessionID]*memory{}, checks: map[bool]func(int){},
			budget: rapid.SampledFrom([]int{8000, 90}).Draw(rt, "budget"),
		}
		w.start()
		defer func() { w.stop() }()
		for range rapid.IntRange(3, 10).Draw(rt, "prompts") {
			w.other = agents.Draw(rt, "other")
			fates := []fate{answered, answered, answered, notStarted, limited, halfway, forgotten, stopped, stoppedRead,
				stoppedOn, restarted, restartedRead}
			aside := rapid.Bool().Draw(rt, "aside")
			if aside {
				w.fates[true] = rapid.SampledFrom(fates).Draw(rt, "fate")
				w.aside()
			} else {
				w.fates[false] = rapid.SampledFrom(append(fates, asking, asking, meanwhile)).Draw(rt, "fate")
				w.turn(rt, rapid.Bool().Draw(rt, "again"), agents.Draw(rt, "agent"))
			}
			if faults := w.shown.all(); len(faults) > 0 {
				rt.Fatal(strings.Join(faults, "\n"))
			}
		}
	})
}

// The ID of another conversation's session is a name like any other. Two questions at the same moment create one
// session with their name.
func TestIDsOfOtherConversations(t *testing.T) {
	w := &three{path: filepath.Join(t.TempDir(), "ductor.db")}
	w.start()
	defer w.stop()
	mine, err := w.talks.SideSession(t.Context(), orchestrator.ConsultQuestion{Conversation: here, Session: "auth-789"})
	if err != nil || mine.Title != "auth-789" {
		t.Fatalf("%+v, %v", mine, err)
	}
	for _, name := range []string{"auth-789", string(mine.ID)} {
		all := make(chan orchestrator.SessionID, 8)
		for range cap(all) {
			go func() {
				s, err := w.talks.SideSession(t.Context(), orchestrator.ConsultQuestion{
					Conversation: orchestrator.ConversationID{Chat: 8}, Session: name, Person: 8})
				if err != nil || s.ID == mine.ID || s.Title != name || s.Person != 8 || s.Conversation.Chat != 8 {
					t.Errorf("another user gets %+v, %v", s, err)
				}
				all <- s.ID
			}()
		}
		first := <-all
		for range cap(all) - 1 {
			if id := <-all; id != first {
				t.Errorf("%s names %s and %s", name, first, id)
			}
		}
	}
	again, err := w.talks.SideSession(t.Context(), orchestrator.ConsultQuestion{Conversation: here,
		Session: string(mine.ID)})
	if err != nil || again.ID != mine.ID {
		t.Errorf("by its ID it is %+v, %v", again, err)
	}
	for _, bad := range []string{"a\x00b", "a\xffb", strings.Repeat("x", orchestrator.MostSessionName+1)} {
		if _, err := w.talks.SideSession(t.Context(), orchestrator.ConsultQuestion{Conversation: here,
			Session: bad}); err == nil {
			t.Errorf("%.20q names a session", bad)
		}
	}
}

// gateway runs agents as run does.
type gateway struct {
	orchestrator.Gateway
	run func(context.Context, cli.Agent, cli.Request, func(cli.Event)) cli.Result
}

func (g gateway) Run(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	return g.run(ctx, who, req, emit)
}
func (gateway) Settled(cli.TurnID)                                                 {}
func (gateway) Release(cli.Conversation)                                           {}
func (gateway) Warm(cli.Agent, cli.Request)                                        {}
func (gateway) Abort(cli.Conversation) bool                                        { return false }
func (gateway) CannotHold(cli.Agent, cli.Request) *cli.Failure                     { return nil }
func (gateway) Cannot(cli.Sandbox, cli.Agent, cli.PermissionMode) (_ lang.Message) { return }
func (gateway) ProjectFields(cli.Sandbox, cli.Agent, string) ([]cli.Field, string) { return nil, "" }
func (gateway) Outliving(cli.TurnID) func(context.Context) []cli.ProcessName {
	return func(context.Context) []cli.ProcessName { return nil }
}
func (gateway) Survey(context.Context, []cli.OpenTurn) (map[cli.TurnID]cli.Remains, error) {
	return nil, nil
}
func (gateway) Default(context.Context, cli.Sandbox, cli.Accounts) (cli.Agent, *cli.Failure, error) {
	return "claude", nil, nil
}
func (gateway) Substitute(context.Context, cli.Sandbox, cli.Accounts, []cli.Agent) (cli.Agent, bool) {
	return "", false
}
func (gateway) Refresh()                                                         {}
func (gateway) Accounts(context.Context, cli.Sandbox, cli.Agent) []cli.MenuEntry { return nil }

func (gateway) Logins(cli.Sandbox, cli.Agent, cli.Account) []cli.Login { return nil }

// shown is a chat that counts the entries which it called left out. It also collects the faults of the test.
type shown struct {
	orchestrator.Chat
	mu      sync.Mutex
	leftOut int
	faults  []string
}

func (s *shown) fault(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, text)
}

func (s *shown) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults
}

// take returns the count since the last call.
func (s *shown) take() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.leftOut
	s.leftOut = 0
	return n
}

func (s *shown) Card(orchestrator.Turn) orchestrator.Card                        { return shownCard{of: s} }
func (s *shown) Reopen(context.Context, orchestrator.Turn) orchestrator.Card     { return shownCard{of: s} }
func (*shown) Queued(orchestrator.Turn, int)                                     {}
func (*shown) Unqueued(orchestrator.Turn)                                        {}
func (*shown) Redeliver(context.Context, orchestrator.Turn) error                { return nil }
func (*shown) Withdraw(context.Context, orchestrator.Turn) error                 { return nil }
func (*shown) Notice(context.Context, orchestrator.ConversationID, string) error { return nil }

type shownCard struct {
	orchestrator.Card
	of *shown
}

func (c shownCard) Show(ev cli.Event) {
	if ev, ok := ev.(cli.HandedOver); ok {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		if c.of.leftOut += ev.LeftOut; ev.Shortened {
			c.of.leftOut++
		}
	}
}
func (shownCard) End()                                               {}
func (shownCard) Finish(context.Context, orchestrator.Outcome) error { return nil }
func (shownCard) Amend(context.Context, orchestrator.Outcome) error  { return nil }
func (shownCard) Leave(context.Context)                              {}
