package service

import (
	"context"
	"iter"
	"slices"
	"time"

	"ductor/cli"
	"ductor/lang"
)

// pool keeps live sessions between turns, one per conversation, and limits the processes of all sessions. One goroutine
// owns all that the pool knows; see do. Of providers it calls only Sharer.Shares, which does not wait.
type pool struct {
	*core
	launchers func(cli.Sandbox) []cli.Launcher
	commands  chan command
	over      chan struct{} // closed when the goroutine has ended
	look      chan struct{} // a token asks for a look at the memory

	phase   phase // this and the rest belong to the goroutine
	slots   []*slot
	queue   []*request
	typical map[cli.Agent]int64 // the most bytes that a process of the agent was seen to hold
}

// phase says what becomes of sessions that are given back.
type phase int

const (
	keeping   phase = iota
	closed          // all are closed
	detaching       // those that work in the background are detached, the others closed
)

// state is what an entry does.
type state int

const (
	opening  state = iota
	warming        // it is opened ahead, or looked at whether it fits: turns of its conversation wait for that
	idle           // it waits for a turn
	busy           // a turn has it
	expiring       // a turn has it, after which it is closed
	closing        // no other of its key is opened before it is gone
	stuck          // it could not be closed or opened in time, and may still have a process
)

// pooled is an entry of the pool: a session, from before it is opened until it is gone.
type pooled struct {
	closeKey
	mode      cli.Mode
	session   cli.Session // nil until it is open
	slot      *slot
	state     state
	ahead     *warmUp // while it is warming
	used      time.Time
	expiry    *time.Timer             // set when it was idle last; nil before
	approvals map[cli.ApprovalID]bool // what its turn waits for its user to decide
}

// closeKey names the sessions that must not overlap: two processes of one session would spoil each other's history. An
// agent has another history in another environment.
type closeKey struct {
	sandbox      cli.Sandbox
	conversation cli.Conversation
	agent        cli.Agent
}

func (e *agentEntry) closeKey(conversation cli.Conversation) closeKey {
	return closeKey{e.runEnv.sandbox, conversation, e.provider.Agent()}
}

// slot is one agent process, from before it is started until it is dead. Sessions that share a process share its slot.
type slot struct {
	id      processID // its pid is 0 until it is known, and where there is none between turns
	entries []*pooled
	memory  int64         // bytes, as last measured
	watched int           // the pid whose end is waited for
	dead    bool          // its process had ended when the run was found: it counts nowhere
	empty   chan struct{} // closed when it has no entry
}

// processID names an agent's process: two environments may use a number at the same time.
type processID struct {
	sandbox cli.Sandbox
	agent   cli.Agent
	pid     int
}

// command is run by the pool's goroutine, which closes done after it.
type command struct {
	run  func()
	done chan struct{}
}

// warmUp is a session that is being opened ahead.
type warmUp struct {
	ctx    context.Context
	cancel context.CancelFunc // no turn wants it any more
}

// request asks for a session of a conversation.
type request struct {
	closeKey
	mode    cli.Mode
	ahead   *warmUp    // nil for a turn
	shares  func() int // the pid of the process that a session would be put into; 0 if there is none
	told    shortage
	granted chan *pooled  // has room for the one answer, which is nil if no session is to be opened ahead
	short   chan shortage // has room for the newest
}

// lack names the resource that is short.
type lack int

const (
	enough lack = iota
	number
	memory
)

// shortage is what a turn waits for before its process may start.
type shortage struct {
	of       lack
	position int // in the queue, from 1
}

// sentence is what the user reads.
func (s shortage) sentence(p lang.Printer) string {
	switch next := s.position == 1; {
	case s.of == number && next:
		return p.Text("wait.agents-next")
	case s.of == number:
		return p.Text("wait.agents-queued", s.position)
	case next:
		return p.Text("wait.memory-next")
	}
	return p.Text("wait.memory-queued", s.position)
}

// do has the pool's goroutine run f and then serve those who wait. After the end of the pool f is not run.
func (p *pool) do(f func()) {
	c := command{run: f, done: make(chan struct{})}
	select {
	case p.commands <- c:
		<-c.done
	case <-p.over:
	}
}

func (p *pool) entries() iter.Seq[*pooled] {
	return func(yield func(*pooled) bool) {
		for _, at := range p.slots {
			for _, e := range at.entries {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// find gives the first entry of a conversation that is in one of the states; nil if there is none.
func (p *pool) find(conversation cli.Conversation, in ...state) *pooled {
	for e := range p.entries() {
		if e.conversation == conversation && slices.Contains(in, e.state) {
			return e
		}
	}
	return nil
}

// add puts an entry into a slot, which may be new.
func (p *pool) add(e *pooled, at *slot) *pooled {
	e.slot = at
	at.entries = append(at.entries, e)
	if len(at.entries) == 1 {
		at.empty = make(chan struct{})
		p.slots = append(p.slots, at)
	}
	if e.approvals == nil {
		e.approvals = map[cli.ApprovalID]bool{}
	}
	return e
}

// remove takes an entry out of its slot, which is free with the last one.
func (p *pool) remove(e *pooled) {
	e.stopExpiry()
	at := e.slot
	at.entries = slices.DeleteFunc(slices.Clone(at.entries), func(other *pooled) bool { return other == e })
	if len(at.entries) == 0 {
		p.slots = slices.DeleteFunc(slices.Clone(p.slots), func(other *slot) bool { return other == at })
		close(at.empty)
	}
}

// stopExpiry stops the timer, which would keep the entry in memory until it fires.
func (e *pooled) stopExpiry() {
	if e.expiry != nil {
		e.expiry.Stop()
	}
}

// leave gives up an entry of which no session came.
func (p *pool) leave(e *pooled) { p.do(func() { p.remove(e) }) }

// slotOf finds the slot of a process.
func (p *pool) slotOf(id processID) *slot {
	for _, at := range p.slots {
		if at.id == id && id.pid != 0 {
			return at
		}
	}
	return nil
}

// inspect asks a session what it is, and finds its process; nil if it has none.
func (p *pool) inspect(e *pooled) (cli.SessionInfo, cli.Process) {
	info := e.info()
	return info, p.process(processID{e.sandbox, e.agent, info.PID})
}

// info is the session's, or nothing if the provider panics.
func (e *pooled) info() (info cli.SessionInfo) {
	_ = guard(e.agent, func() error { info = e.session.Info(); return nil }) // not alive, then
	return info
}

// wanted is false once a session that is opened ahead is not to be kept.
func (e *pooled) wanted() bool { return e.ahead == nil || e.ahead.ctx.Err() == nil }

// process gives an agent's process that this Service has; nil if it has none of this number.
func (p *pool) process(id processID) cli.Process {
	if id.pid == 0 {
		return nil
	}
	for _, l := range p.launchers(id.sandbox) {
		if f, ok := l.(cli.Finder); ok {
			if process := f.Find(id.agent, id.pid); process != nil {
				return process
			}
		}
	}
	return nil
}

// expireAfter has a busy session closed after its turn.
func (p *pool) expireAfter(e *pooled) { p.do(func() { e.state = expiring }) }

// discard closes a session and returns when it is closed, or will not be for now: then it says why.
func (p *pool) discard(e *pooled) error {
	p.do(func() { p.beginClose(e) })
	return p.finishClose(e)
}

// discardInBackground is discard for a caller that does not wait.
func (p *pool) discardInBackground(e *pooled) { p.do(func() { p.closeInBackground(e) }) }

func (p *pool) closeInBackground(e *pooled) {
	p.beginClose(e)
	go func() { _ = p.finishClose(e) }() // it is logged
}

// beginClose has the service wait for finishClose, or detach.
func (p *pool) beginClose(e *pooled) {
	e.state = closing
	p.work.Add(1)
}

// finishClose closes a session. Its slot is free once its process is dead.
func (p *pool) finishClose(e *pooled) error {
	defer p.work.Done()
	_, process := p.inspect(e)
	err := p.closeOnce(e)
	if err == nil || process == nil {
		p.leave(e)
		return err
	}
	p.do(func() { e.state = stuck })
	p.work.Go(func() {
		p.awaitDead(e, process)
		p.leave(e)
	})
	return err
}

func (p *pool) closeOnce(e *pooled) error {
	ctx, cancel := context.WithTimeout(context.Background(), p.closeWait())
	defer cancel()
	err := guard(e.agent, func() error { return e.session.Close(ctx) })
	if err != nil {
		p.opts.Logger.Error("a session did not close", "agent", string(e.agent), "conversation", string(e.conversation), "err", err)
	}
	return err
}

// closeWait is how long a provider may take to end a turn or a session.
func (p *pool) closeWait() time.Duration { return p.opts.Grace + cli.StopSlack }

// closeAgain is between two tries to close a session that did not close.
const closeAgain = 30 * time.Second

// awaitDead returns when a process that outlived its session is dead, or the service ends.
func (p *pool) awaitDead(e *pooled, process cli.Process) {
	again := time.NewTicker(closeAgain)
	defer again.Stop()
	for {
		select {
		case <-process.Done():
			return
		case <-p.base.Done():
			return
		case <-again.C:
			if p.closeOnce(e) == nil {
				return
			}
		}
	}
}

// giveUp has turns wait no more for a session that is opened ahead, and for long.
func (p *pool) giveUp(e *pooled) {
	p.do(func() {
		if e.state == warming {
			e.state = stuck
		}
	})
}

// detachFrom ends the pool's interest in a session, which goes on without it.
func (p *pool) detachFrom(e *pooled) {
	p.do(func() { p.beginClose(e) })
	p.detach(e)
}

func (p *pool) detach(e *pooled) {
	defer p.work.Done()
	_ = guard(e.agent, func() error { e.session.Detach(); return nil })
	p.leave(e)
}
