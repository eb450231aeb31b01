package service

import (
	"fmt"
	"slices"
	"time"

	"ductor/cli"
)

// How many processes of agents there may be: a limit of their number, and the memory that is left.

// unmeasured is what a process is taken to need before one of its agent was measured, in bytes.
const unmeasured = 250 << 20

// lookAgain is how often a turn that waits for memory looks whether there is some.
const lookAgain = time.Second

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
	position int // in the queue, from 1; 0 if it does not wait
}

// sentence is what the user reads.
func (s shortage) sentence() string {
	reason := "memory is short"
	if s.of == number {
		reason = "all agents are busy"
	}
	if s.position == 1 {
		return reason + "; this is next"
	}
	return fmt.Sprintf("%s; this is number %d in the queue", reason, s.position)
}

// waitsForUser records that the turn of a lent session waits for its user to decide an approval, or ceases to.
func (p *pool) waitsForUser(s *pooled, id cli.ApprovalID, waiting bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if waiting && p.lent[s] {
		s.approvals[id] = true
	} else {
		delete(s.approvals, id)
	}
	p.serve()
}

// turnEnded records that the turn of a lent session waits for no decision any more.
func (p *pool) turnEnded(s *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(s.approvals)
	p.serve()
}

// counts says whether a process takes one of the places that max allows: it does not while all its turns wait for
// their users. mu is held.
func (p *pool) counts(at *place) bool {
	working := at.users - at.idle - at.closing
	if working == 0 {
		return true
	}
	for s := range p.lent {
		if s.at == at && len(s.approvals) > 0 {
			working--
		}
	}
	return working > 0
}

// expected is how many bytes a process of the agent takes. mu is held.
func (p *pool) expected(agent cli.Agent) int64 {
	if seen := p.typical[agent]; seen > 0 {
		return seen
	}
	return unmeasured
}

// free says whether a process of the agent may be started. mu is held.
func (p *pool) free(agent cli.Agent) bool {
	counted := 0
	for at := range p.places {
		if p.counts(at) {
			counted++
		}
	}
	if p.max > 0 && counted >= p.max {
		return false
	}
	return p.available == nil || len(p.places) == 0 || p.left() >= p.expected(agent)
}

// left is how many bytes processes may still take besides those that are starting, which hold nothing yet.
// mu is held.
func (p *pool) left() int64 {
	left := p.available()
	for at := range p.places {
		if at.memory == 0 {
			left -= p.expected(at.agent)
		}
	}
	return left
}

// short says what keeps those who wait from getting a place once all processes have ended that are about to.
// mu is held.
func (p *pool) short() lack {
	living, counted := 0, 0
	var freed, wanted int64
	for at := range p.places {
		if at.going() {
			freed += at.memory
			continue
		}
		living++
		if p.counts(at) {
			counted++
		}
	}
	if p.max > 0 && counted+len(p.queue) > p.max {
		return number
	}
	for _, w := range p.queue {
		wanted += p.expected(w.agent)
	}
	if p.available == nil || wanted == 0 || living == 0 || p.left()+freed >= wanted {
		return enough
	}
	return memory
}

// shortageOf says what a waiter waits for. Its position is 0 where it has its place, or gets it in a moment.
func (p *pool) shortageOf(w *waiter) shortage {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.Index(p.queue, w)
	of := p.short()
	if at < 0 || of == enough {
		return shortage{}
	}
	return shortage{of: of, position: at + 1}
}
