package orchestrator

import (
	"context"
	"encoding/base32"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"ductor/cli"
)

// Bounds of the approvals of a turn.
const (
	askMost  = 32               // what one turn may have open at a time
	askQueue = 64               // what an agent asked and is not recorded; then its stream waits
	tellWait = 10 * time.Second // how long an agent may take to accept a decision
)

// Sentences that agents are told, and people.
const (
	expiredSentence    = "Nobody decided in time, so it was denied."
	unansweredSentence = "No user answered in time. Decide yourself, or say what you need to know and end your turn."
	noUserSentence     = "No user can be asked here, so it was denied."
	manySentence       = "Too many requests wait for a decision, so this one was denied. Wait for them."
	brokenSentence     = "ductor could not record the request, so it was denied."
	goneSentence       = "The request was withdrawn before."
	secretSentence     = "ductor was restarted before the answer arrived, and does not keep such answers. Ask again."
)

// approvals take what the agent of one running turn asks to its users, and their decisions to the agent. Events wait
// in a queue for its goroutine: the agent's stream does not wait for the disk, and a decision is never handed
// over from within the stream.
type approvals struct {
	o    *Orchestrator
	turn Turn
	hide *hider
	card Card // hears what the agent no longer waits for
	dir  string
	mode cli.PermissionMode
	keep context.Context // ends with nothing: what is recorded must be
	life context.Context // of the turn
	log  *slog.Logger

	events  chan cli.Event
	done    chan struct{}
	project chan cli.Decision // the one on the project's settings

	mu     sync.Mutex // held for one event or decision
	told   map[cli.AskID]bool
	timers map[AskID]func() bool
	held   []cli.Event // asked before CaughtUp: perhaps withdrawn since
	past   bool        // what is told happened before this process
	over   bool

	tools map[cli.ToolID]cli.ToolStarted // that run; of the goroutine
}

// newApprovals begins to take the events of a turn. Its drain and leave end it.
func (o *Orchestrator) newApprovals(life, keep context.Context, t Turn, req cli.Request, left cli.Remains, card Card, hide *hider) *approvals {
	a := &approvals{
		o: o, turn: t, card: card, hide: hide, dir: req.Dir, mode: req.Permission, keep: keep, life: life, log: o.log.With("turn", t.ID),
		events: make(chan cli.Event, askQueue), done: make(chan struct{}), project: make(chan cli.Decision, 1),
		told: map[cli.AskID]bool{}, tools: map[cli.ToolID]cli.ToolStarted{}, timers: map[AskID]func() bool{}, past: left == cli.RemainsRun,
	}
	o.mu.Lock()
	o.approvals[t.ID] = a
	o.mu.Unlock()
	if a.past {
		a.rearm()
	}
	go a.work()
	return a
}

func (o *Orchestrator) approvalsOf(turn cli.TurnID) *approvals {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.approvals[turn]
}

// changeMode says in which mode the agent works from now on.
func (a *approvals) changeMode(mode cli.PermissionMode) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mode = mode
}

// rearm sets the timers of asks that the previous process showed.
func (a *approvals) rearm() {
	open, err := a.o.opts.Store.OpenAsks(a.keep)
	if err != nil {
		a.log.Error("load open asks", "err", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, ask := range open {
		if ask.Turn == a.turn.ID {
			a.arm(ask)
		}
	}
}

// take is called from the agent's stream.
func (a *approvals) take(ev cli.Event) {
	switch ev.(type) {
	case cli.ToolStarted, cli.ToolEnded: // the audit misses none
		a.events <- ev
		return
	case cli.ApprovalAsked, cli.QuestionAsked, cli.AskWithdrawn, cli.CaughtUp:
	default:
		return
	}
	select {
	case a.events <- ev:
	case <-a.life.Done(): // the agent is being ended, or detached and asks again
	}
}

// drain returns when all that was asked is recorded. No event comes any more.
func (a *approvals) drain() {
	close(a.events)
	<-a.done
}

// leave ends them. Until then a decision that came too late for the agent is found to have.
func (a *approvals) leave() {
	a.o.mu.Lock()
	delete(a.o.approvals, a.turn.ID)
	a.o.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	for _, stop := range a.timers {
		stop()
	}
}

func (a *approvals) work() {
	defer close(a.done)
	for ev := range a.events {
		switch {
		case isTool(ev):
			a.tool(ev)
		case a.life.Err() == nil:
			a.handle(ev)
		}
	}
}

func (a *approvals) handle(ev cli.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch ev := ev.(type) {
	case cli.CaughtUp:
		a.past = false
		for _, ev := range a.held {
			a.asked(ev)
		}
		a.held = nil
	case cli.AskWithdrawn:
		a.withdrawn(ev.ID)
	default:
		if a.past && len(a.held) < askQueue {
			a.held = append(a.held, ev)
			return
		}
		a.asked(ev)
	}
}

func (a *approvals) withdrawn(native cli.AskID) {
	for i, ev := range a.held {
		if nativeOf(ev) == native {
			a.held = append(a.held[:i], a.held[i+1:]...)
			break
		}
	}
	ask, changed, err := a.o.opts.Store.WithdrawRequest(a.keep, a.turn.ID, native, a.o.now())
	if err != nil {
		a.log.Error("withdraw ask", "err", err)
	}
	if changed {
		a.show(ask)
	}
}

func nativeOf(ev cli.Event) cli.AskID {
	switch ev := ev.(type) {
	case cli.ApprovalAsked:
		return ev.ID
	case cli.QuestionAsked:
		return ev.ID
	}
	return ""
}

// asked has a rule or a person decide, or hands over what was decided before.
func (a *approvals) asked(ev cli.Event) {
	native := nativeOf(ev)
	if a.o.opts.Asks == nil {
		a.deny(native, noUserSentence)
		return
	}
	ask, err := a.record(ev)
	if err != nil {
		a.log.Error("record what the agent asks; it is denied", "err", err)
		a.deny(native, brokenSentence)
		return
	}
	a.told[native] = false
	if ask.State == AskOpen && a.timers[ask.ID] == nil && len(a.timers) >= askMost {
		ask = a.refuse(ask)
	}
	if ask.State == AskOpen {
		a.arm(ask)
		a.show(ask)
		return
	}
	if _, err := a.tell(ask); err != nil {
		a.log.Error("hand a decision to the agent", "ask", ask.Requests, "err", err)
	}
	if ask.Message != 0 { // ductor may have died before it said so
		a.show(ask)
	}
}

// refuse denies an ask that is one too many; it was not shown.
func (a *approvals) refuse(ask Ask) Ask {
	now, _, err := a.o.opts.Store.DecideAsk(a.keep, AskDecision{Ask: ask.ID, State: AskDenied, Reason: manySentence, At: a.o.now()})
	if err != nil {
		a.log.Error("deny an ask that is one too many", "err", err)
		return ask
	}
	return now
}

// record stores what is asked and returns the ask that stands for it.
func (a *approvals) record(ev cli.Event) (Ask, error) {
	ask, err := a.compose(ev)
	if err != nil {
		return Ask{}, err
	}
	rule, err := a.letsThrough(ask)
	if err != nil {
		return Ask{}, err
	}
	stored := a.hide.ask(ask)
	if rule != "" {
		stored.State, stored.Ruled, stored.Decided = AskAllowed, rule, a.o.now()
	}
	now, err := a.o.opts.Store.OpenAsk(a.keep, stored, digestOf(ask))
	if err != nil || rule == "" || now.State != AskOpen {
		return now, err
	}
	// It was open before the rule was made.
	now, _, err = a.o.opts.Store.DecideAsk(a.keep, AskDecision{Ask: now.ID, State: AskAllowed, Ruled: rule, At: a.o.now()})
	if err == nil {
		a.show(now)
	}
	return now, err
}

func (a *approvals) compose(ev cli.Event) (Ask, error) {
	id, err := a.o.secret(10)
	if err != nil {
		return Ask{}, err
	}
	nonce, err := a.o.secret(15)
	if err != nil {
		return Ask{}, err
	}
	now := a.o.now()
	ask := Ask{
		ID: AskID(id), Nonce: nonce, Turn: a.turn.ID, Session: a.turn.Session, Conversation: a.turn.Prompt.Conversation,
		Agent: a.turn.Agent, Requests: []cli.AskID{nativeOf(ev)}, Dir: a.dir, Approvers: a.o.approvers(a.turn.Prompt),
		Asked: now, Expires: now.Add(a.o.opts.AskTimeout), State: AskOpen,
	}
	switch ev := ev.(type) {
	case cli.ApprovalAsked:
		ask.Approval = &ev
	case cli.QuestionAsked:
		ask.Questions = ev.Questions
	}
	if a.turn.Prompt.Rights.ofChat() && !a.o.touchesOwn(ask) { // a rule is of the chat, and counts for no other turn
		session, lasting := offer(ask)
		ask.SessionRule, ask.Rule = session.Text, lasting.Text
	}
	return ask, nil
}

// secret is a word that cannot be guessed, of n random bytes.
func (o *Orchestrator) secret(n int) (string, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(o.opts.Random, b); err != nil {
		return "", fmt.Errorf("draw a random word: %w", err)
	}
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b), nil
}

// approvers says who decides. The id of a private chat is that of the person in it.
func (o *Orchestrator) approvers(p Prompt) []PersonID {
	switch {
	case p.Conversation.Chat > 0:
		return []PersonID{PersonID(p.Conversation.Chat)}
	case o.opts.Approvers != nil:
		return o.opts.Approvers(p.Conversation, p.Person)
	}
	return []PersonID{p.Person}
}
