package turn

import (
	"slices"
	"sync"

	"ductor/cli"
)

// Pending is one thing that an agent waits for the user with.
type Pending struct {
	ID     cli.ApprovalID            // the same after a restart
	Call   cli.ToolID                // the tool that it is about; may be empty
	Event  cli.Event                 // an ApprovalAsked or a QuestionAsked
	Answer func(cli.Decision) []byte // the line that tells the agent
}

// Approvals are what an agent waits for the user with in one turn. Add, Release, Withdraw and Close are for the goroutine of
// the turn, as its Emitter is; the rest is safe for concurrent use. A nil Approvals is of a turn that no user attends: nothing
// is ever in it.
type Approvals struct {
	out *Emitter

	mu       sync.Mutex
	phase    approvalsPhase
	open     []Pending
	told     map[cli.ApprovalID]bool
	answered []cli.ApprovalID
}

type approvalsPhase int

const (
	taking approvalsPhase = iota
	held                  // what comes may have been answered since: the user is asked after Release
	closed
)

// NewApprovals makes the Approvals of a turn. What is answered already is not asked again.
func NewApprovals(out *Emitter, answered []cli.ApprovalID) *Approvals {
	return &Approvals{out: out, answered: slices.Clone(answered), told: map[cli.ApprovalID]bool{}}
}

// Hold keeps what is added from now on until Release: it is of the past of an adopted turn.
func (a *Approvals) Hold() {
	if a != nil {
		a.phase = held
	}
}

// Release asks the user what is open still.
func (a *Approvals) Release() {
	if a == nil {
		return
	}
	a.mu.Lock()
	if a.phase == held {
		a.phase = taking
	}
	a.mu.Unlock()
	a.tell()
}

// Add asks the user, unless that was answered or is open.
func (a *Approvals) Add(p Pending) {
	a.mu.Lock()
	known := slices.ContainsFunc(a.open, func(o Pending) bool { return o.ID == p.ID })
	if !known && a.phase != closed && !slices.Contains(a.answered, p.ID) {
		a.open = append(a.open, p)
	}
	a.mu.Unlock()
	a.tell()
}

// tell passes on what the user was not asked yet. The answer may come before Pass returns.
func (a *Approvals) tell() {
	a.mu.Lock()
	var news []Pending
	for _, p := range a.open {
		if a.phase == taking && !a.told[p.ID] {
			a.told[p.ID] = true
			news = append(news, p)
		}
	}
	a.mu.Unlock()
	for _, p := range news {
		a.out.Pass(p.Event)
	}
}

// Take removes what is called id, to answer it; false if the agent does not wait for it.
func (a *Approvals) Take(id cli.ApprovalID) (p Pending, ok bool) {
	if a == nil {
		return Pending{}, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.open, func(p Pending) bool { return p.ID == id })
	if i < 0 {
		return Pending{}, false
	}
	p = a.open[i]
	a.open = slices.Delete(a.open, i, i+1)
	a.answered = append(a.answered, id)
	return p, true
}

// Answered lists all that were answered.
func (a *Approvals) Answered() []cli.ApprovalID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.answered)
}

// Withdraw takes back what the agent waits for no more.
func (a *Approvals) Withdraw(gone func(Pending) bool) {
	for _, p := range a.remove(gone) {
		a.out.Pass(cli.ApprovalWithdrawn{ID: p.ID})
	}
}

// Close takes everything back, unless the turn goes on without ductor. Nothing is taken any more.
func (a *Approvals) Close(detached bool) {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.phase = closed
	a.mu.Unlock()
	if all := func(Pending) bool { return true }; detached {
		a.remove(all)
	} else {
		a.Withdraw(all)
	}
}

// remove removes what is gone, and gives what of that the user was asked.
func (a *Approvals) remove(gone func(Pending) bool) (told []Pending) {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = slices.DeleteFunc(a.open, func(p Pending) bool {
		if !gone(p) {
			return false
		}
		if a.told[p.ID] {
			told = append(told, p)
		}
		return true
	})
	return told
}

// Waiting is for Loop.Waiting: whoever answers wakes the loop.
func (a *Approvals) Waiting() bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.open) > 0
}
