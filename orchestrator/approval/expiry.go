package approval

import (
	"slices"
	"time"

	"ductor/orchestrator"
)

// show shows an approval to users. The caller holds mu, so that the chat gets the states of an approval in order.
func (r *Requests) show(approval orchestrator.Approval) {
	if approval.State != orchestrator.ApprovalOpen {
		if stop := r.timers[approval.ID]; stop != nil {
			stop()
			delete(r.timers, approval.ID)
		}
	}
	r.s.show(approval, false)
}

// rearm sets the timers of open approvals after a restart.
func (r *Requests) rearm() {
	open := r.open()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, approval := range open {
		r.arm(approval)
	}
}

func (r *Requests) open() []orchestrator.Approval {
	all, err := r.s.opts.Store.OpenApprovals(r.recordContext())
	if err != nil {
		r.log.Error("load open approvals", "err", err)
	}
	return slices.DeleteFunc(all, func(a orchestrator.Approval) bool { return a.Turn != r.turn.Turn.ID })
}

// arm sets the timer that denies an open approval at its deadline. The caller holds mu.
func (r *Requests) arm(approval orchestrator.Approval) {
	if r.timers[approval.ID] == nil {
		r.wait(approval, approval.Expires.Sub(r.s.opts.Now()))
	}
}

// expiryStep is the interval between checks of the wall clock. The checks are necessary because timers stop while the
// machine sleeps.
const expiryStep = time.Minute

// wait denies an approval after the given duration, or earlier if the wall clock reaches the deadline. So setting back
// the wall clock does not delay the denial. The caller holds mu.
func (r *Requests) wait(approval orchestrator.Approval, left time.Duration) {
	step := min(left, expiryStep, max(approval.Expires.Sub(r.s.opts.Now()), 0))
	r.timers[approval.ID] = r.s.opts.After(step, func() {
		leave, ok := r.s.opts.Enter()
		if !ok {
			return // ductor is ending; the next process of ductor denies the approval
		}
		defer leave()
		if left > step && r.s.opts.Now().Before(approval.Expires) {
			r.waitOn(approval, left-step)
			return
		}
		r.expire(approval.ID)
	})
}

func (r *Requests) waitOn(approval orchestrator.Approval, left time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timers[approval.ID] != nil {
		r.wait(approval, left)
	}
}

// expire denies an approval that no user decided in time. If the disk is full, expire runs again later.
func (r *Requests) expire(id orchestrator.ApprovalID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timers == nil {
		return
	}
	reason := expiredSentence
	if approval, err := r.s.opts.Store.FindApproval(r.recordContext(), id); err == nil && approval.Request == nil {
		reason = unansweredSentence
	}
	approval, won, err := r.close(id, orchestrator.Decision{State: orchestrator.ApprovalExpired, Reason: reason})
	if err != nil {
		r.s.retryOrLog(r.log, "expire an approval", err, func() { r.expire(id) })
		return
	}
	if !won {
		return
	}
	r.deliverOrLog(approval)
	r.show(approval)
}
