package turn

import (
	"slices"
	"sync"

	"ductor/cli"
)

// Pending is a request or question of an agent to the user. About is the dialect's data about it.
type Pending[A any] struct {
	ID    cli.ApprovalID // the same after a restart
	About A
	// Ask returns the event for the user: an ApprovalAsked or a QuestionAsked. It returns nil if the dialect has
	// answered the agent itself. The goroutine of the turn calls it once, when the user is to see the request.
	Ask func() cli.Event
}

// maxPending limits the open requests of a turn. Approvals drops requests beyond the limit.
const maxPending = 1 << 10

// Approvals contains the open requests of one turn. Only the goroutine of the turn may call Add, Release, Withdraw and
// Close, because they use its Emitter. The other methods are safe for concurrent use. A nil Approvals is always empty;
// it is for a turn without a user.
type Approvals[A any] struct {
	out *Emitter

	mu       sync.Mutex
	phase    approvalsPhase
	open     []Pending[A]
	told     map[cli.ApprovalID]bool
	answered []cli.ApprovalID
}

type approvalsPhase int

const (
	taking approvalsPhase = iota
	held                  // requests may already be answered, so users see them only after Release
	closed
)

// NewApprovals creates the Approvals of a turn. It ignores requests with the IDs in answered.
func NewApprovals[A any](out *Emitter, answered []cli.ApprovalID) *Approvals[A] {
	return &Approvals[A]{out: out, answered: slices.Clone(answered), told: map[cli.ApprovalID]bool{}}
}

// Hold delays all requests until Release. They are from the past of an adopted turn, and may be answered.
func (a *Approvals[A]) Hold() {
	if a != nil {
		a.phase = held
	}
}

// Release shows the user the requests that are still open.
func (a *Approvals[A]) Release() {
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

// Add shows the user a request, unless the request was answered or is already open.
func (a *Approvals[A]) Add(p Pending[A]) {
	a.mu.Lock()
	if a.index(p.ID) < 0 && len(a.open) < maxPending && a.phase != closed && !slices.Contains(a.answered, p.ID) {
		a.open = append(a.open, p)
	}
	a.mu.Unlock()
	a.tell()
}

// index returns the index of an open request, or -1. The caller holds mu.
func (a *Approvals[A]) index(id cli.ApprovalID) int {
	return slices.IndexFunc(a.open, func(p Pending[A]) bool { return p.ID == id })
}

// tell emits the requests that the user has not seen. The answer may come before Pass returns.
func (a *Approvals[A]) tell() {
	a.mu.Lock()
	var news []Pending[A]
	for _, p := range a.open {
		if a.phase == taking && !a.told[p.ID] {
			news = append(news, p)
		}
	}
	a.mu.Unlock()
	for _, p := range news {
		ev := p.Ask()
		a.mu.Lock()
		if ev != nil {
			a.told[p.ID] = true
		} else if i := a.index(p.ID); i >= 0 {
			a.open = slices.Delete(a.open, i, i+1)
		}
		a.mu.Unlock()
		if ev != nil {
			a.out.Pass(ev)
		}
	}
}

// Take removes the request with this ID, so that the caller can answer it. It returns false if there is no such
// request.
func (a *Approvals[A]) Take(id cli.ApprovalID) (about A, ok bool) {
	about, err := a.TakeIf(id, func(A) error { return nil })
	return about, err == nil
}

// TakeIf is like Take, but keeps the request if check returns an error. It returns ErrNotAsked if there is no such
// request.
func (a *Approvals[A]) TakeIf(id cli.ApprovalID, check func(A) error) (about A, err error) {
	if a == nil {
		return about, cli.ErrNotAsked
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.index(id)
	if i < 0 || !a.told[id] {
		return about, cli.ErrNotAsked
	}
	about = a.open[i].About
	if err := check(about); err != nil {
		return about, err
	}
	a.open = slices.Delete(a.open, i, i+1)
	a.answered = append(a.answered, id)
	return about, nil
}

// Answered returns the IDs of all answered requests.
func (a *Approvals[A]) Answered() []cli.ApprovalID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.answered)
}

// Withdraw removes the requests that match gone, because the agent no longer waits for them. It returns them.
func (a *Approvals[A]) Withdraw(gone func(A) bool) []A {
	removed, told := a.remove(gone)
	for _, id := range told {
		a.out.Pass(cli.ApprovalWithdrawn{ID: id})
	}
	return removed
}

// Close withdraws all requests, unless the turn continues without ductor. Afterwards Take finds none.
func (a *Approvals[A]) Close(detached bool) {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.phase = closed
	a.mu.Unlock()
	all := func(A) bool { return true }
	if detached {
		a.remove(all)
		return
	}
	a.Withdraw(all)
}

// remove removes the requests that match gone. told lists the removed requests that the user has seen.
func (a *Approvals[A]) remove(gone func(A) bool) (removed []A, told []cli.ApprovalID) {
	if a == nil {
		return nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = slices.DeleteFunc(a.open, func(p Pending[A]) bool {
		if !gone(p.About) {
			return false
		}
		removed = append(removed, p.About)
		if a.told[p.ID] {
			told = append(told, p.ID)
		}
		return true
	})
	return removed, told
}

// Waiting reports whether the agent waits for the user; see Loop.Waiting.
func (a *Approvals[A]) Waiting() bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.open) > 0
}
