package service

import (
	"context"
	"iter"
	"slices"
	"time"

	"ductor/cli"
	"ductor/lang"
)

// pool keeps live sessions between turns, one for each conversation, and limits the number of processes. One goroutine
// owns the pool's state; see do. That goroutine must not block. So it calls only one method of providers,
// Sharer.Shares, which does not block.
type pool struct {
	*core
	launchers func(cli.Sandbox) []cli.Launcher
	commands  chan command
	over      chan struct{} // closed when the goroutine has ended
	look      chan struct{} // a token requests a measurement of the memory

	phase   phase // the goroutine owns this and the following fields
	slots   []*slot
	queue   []*request
	typical map[cli.Agent]int64 // the largest size of an agent's process so far, in bytes
}

// phase determines whether the pool keeps sessions after their turns.
type phase int

const (
	keeping   phase = iota
	closed          // the pool closes sessions after their turns
	detaching       // the pool detaches from sessions with background work, and closes the others
)

// state is the state of an entry.
type state int

const (
	opening  state = iota
	warming        // is being opened ahead, or checked whether it fits; turns of its conversation wait
	idle           // has no turn
	busy           // runs a turn
	expiring       // runs a turn, and will be closed after the turn
	closing        // is being closed; meanwhile no other session with its closeKey is opened
	stuck          // was not closed or opened in time, and may still have a process
)

// pooled is an entry of the pool. It exists from before the opening of its session until the session is closed.
type pooled struct {
	closeKey
	entry     *agentEntry // nil for a run of the previous process if its agent is no longer configured
	mode      cli.Mode
	session   cli.Session // nil until it is open
	slot      *slot
	state     state
	ahead     *warmUp // set while the state is warming
	used      time.Time
	expiry    *time.Timer             // set when the entry became idle; nil before
	approvals map[cli.ApprovalID]bool // open requests of its turn to the user
}

// closeKey identifies sessions that must not run at the same time. Two processes of the same session would corrupt its
// history. An agent has a separate history in each environment.
type closeKey struct {
	sandbox      cli.Sandbox
	conversation cli.Conversation
	agent        cli.Agent
}

func (e *agentEntry) closeKey(conversation cli.Conversation) closeKey {
	return closeKey{e.runEnv.sandbox, conversation, e.provider.Agent()}
}

// slot is one agent process, from before its start until it has ended. Sessions in the same process have the same slot.
type slot struct {
	id      processID // pid is 0 until it is known, and between turns that have a process each
	entries []*pooled
	memory  int64         // last measured size in bytes
	watched int           // pid of the process whose end is awaited
	dead    bool          // the process had ended when the run was found, so it does not count
	empty   chan struct{} // closed when the slot has no entry
}

// processID identifies an agent's process. PIDs of different environments can be equal.
type processID struct {
	sandbox cli.Sandbox
	agent   cli.Agent
	pid     int
}

// command is a function that the pool's goroutine runs. The goroutine then closes done.
type command struct {
	run  func()
	done chan struct{}
}

// warmUp is the opening of a session ahead of its turn.
type warmUp struct {
	ctx    context.Context
	cancel context.CancelFunc // called when no turn needs the session any more
}

// request is a request for a session of a conversation.
type request struct {
	closeKey
	entry   *agentEntry
	mode    cli.Mode
	ahead   *warmUp    // nil if the request is for a turn
	shares  func() int // returns the PID of the process that the session would share, or 0
	told    shortage
	granted chan *pooled  // buffered; receives the only answer, or nil if no session is to be opened ahead
	short   chan shortage // buffered; contains the newest shortage
}

// lack is the limit that prevents a process from starting.
type lack int

const (
	enough lack = iota
	number
	memory
)

// shortage is the reason why a turn waits for a process.
type shortage struct {
	of       lack
	position int // in the queue, from 1
}

// sentence describes the shortage for the user.
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

// do runs f on the pool's goroutine, which then serves the waiting requests. After the end of the pool, do does
// nothing.
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

// find returns the first entry of a conversation in any of the states, or nil.
func (p *pool) find(conversation cli.Conversation, in ...state) *pooled {
	for e := range p.entries() {
		if e.conversation == conversation && slices.Contains(in, e.state) {
			return e
		}
	}
	return nil
}

// add adds an entry to a slot. It registers a new slot.
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

// remove removes an entry from its slot. It removes an empty slot.
func (p *pool) remove(e *pooled) {
	e.stopExpiry()
	at := e.slot
	at.entries = slices.DeleteFunc(slices.Clone(at.entries), func(other *pooled) bool { return other == e })
	if len(at.entries) == 0 {
		p.slots = slices.DeleteFunc(slices.Clone(p.slots), func(other *slot) bool { return other == at })
		close(at.empty)
	}
}

// stopExpiry stops the timer, which would otherwise keep the entry in memory until the timer fires.
func (e *pooled) stopExpiry() {
	if e.expiry != nil {
		e.expiry.Stop()
	}
}

// leave removes an entry that has no session.
func (p *pool) leave(e *pooled) { p.do(func() { p.remove(e) }) }

// slotOf returns the slot of a process, or nil.
func (p *pool) slotOf(id processID) *slot {
	for _, at := range p.slots {
		if at.id == id && id.pid != 0 {
			return at
		}
	}
	return nil
}

// inspect returns a session's info and its process, or nil for a session without a process.
func (p *pool) inspect(e *pooled) (cli.SessionInfo, cli.Process) {
	info := e.info()
	return info, p.process(processID{e.sandbox, e.agent, info.PID})
}

// info returns the session's info. If the provider panics, it returns the zero value.
func (e *pooled) info() (info cli.SessionInfo) {
	_ = guard(e.agent, func() error { info = e.session.Info(); return nil }) // not alive after a panic
	return info
}

// wanted returns false if a session should not be kept: it was opened ahead for nothing, or its agent was replaced.
func (e *pooled) wanted() bool {
	return (e.ahead == nil || e.ahead.ctx.Err() == nil) && (e.entry == nil || !e.entry.replaced)
}

// process returns the process with this ID, or nil if this Service has no such process.
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

// expireAfter makes the pool close a busy session after its turn.
func (p *pool) expireAfter(e *pooled) { p.do(func() { e.state = expiring }) }

// discard closes a session, and returns when it is closed. If that fails, discard returns an error, and the pool tries
// again later.
func (p *pool) discard(e *pooled) error {
	p.do(func() { p.beginClose(e) })
	return p.finishClose(e)
}

// discardInBackground closes a session without waiting.
func (p *pool) discardInBackground(e *pooled) { p.do(func() { p.closeInBackground(e) }) }

func (p *pool) closeInBackground(e *pooled) {
	p.beginClose(e)
	go func() { _ = p.finishClose(e) }() // logs errors
}

// beginClose marks an entry as closing, and makes the service wait for finishClose or detach.
func (p *pool) beginClose(e *pooled) {
	e.state = closing
	p.work.Add(1)
}

// finishClose closes a session. It frees the slot once the process has ended.
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
		p.opts.Logger.Error("a session did not close", "agent", string(e.agent),
			"conversation", string(e.conversation), "err", err)
	}
	return err
}

// closeWait limits the time that a provider may take to end a turn or a session.
func (p *pool) closeWait() time.Duration { return p.opts.Grace + cli.StopSlack }

// closeAgain is the pause between two attempts to close a session.
const closeAgain = 30 * time.Second

// awaitDead waits for the end of a process that its session could not close. It retries until the service ends.
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

// giveUp marks a session as stuck if opening it ahead takes too long. Turns then no longer wait for the session.
func (p *pool) giveUp(e *pooled) {
	p.do(func() {
		if e.state == warming {
			e.state = stuck
		}
	})
}

// detachFrom removes a session that continues without the pool.
func (p *pool) detachFrom(e *pooled) {
	p.do(func() { p.beginClose(e) })
	p.detach(e)
}

func (p *pool) detach(e *pooled) {
	defer p.work.Done()
	_ = guard(e.agent, func() error { e.session.Detach(); return nil })
	p.leave(e)
}
