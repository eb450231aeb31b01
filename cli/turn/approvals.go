package turn

import (
	"slices"
	"sync"

	"ductor/cli"
)

// Pending is an agent's request for an approval, or its question to the user. About contains the provider's data.
type Pending[A any] struct {
	ID    cli.ApprovalID // does not change when ductor restarts
	About A
	// Ask returns the event that shows the request to the user: an ApprovalAsked or a QuestionAsked. It returns nil if
	// the provider has already sent the agent an answer by itself. The turn's goroutine calls Ask once.
	Ask func() cli.Event
}

// maxPending limits the open requests of a turn. Approvals ignores further ones.
const maxPending = 1 << 10

// Approvals contains the open requests of one turn. Add, Release, Withdraw and Close use the turn's Emitter, so only
// the turn's goroutine may call them. The other methods are safe for concurrent use. For a turn without a user,
// *Approvals may be nil: it then never contains a request.
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
	held                  // Hold was called, but not Release; users see no requests
	closed
)

// NewApprovals creates the Approvals of a turn. It ignores requests whose IDs are in answered.
func NewApprovals[A any](out *Emitter, answered []cli.ApprovalID) *Approvals[A] {
	return &Approvals[A]{out: out, answered: slices.Clone(answered), told: map[cli.ApprovalID]bool{}}
}

// Hold makes Approvals show no requests to users until Release is called. Providers call Hold when ductor continues a
// turn after a restart: a request in the turn's old output may have been answered already.
func (a *Approvals[A]) Hold() {
	if a != nil {
		a.phase = held
	}
}

// Release shows the user the open requests. From now on, Add shows new requests at once.
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

// Add shows the user a request. It ignores a request that was answered or is already open.
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

// tell emits the open requests that the user has not seen. It does not hold mu while it emits a request, because TakeIf
// needs mu if the user answers before Pass returns.
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

// Take removes the request with this ID, so that the caller can answer it. It returns false if the user has seen no
// such request.
func (a *Approvals[A]) Take(id cli.ApprovalID) (about A, ok bool) {
	about, err := a.TakeIf(id, func(A) error { return nil })
	return about, err == nil
}

// TakeIf is like Take if check returns nil. If check returns an error, TakeIf leaves the request open and returns this
// error. TakeIf returns ErrNotAsked if the user has seen no request with this ID.
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

// Answered returns the IDs of all requests that were answered.
func (a *Approvals[A]) Answered() []cli.ApprovalID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.answered)
}

// Withdraw removes and returns the requests for which obsolete returns true, because the agent no longer waits for
// them.
func (a *Approvals[A]) Withdraw(obsolete func(A) bool) []A {
	removed, told := a.remove(obsolete)
	for _, id := range told {
		a.out.Pass(cli.ApprovalWithdrawn{ID: id})
	}
	return removed
}

// Close withdraws all requests. If ductor has detached from the turn, the requests remain open in the agent, and Close
// only forgets them. Afterwards, Take finds no request.
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

// remove removes the requests for which obsolete returns true. It returns these requests, and the IDs of those that the
// user has seen.
func (a *Approvals[A]) remove(obsolete func(A) bool) (removed []A, seen []cli.ApprovalID) {
	if a == nil {
		return nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = slices.DeleteFunc(a.open, func(p Pending[A]) bool {
		if !obsolete(p.About) {
			return false
		}
		removed = append(removed, p.About)
		if a.told[p.ID] {
			seen = append(seen, p.ID)
		}
		return true
	})
	return removed, seen
}

// Waiting reports whether a request is open; see Loop.Waiting.
func (a *Approvals[A]) Waiting() bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.open) > 0
}
