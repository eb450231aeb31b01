package supervisor

import (
	"sync"
	"time"
)

// patience is how long the agent waits for an owner that takes nothing before output is dropped instead.
const patience = 30 * time.Second

// publisher is where the agent's words meet the clients': one lock over the journal, standard error, the exit and
// every client's place in them. Each client reads on a goroutine of its own, from its own place, so that
// nothing comes twice and nothing is skipped whoever comes and goes.
type publisher struct {
	mu   sync.Mutex
	cond *sync.Cond

	out   *journal
	err   *tail
	exit  *Status // once the agent exited
	ended bool    // nothing follows out.end

	spoken  timeIndex
	owner   *place
	hasten  bool        // the owner's time is up: it may lose what it did not take
	trouble func(error) // called with mu held
}

// place is how far one client is. All under the publisher's mu.
type place struct {
	offset  int64 // the next byte to send
	limit   int64 // the client takes bytes before this
	errSeen int64
	told    bool // of the exit
	toldEnd bool // of the output
	closed  bool
	takenBy int // process that took over, once somebody did
	gone    bool
}

func newPublisher(out *journal, err *tail, trouble func(error)) *publisher {
	f := &publisher{out: out, err: err, trouble: trouble}
	f.cond = sync.NewCond(&f.mu)
	return f
}

// output takes what the agent printed, at most chunkSize of it, and waits while that would take something
// away from an owner that is behind.
func (f *publisher) output(p []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spoken.note(f.out.end, sinceBoot())
	f.awaitOwner(len(p))
	before := f.out.failure
	f.out.append(p)
	if f.out.failure != nil && f.out.failure != before {
		f.trouble(f.out.failure)
	}
	f.cond.Broadcast()
}

// resize changes how much is kept on disk.
func (f *publisher) resize(maxBytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.out.max = maxBytes
}

// times is when the output so far was printed; both arguments are now.
func (f *publisher) times(boot time.Duration, wall time.Time) Times {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.spoken.times(f.out.end, boot, wall)
}

func (f *publisher) awaitOwner(n int) {
	if f.owner == nil || !f.out.wouldLose(f.owner.offset, n) {
		return
	}
	for f.owner != nil && !f.hasten && f.out.wouldLose(f.owner.offset, n) {
		at, owner := f.owner.offset, f.owner
		timer := time.AfterFunc(patience, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.hasten = f.owner == owner && owner.offset == at
			f.cond.Broadcast()
		})
		for f.owner == owner && owner.offset == at && !f.hasten {
			f.cond.Wait()
		}
		timer.Stop()
	}
}

// stderr takes what the agent complained about.
func (f *publisher) stderr(p []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.err.append(p); err != nil {
		f.trouble(err)
	}
	f.cond.Broadcast()
}

// end is called when no output follows.
func (f *publisher) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.out.closeFile()
	f.err.close()
	f.cond.Broadcast()
}

// exited is called once the agent is dead and its standard error was read, and again when more is known.
func (f *publisher) exited(s Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Stderr = string(f.err.last(stderrKept))
	f.exit = &s
	f.cond.Broadcast()
}

// own makes p the owner's place; whoever was it before is told.
func (f *publisher) own(p *place, pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.owner != nil {
		f.owner.takenBy, f.owner.gone = pid, true
	}
	f.owner, f.hasten = p, false
	f.cond.Broadcast()
}

// leave ends a client's place. It says whether the client was the owner.
func (f *publisher) leave(p *place) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p.closed = true
	was := f.owner == p
	if was {
		f.owner, f.hasten = nil, false
	}
	f.cond.Broadcast()
	return was
}

// allow lets output up to limit be sent to p.
func (f *publisher) allow(p *place, limit int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p.limit = max(p.limit, limit)
	f.hasten = f.hasten && f.owner != p
	f.cond.Broadcast()
}

// item is the next thing to tell a client: exactly one of it.
type item struct {
	data   []byte // output that begins at offset
	offset int64
	lost   *lossNote
	stderr []byte
	exit   *Status
	end    bool // of the output, at offset; with the exit, if that is known
	taken  int  // by this process
	closed bool
}

// next waits for what is to be told at p. Output is read into buf. After end it waits for closed.
func (f *publisher) next(p *place, buf []byte) item {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		if it, ok := f.ready(p, buf); ok {
			return it
		}
		f.cond.Wait()
	}
}

func (f *publisher) ready(p *place, buf []byte) (item, bool) {
	switch {
	case p.closed:
		return item{closed: true}, true
	case p.gone:
		return item{taken: p.takenBy}, true
	case f.err.total > p.errSeen:
		data := append(buf[:0], f.err.since(p.errSeen)...)
		p.errSeen = f.err.total
		return item{stderr: data}, true
	case f.exit != nil && !p.told:
		p.told = true
		return item{exit: f.exit}, true
	case p.offset < f.out.end:
		return f.nextOutput(p, buf)
	case f.ended && !p.toldEnd:
		p.toldEnd = true
		return item{end: true, offset: p.offset, exit: f.exit}, true
	}
	return item{}, false
}

func (f *publisher) nextOutput(p *place, buf []byte) (item, bool) {
	for p.offset < f.out.end {
		at, damaged := f.out.available(p.offset)
		if at > p.offset {
			note := &lossNote{From: p.offset, To: at, Damaged: damaged}
			p.offset = at
			return item{lost: note}, true
		}
		room := min(p.limit-p.offset, int64(len(buf)))
		if room <= 0 {
			return item{}, false
		}
		if n := f.out.readAt(buf[:room], p.offset); n > 0 {
			it := item{data: buf[:n], offset: p.offset}
			p.offset += int64(n)
			f.cond.Broadcast() // the agent may wait for this
			return it, true
		}
	}
	return item{}, false // a loss up to the very end: available said so
}
