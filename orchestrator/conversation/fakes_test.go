package conversation_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/store"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// agent is a gateway whose turns end as the test defines, or at once by default.
type agent struct {
	fields []cli.Field // of every project
	mu     sync.Mutex
	asked  []cli.Request
	agents []cli.Agent
	reply  func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result

	stuck   bool                   // turns do not start
	remains map[string]cli.Remains // of open turns, by prompt; unknown by default
	open    func(cli.TurnID) string
	found   []cli.OpenTurn // the argument of Survey
	resumed []cli.Request
	settled []cli.TurnID

	waits   map[cli.ApprovalID]chan cli.Decision // asked and not decided
	decided []string                             // the decisions that arrived, in order
	steer   func(cli.TurnID, cli.Request) error
	setMode func(cli.TurnID, cli.PermissionMode) error // nil: the agent cannot change it

	openings []opening // by Warm
	living   cli.Living

	instead struct {
		agent    cli.Agent     // for all agents; empty for none
		accounts []cli.Account // of each agent, apart from the default one
		unknown  cli.Agent     // is not configured
	}
}

// opening is a call of Warm.
type opening struct {
	who cli.Agent
	req cli.Request
}

func (a *agent) Warm(who cli.Agent, req cli.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.openings = append(a.openings, opening{who, req})
}

// replies changes how turns end that start from now on.
func (a *agent) replies(reply func(context.Context, cli.Agent, cli.Request, func(cli.Event)) cli.Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reply = reply
}

func (a *agent) opened() []opening {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]opening(nil), a.openings...)
}

func (a *agent) Live(context.Context) cli.Living { return a.living }

// request makes the agent ask all at once, and waits for the decisions; they are zero if ctx ends before.
func (a *agent) request(ctx context.Context, emit func(cli.Event), evs ...cli.Event) []cli.Decision {
	answers := make([]chan cli.Decision, len(evs))
	a.mu.Lock()
	if a.waits == nil {
		a.waits = map[cli.ApprovalID]chan cli.Decision{}
	}
	for i, ev := range evs {
		answers[i] = make(chan cli.Decision, 1)
		a.waits[approvalID(ev)] = answers[i]
	}
	a.mu.Unlock()
	for _, ev := range evs {
		emit(ev)
	}
	decisions := make([]cli.Decision, len(evs))
	for i, ev := range evs {
		select {
		case decisions[i] = <-answers[i]:
		case <-ctx.Done():
			a.giveUp(approvalID(ev))
		}
	}
	return decisions
}

// giveUp makes the agent stop waiting for an answer.
func (a *agent) giveUp(id cli.ApprovalID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waits, id)
}

func approvalID(ev cli.Event) cli.ApprovalID {
	switch ev := ev.(type) {
	case cli.ApprovalAsked:
		return ev.ID
	case cli.QuestionAsked:
		return ev.ID
	}
	panic("that asks nothing")
}

func (a *agent) Decide(_ context.Context, _ cli.TurnID, id cli.ApprovalID, d cli.Decision) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer, ok := a.waits[id]
	if !ok {
		return cli.ErrNotAsked
	}
	delete(a.waits, id)
	a.decided = append(a.decided, strings.TrimSpace(fmt.Sprintf("%s %v %s%v", id, d.Allow, d.Reason, d.Answers)))
	answer <- d
	return nil
}

// lostFile cannot be brought.
const lostFile = "/u/lost"

func (a *agent) Bring(_ context.Context, in cli.Sandbox, files []string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.decided = append(a.decided, fmt.Sprintf("%s: %s", in, files))
	if slices.Contains(files, lostFile) {
		return errors.New("no such file")
	}
	return nil
}

func (a *agent) decisions() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.decided...)
}

func (a *agent) Steer(_ context.Context, turn cli.TurnID, req cli.Request) error {
	a.mu.Lock()
	steer := a.steer
	a.mu.Unlock()
	if steer == nil {
		return fmt.Errorf("steer: %w", errors.ErrUnsupported)
	}
	return steer(turn, req)
}

func (a *agent) Run(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	a.mu.Lock()
	reply, starts := a.reply, !a.stuck
	a.mu.Unlock()
	var err error
	if starts {
		err = req.Started(ctx, cli.Start{Run: "run"})
	}
	a.mu.Lock()
	a.asked = append(a.asked, req)
	a.agents = append(a.agents, who)
	a.mu.Unlock()
	if err != nil {
		return cli.StartResult(ctx, who, err)
	}
	return reply(ctx, who, req, func(ev cli.Event) { emit(clitest.WithEffect(ev, req.Dir)) })
}

func (a *agent) Survey(_ context.Context, open []cli.OpenTurn) (map[cli.TurnID]cli.Remains, error) {
	a.found = open
	out := map[cli.TurnID]cli.Remains{}
	for _, t := range open {
		if t.GivenUp {
			continue
		}
		out[t.Turn] = cli.RemainsUnknown
		if a.remains != nil {
			out[t.Turn] = a.remains[a.open(t.Turn)]
		}
	}
	return out, nil
}

func (a *agent) Resume(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	a.mu.Lock()
	a.resumed = append(a.resumed, req)
	reply := a.reply
	a.mu.Unlock()
	return reply(ctx, who, req, func(ev cli.Event) { emit(clitest.WithEffect(ev, req.Dir)) })
}

func (a *agent) Settled(turn cli.TurnID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settled = append(a.settled, turn)
}

func (a *agent) SetPermission(_ context.Context, turn cli.TurnID, mode cli.PermissionMode) error {
	a.mu.Lock()
	set := a.setMode
	a.mu.Unlock()
	if set == nil {
		return errors.ErrUnsupported
	}
	return set(turn, mode)
}

func (a *agent) Abort(cli.Conversation) bool { return false }

func (a *agent) Outliving(cli.TurnID) func(context.Context) []cli.ProcessName {
	return func(context.Context) []cli.ProcessName { return nil }
}
func (a *agent) Release(cli.Conversation) {}
func (a *agent) Menu(_ context.Context, in cli.Sandbox, _ cli.Accounts, _ ...cli.Agent) []cli.MenuEntry {
	return []cli.MenuEntry{{Agent: defaultIn(in)}}
}

// Accounts lists the default account, and those in accounts.
func (a *agent) Accounts(_ context.Context, _ cli.Sandbox, agent cli.Agent) (all []cli.MenuEntry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if agent == a.instead.unknown {
		return nil
	}
	for _, account := range append([]cli.Account{""}, a.instead.accounts...) {
		all = append(all, cli.MenuEntry{Agent: agent, Account: account, Auth: cli.Auth{State: cli.Authenticated}})
	}
	return all
}

func (a *agent) CannotHold(cli.Agent, cli.Request) *cli.Failure { return nil }

func (a *agent) Cannot(_ cli.Sandbox, _ cli.Agent, mode cli.PermissionMode) lang.Message {
	return map[cli.PermissionMode]lang.Message{cli.Plan: lang.Words("it has no plan mode")}[mode]
}

// setFields changes the settings of projects.
func (a *agent) setFields(fields []cli.Field) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fields = fields
}

// ShowSkill shows whether the turn has the settings of the project.
func (a *agent) ShowSkill(_ context.Context, _ cli.Agent, of cli.Request, asked cli.ApprovalAsked) cli.ApprovalAsked {
	if asked.Tool == "Skill" {
		asked.Detail = "project: " + string(of.Project)
	}
	return asked
}

func (a *agent) ProjectFields(cli.Sandbox, cli.Agent, string) ([]cli.Field, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fields, ""
}
func (a *agent) Default(_ context.Context, in cli.Sandbox, _ cli.Accounts) (cli.Agent, *cli.Failure, error) {
	return defaultIn(in), nil, nil
}

func (a *agent) Refresh()                                               {}
func (a *agent) Logins(cli.Sandbox, cli.Agent, cli.Account) []cli.Login { return nil }
func (a *agent) LogIn(context.Context, cli.Sandbox, cli.Agent, cli.Login, func(cli.DeviceCode)) error {
	return errors.ErrUnsupported
}

func (a *agent) Substitute(_ context.Context, _ cli.Sandbox, _ cli.Accounts, others []cli.Agent) (cli.Agent, bool) {
	if slices.Contains(others, a.instead.agent) {
		return "", false
	}
	return a.instead.agent, true
}

// defaultIn is the agent of an environment if none was chosen.
func defaultIn(in cli.Sandbox) cli.Agent {
	if in == "db" {
		return "codex"
	}
	return "claude"
}

func (a *agent) requests() []cli.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]cli.Request(nil), a.asked...)
}

// prompts returns the last lines of the prompts so far, in order, without the history before them.
func (a *agent) prompts() []string {
	var out []string
	for _, r := range a.requests() {
		out = append(out, lastLine(r.Prompt))
	}
	return out
}

func lastLine(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }

// echo answers at once, and names the session after the agent.
func echo(_ context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	id := req.Resume
	if id == "" {
		id = cli.AgentSessionID("native-" + string(who))
	}
	emit(cli.SessionStarted{AgentSessionID: id, Model: "m1"})
	text := "echo: " + lastLine(req.Prompt)
	emit(cli.TextDelta{Text: text})
	r := cli.Result{Text: text, AgentSessionID: id, Model: "m1", Consumed: cli.Consumption{
		CostUSD: 0.5, Usage: cli.Usage{Input: 10, Output: 5},
	}}
	emit(r)
	return r
}

// untilAborted answers when its context ends.
func untilAborted(ctx context.Context, _ cli.Agent, _ cli.Request, _ func(cli.Event)) cli.Result {
	<-ctx.Done()
	return cli.Cut(ctx, "claude")
}

// untilClosed answers like echo once end is closed.
func untilClosed(end <-chan struct{}) func(context.Context, cli.Agent, cli.Request, func(cli.Event)) cli.Result {
	return func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		<-end
		return echo(ctx, who, req, emit)
	}
}

// chat records the messages that the user would see.
type chat struct {
	mu     sync.Mutex
	seen   []string
	cards  []string      // prompts of the turns whose cards were opened
	stuck  chan struct{} // Finish waits for it when set
	refuse error         // Finish fails with it when set
}

// opened returns the prompts of the turns whose cards were opened, in order.
func (c *chat) opened() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.cards...)
}

func (c *chat) say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, fmt.Sprintf(format, args...))
}

// takes makes Finish fail with err, or succeed if err is nil.
func (c *chat) takes(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse = err
}

func (c *chat) refusal() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refuse
}

func (c *chat) log() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.seen...)
}

func (c *chat) Queued(t orchestrator.Turn, ahead int) {
	c.say("queued %s behind %d", t.Prompt.Text, ahead)
}
func (c *chat) Unqueued(t orchestrator.Turn) { c.say("unqueued %s", t.Prompt.Text) }
func (c *chat) Card(t orchestrator.Turn) orchestrator.Card {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cards = append(c.cards, t.Prompt.Text)
	return &card{chat: c, turn: t}
}
func (c *chat) Reopen(_ context.Context, t orchestrator.Turn) orchestrator.Card {
	c.say("reopened %s", t.Prompt.Text)
	return &card{chat: c, turn: t}
}
func (c *chat) Redeliver(_ context.Context, t orchestrator.Turn) error {
	c.say("redelivered %s: %s", t.Prompt.Text, t.Outcome.State)
	return nil
}
func (c *chat) ShowAgain(_ context.Context, t orchestrator.Turn) error {
	c.say("again %s", t.Outcome.Text)
	return nil
}
func (*chat) Withdraw(context.Context, orchestrator.Turn) error { return nil }
func (*chat) Extend(context.Context, orchestrator.Turn) error   { return orchestrator.ErrCannotAmend }

func (c *chat) Notice(_ context.Context, _ orchestrator.ConversationID, text string) error {
	c.say("notice %s", text)
	return nil
}

type card struct {
	chat *chat
	turn orchestrator.Turn
}

func (c *card) Show(ev cli.Event) {
	switch ev := ev.(type) {
	case cli.Status:
		if ev.Kind == cli.StatusWarning || ev.Kind == cli.StatusNotice {
			c.chat.say("warned %s", ev.Detail)
		}
	case cli.ApprovalWithdrawn:
		c.chat.say("answered %s", ev.ID)
	}
}

func (*card) End() {}

func (c *card) Amend(_ context.Context, o orchestrator.Outcome) error {
	c.chat.say("%d files of %s", o.Changed.Files, c.turn.Prompt.Text)
	return nil
}

func (c *card) Leave(context.Context) { c.chat.say("left %s", c.turn.Prompt.Text) }

func (c *card) Finish(ctx context.Context, o orchestrator.Outcome) error {
	if o.Announce == orchestrator.Unwanted {
		c.chat.say("withdrawn %s", c.turn.Prompt.Text)
		return nil
	}
	if c.chat.stuck != nil {
		c.chat.say("showing %s", c.turn.Prompt.Text)
		select {
		case <-c.chat.stuck:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := c.chat.refusal(); err != nil {
		return err
	}
	c.chat.say("%s %s", o.State, c.turn.Prompt.Text)
	return nil
}

// Sessions lists the sessions of a conversation, last used first.
func (h *house) Sessions(ctx context.Context, in orchestrator.ConversationID) (all []orchestrator.Session, err error) {
	found, _, err := h.db.FindSessions(ctx, orchestrator.SessionQuery{Conversation: in, Limit: 20})
	for _, f := range found {
		all = append(all, f.Session)
	}
	return all, err
}

// house is an orchestrator over a real store.
type house struct {
	*conversation.Engine
	db    *store.DB
	agent *agent
	chat  *chat
	clock *clock
	board *board
}

type clock struct {
	mu     sync.Mutex
	t      time.Time
	timers []*timer
}

type timer struct {
	at time.Time
	f  func()
}

func (c *clock) after(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{at: c.t.Add(d), f: f}
	c.timers = append(c.timers, t)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		before := len(c.timers)
		c.timers = slices.DeleteFunc(c.timers, func(other *timer) bool { return other == t })
		return len(c.timers) < before
	}
}

// ring runs the timers that are due.
func (c *clock) ring() {
	c.mu.Lock()
	var due []*timer
	c.timers = slices.DeleteFunc(c.timers, func(t *timer) bool {
		if t.at.After(c.t) {
			return false
		}
		due = append(due, t)
		return true
	})
	c.mu.Unlock()
	for _, t := range due {
		t.f()
	}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

// jump is advance while timers stand still, as if the machine slept or a user set its clock.
func (c *clock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
	for _, t := range c.timers {
		t.at = t.at.Add(d)
	}
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

var (
	here  = orchestrator.ConversationID{Chat: 7}
	there = orchestrator.ConversationID{Chat: 7, Topic: 3}
)

func open(t testing.TB) *house {
	return openAt(t, filepath.Join(t.TempDir(), "ductor.db"), nil)
}

// openAt opens a house over the store at path; change may alter its options.
func openAt(t testing.TB, path string, change func(*conversation.Options)) *house {
	t.Helper()
	db, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{db: db, agent: &agent{reply: echo}, chat: &chat{}, clock: &clock{t: time.Date(2026, 5, 4, 12, 0, 0, 0, time.Local)}}
	root := t.TempDir()
	var ids struct {
		sync.Mutex
		n int
	}
	opts := conversation.Options{
		Store: db, Gateway: h.agent, Chat: h.chat,
		DeliveryWait: 50 * time.Millisecond, Now: h.clock.now,
		NewID: func() string {
			ids.Lock()
			defer ids.Unlock()
			ids.n++
			return fmt.Sprintf("%s-%d", filepath.Base(root), ids.n)
		},
		Logger: slog.New(slog.DiscardHandler),
	}
	opts.Dir, opts.Roots = filepath.Dir(path), []string{filepath.Dir(path)}
	opts.Mode, opts.QueueMax, opts.Sessions.HandoffTokens = cli.Ask, 3, 2000
	h.board = &board{}
	opts.Screen, opts.After = h.board, h.clock.after
	if change != nil {
		change(&opts)
	}
	h.Engine = conversation.New(opts)
	t.Cleanup(func() {
		h.shut()
		db.Close()
	})
	return h
}

// shut interrupts running turns and waits for their end.
func (h *house) shut() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	h.Close(ctx)
}

var updates struct {
	sync.Mutex
	next int64
}

func (h *house) submit(t testing.TB, id orchestrator.ConversationID, text string) orchestrator.Receipt {
	t.Helper()
	r, err := h.Submit(t.Context(), newPrompt(id, text), orchestrator.Wants{})
	if err != nil {
		t.Fatalf("submit %q: %v", text, err)
	}
	return r
}

// runCommand submits a command of the agent in the conversation here.
func (h *house) runCommand(t testing.TB, line string) (orchestrator.Receipt, orchestrator.Prompt) {
	t.Helper()
	p := newPrompt(here, line)
	r, err := h.RunCommand(t.Context(), p)
	if err != nil {
		t.Fatalf("run %q: %v", line, err)
	}
	return r, p
}

// newPrompt returns the prompt of a new message.
func newPrompt(id orchestrator.ConversationID, text string) orchestrator.Prompt {
	updates.Lock()
	defer updates.Unlock()
	updates.next++
	return orchestrator.Prompt{Conversation: id, Person: 1, Text: text, Message: int(updates.next),
		Updates: []int64{updates.next}}
}

// storeNothing answers an abort without updates.
func storeNothing(orchestrator.AbortReport) orchestrator.Handled { return orchestrator.Handled{} }

// Abort ends everything that runs and waits in a conversation, for a listed user.
func (h *house) Abort(ctx context.Context, id orchestrator.ConversationID) (orchestrator.AbortReport, error) {
	return h.Stop(ctx, orchestrator.Press{Conversation: id, Role: orchestrator.RoleUser}, func(*orchestrator.Stopping) {}, storeNothing)
}

// await waits until the chat has shown line.
func (h *house) await(t testing.TB, line string) {
	t.Helper()
	h.eventually(t, "the chat to say "+line, func() bool { return slices.Contains(h.chat.log(), line) })
}

// eventually polls ok. The store writes through cgo, which no bubble of synctest can wait for.
func (h *house) eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited in vain for %s; the chat says\n%q", what, h.chat.log())
}

func (a *agent) Fill(context.Context, cli.Agent, cli.Request, cli.TurnID) (cli.Fill, error) {
	return cli.Fill{}, errors.ErrUnsupported
}

func (a *agent) Commands(context.Context, cli.Agent, cli.Request, cli.TurnID) ([]cli.AgentCommand, error) {
	return nil, errors.ErrUnsupported
}
