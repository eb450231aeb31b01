package approval

import (
	"time"

	"ductor/orchestrator"
)

// show is called with mu held, so that an ask is shown as it changes.
func (r *Requests) show(ask orchestrator.Ask) {
	if ask.State != orchestrator.AskOpen {
		if stop := r.timers[ask.ID]; stop != nil {
			stop()
			delete(r.timers, ask.ID)
		}
	}
	r.s.show(ask)
}

// rearm sets the timers of asks that the previous process showed.
func (r *Requests) rearm() {
	open, err := r.s.opts.Store.OpenAsks(r.keep())
	if err != nil {
		r.log.Error("load open asks", "err", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ask := range open {
		if ask.Turn == r.turn.Turn.ID {
			r.arm(ask)
		}
	}
}

// arm sets the timer of an open ask. mu is held.
func (r *Requests) arm(ask orchestrator.Ask) {
	if r.timers[ask.ID] == nil {
		r.wait(ask, ask.Expires.Sub(r.s.opts.Now()))
	}
}

// expiryStep is how often the wall clock is looked at: timers stand still while the machine sleeps.
const expiryStep = time.Minute

// wait expires an ask after left, or as soon as it is seen that its time is over: also where the clock is set back
// it takes no longer. mu is held.
func (r *Requests) wait(ask orchestrator.Ask, left time.Duration) {
	step := min(left, expiryStep, max(ask.Expires.Sub(r.s.opts.Now()), 0))
	r.timers[ask.ID] = r.s.opts.After(step, func() {
		leave, ok := r.s.opts.Enter()
		if !ok {
			return // it is denied after the next start
		}
		defer leave()
		if left > step && r.s.opts.Now().Before(ask.Expires) {
			r.waitOn(ask, left-step)
			return
		}
		r.expire(ask.ID)
	})
}

func (r *Requests) waitOn(ask orchestrator.Ask, left time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timers[ask.ID] != nil {
		r.wait(ask, left)
	}
}

// expire denies an ask that no user decided.
func (r *Requests) expire(id orchestrator.AskID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timers == nil {
		return
	}
	reason := expiredSentence
	if ask, err := r.s.opts.Store.FindAsk(r.keep(), id); err == nil && ask.Approval == nil {
		reason = unansweredSentence
	}
	ask, won, err := r.s.opts.Store.DecideAsk(r.keep(), orchestrator.AskDecision{Ask: id, State: orchestrator.AskExpired, Reason: reason, At: r.s.opts.Now()})
	if err != nil {
		r.log.Error("let an ask expire", "err", err)
		return
	}
	if !won {
		return
	}
	if _, err := r.tell(ask); err != nil {
		r.log.Error("hand a decision to the agent", "ask", ask.Requests, "err", err)
	}
	r.show(ask)
}
