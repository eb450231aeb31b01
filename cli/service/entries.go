package service

import (
	"context"
	"iter"
	"slices"
	"time"

	"ductor/cli"
	"ductor/lang"
)

// pool contains the live sessions, at most one for each conversation. It limits the number of agent processes. One
// goroutine accesses the pool's state; see do. That goroutine must not block, so it calls no method of a provider
// except Sharer.Shares, which does not block.
type pool struct {
	*core
	launchers func(cli.Sandbox) []cli.Launcher
	commands  chan command
	over      chan struct{} // closed when the goroutine has ended
	look      chan struct{} // receiving a value requests a measurement of the memory

	phase   phase // only the pool's goroutine uses this and the following fields
	slots   []*slot
	queue   []*request
	typical map[cli.Agent]int64 // the largest measured size of a process of the agent, in bytes
}

// phase determines whether the pool keeps sessions after their turns.
type phase int

const (
	keeping   phase = iota
	closed          // the pool closes sessions after their turns
	detaching       // the pool detaches sessions with background work after their turns, and closes all others
)

type state int

const (
	opening  state = iota
	warming        // a warmUp opens the session or checks whether it fits; turns of the conversation wait
	idle           // runs no turn
	busy           // runs a turn
	expiring       // runs a turn, and will be closed after the turn
	closing        // is being closed; meanwhile, no other session with the same closeKey may be opened
	stuck          // could not be closed or opened in time, and may still have a process
)

// pooled is the pool's entry for one session. The entry already exists while the session is being opened, and still
// exists while it is being closed.
type pooled struct {
	closeKey
	entry     *agentEntry // nil for an old run whose agent is no longer configured
	mode      cli.Mode
	session   cli.Session // nil until the session is open
	slot      *slot
	state     state
	ahead     *warmUp // set only while the state is warming
	used      time.Time
	expiry    *time.Timer             // timer of the last idle period; nil before the first
	approvals map[cli.ApprovalID]bool // requests of the running turn that wait for the user
}

// closeKey identifies sessions that must not exist at the same time, because they would corrupt each other's history.
// An agent has a separate history in each environment.
type closeKey struct {
	sandbox      cli.Sandbox
	conversation cli.Conversation
	agent        cli.Agent
}

func (e *agentEntry) closeKey(conversation cli.Conversation) closeKey {
	return closeKey{e.runEnv.sandbox, conversation, e.provider.Agent()}
}

// slot is one process of an agent, including the time in which it starts or ends. Sessions that share a process have
// the same slot.
type slot struct {
	id      processID // PID is 0 until known; always 0 for one-shot sessions
	entries []*pooled
	memory  int64         // last measured size in bytes
	watched int           // PID of the process whose end a goroutine awaits
	dead    bool          // the process ended before ductor attached to its run, so the limits ignore it
	empty   chan struct{} // closed when the last entry is removed
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

// warmUp controls the opening of a session before its turn starts.
type warmUp struct {
	ctx    context.Context
	cancel context.CancelFunc // called when no turn needs the session any more
}

// request asks the pool for a session of a conversation.
type request struct {
	closeKey
	entry   *agentEntry
	mode    cli.Mode
	ahead   *warmUp    // set if the session is for a later turn; nil if a turn waits for the session
	shares  func() int // returns the PID of the running process that a new session would share, or 0
	told    shortage
	granted chan *pooled  // buffered; receives one entry, or nil if no session should be opened before the turn
	short   chan shortage // buffered; contains the latest reason for waiting
}

// lack names the limit that prevents another process from starting.
type lack int

const (
	enough lack = iota
	number
	memory
)

type shortage struct {
	of       lack
	position int // position in the queue, starting at 1
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

// do runs f on the pool's goroutine, and waits until the goroutine has also served the queue. If the goroutine has
// ended, do does nothing.
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

func (p *pool) find(conversation cli.Conversation, in ...state) *pooled {
	for e := range p.entries() {
		if e.conversation == conversation && slices.Contains(in, e.state) {
			return e
		}
	}
	return nil
}

// add adds an entry to a slot. If the slot was empty, add also adds the slot to the pool.
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

// remove removes an entry from its slot. If the slot is then empty, remove also removes the slot from the pool.
func (p *pool) remove(e *pooled) {
	e.stopExpiry()
	at := e.slot
	at.entries = slices.DeleteFunc(slices.Clone(at.entries), func(other *pooled) bool { return other == e })
	if len(at.entries) == 0 {
		p.slots = slices.DeleteFunc(slices.Clone(p.slots), func(other *slot) bool { return other == at })
		close(at.empty)
	}
}

func (e *pooled) stopExpiry() {
	if e.expiry != nil {
		e.expiry.Stop()
	}
}

// leave calls remove on the pool's goroutine.
func (p *pool) leave(e *pooled) { p.do(func() { p.remove(e) }) }

// slotOf returns the slot of the process with this ID, or nil. It returns nil for PID 0.
func (p *pool) slotOf(id processID) *slot {
	for _, at := range p.slots {
		if at.id == id && id.pid != 0 {
			return at
		}
	}
	return nil
}

// inspect returns a session's info and its process. The process is nil if the session has none.
func (p *pool) inspect(e *pooled) (cli.SessionInfo, cli.Process) {
	info := e.info()
	return info, p.process(processID{e.sandbox, e.agent, info.PID})
}

// info returns the session's info, or the zero value if the provider panics.
func (e *pooled) info() (info cli.SessionInfo) {
	_ = guard(e.agent, func() error { info = e.session.Info(); return nil })
	return info
}

// wanted reports whether the pool should keep the session. The pool should not keep it if the warmUp was cancelled, or
// if the session's agent was replaced.
func (e *pooled) wanted() bool {
	return (e.ahead == nil || e.ahead.ctx.Err() == nil) && (e.entry == nil || !e.entry.replaced)
}

// process returns the process with this ID. It returns nil if the launchers of the environment do not know the process.
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

func (p *pool) expireAfter(e *pooled) { p.do(func() { e.state = expiring }) }

// discard closes a session and waits until it is closed. If closing fails, discard returns an error, and the pool tries
// again later.
func (p *pool) discard(e *pooled) error {
	p.do(func() { p.beginClose(e) })
	return p.finishClose(e)
}

func (p *pool) discardInBackground(e *pooled) { p.do(func() { p.closeInBackground(e) }) }

func (p *pool) closeInBackground(e *pooled) {
	p.beginClose(e)
	go func() { _ = p.finishClose(e) }()
}

// beginClose marks an entry as closing. The closing counts as running work until finishClose or detach is called.
func (p *pool) beginClose(e *pooled) {
	e.state = closing
	p.work.Add(1)
}

// finishClose closes a session, and removes its entry when the process has ended.
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

// closeWait returns how long a provider may take to end a turn or a session.
func (p *pool) closeWait() time.Duration { return p.opts.Grace + cli.StopSlack }

// Pauses between two attempts to close a session. The pause doubles with each attempt.
const (
	closeAgain     = 30 * time.Second
	closeAgainMost = 5 * time.Minute
)

// awaitDead waits for the end of a process whose session could not be closed. It tries to close the session again until
// the service ends.
func (p *pool) awaitDead(e *pooled, process cli.Process) {
	pause := closeAgain
	again := time.NewTimer(pause)
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
			pause = min(2*pause, closeAgainMost)
			again.Reset(pause)
		}
	}
}

// giveUp makes turns stop waiting for a session whose opening takes too long.
func (p *pool) giveUp(e *pooled) {
	p.do(func() {
		if e.state == warming {
			e.state = stuck
		}
	})
}

// detachFrom detaches from a session and removes it from the pool. The session's process continues.
func (p *pool) detachFrom(e *pooled) {
	p.do(func() { p.beginClose(e) })
	p.detach(e)
}

func (p *pool) detach(e *pooled) {
	defer p.work.Done()
	_ = guard(e.agent, func() error { e.session.Detach(); return nil })
	p.leave(e)
}
