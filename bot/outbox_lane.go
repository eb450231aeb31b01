package bot

import (
	"context"
	"slices"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of what may wait per chat besides MustDeliver calls, and of chats remembered for their budgets.
const (
	maxEdits = 64
	maxShed  = 4
	maxLanes = 1024
)

// job is a call on its way.
type job struct {
	Call
	ctx       context.Context
	done      func(error)
	unwatch   func() bool // stops watching ctx
	lane      *outLane
	tries     int
	notBefore time.Time // MustDeliver: end of the backoff
}

// end tells each caller, once the outbox's mutex is not held.
func end(jobs []*job, err error) {
	for _, j := range jobs {
		if j.unwatch != nil {
			j.unwatch()
		}
		j.done(err)
	}
}

// outLane is what waits for one chat. The outbox's mutex guards it.
type outLane struct {
	out    *Outbox
	bucket *rate.Limiter
	frozen time.Time // until then Telegram told us to be silent here

	must   []*job
	edits  []*job
	shed   []*job
	flying *job // being made; in none of the queues
	runs   bool
	wake   chan struct{} // capacity 1: something changed
}

// post puts a call into its chat's lane.
func (o *Outbox) post(j *job) {
	o.mu.Lock()
	if o.life.Err() != nil || o.closed && j.Class != MustDeliver {
		o.mu.Unlock()
		end([]*job{j}, ErrClosed)
		return
	}
	l := o.laneOf(j.Chat)
	j.lane = l
	if j.ctx.Done() != nil {
		j.unwatch = context.AfterFunc(j.ctx, func() { o.withdraw(j) })
	}
	ended, err := l.put(j, time.Now())
	if !l.runs && l.waiting() > 0 {
		l.runs = true
		o.wg.Add(1)
		go l.run()
	}
	o.mu.Unlock()
	l.signal()
	if ended != nil {
		end([]*job{ended}, err)
	}
}

func (o *Outbox) laneOf(chat ChatRef) *outLane {
	if l := o.lanes[chat.ID]; l != nil {
		return l
	}
	if len(o.lanes) >= maxLanes {
		now := time.Now()
		for id, l := range o.lanes {
			if l.forgettable(now) {
				delete(o.lanes, id)
			}
		}
	}
	b := o.opts.Private
	if chat.Group {
		b = o.opts.Group
	}
	l := &outLane{out: o, bucket: rate.NewLimiter(rate.Every(b.Every), b.Burst), wake: make(chan struct{}, 1)}
	o.lanes[chat.ID] = l
	return l
}

// forgettable says that the lane remembers nothing a new one would not know.
func (l *outLane) forgettable(now time.Time) bool {
	return !l.runs && now.After(l.frozen) && l.bucket.TokensAt(now) >= float64(l.bucket.Burst())
}

func (l *outLane) signal() { signal(l.wake) }

// put queues j. If a job ends by that, it is returned with the reason: j itself or one it replaces.
func (l *outLane) put(j *job, now time.Time) (ended *job, err error) {
	switch j.Class {
	case Coalesce:
		for i, old := range l.edits {
			if old.Key == j.Key {
				l.edits[i] = j
				return old, ErrReplaced
			}
		}
		if len(l.edits) >= maxEdits {
			return j, ErrFull
		}
		l.edits = append(l.edits, j)
	case Shed:
		busy := len(l.must)+len(l.edits) > 0 || len(l.shed) >= maxShed || l.flying != nil && l.flying.Class != Shed
		if busy || l.budgetWait(now, Shed) > 0 {
			return j, ErrShed
		}
		l.shed = append(l.shed, j)
	default:
		if len(l.must) >= l.out.opts.MaxWait {
			return j, ErrFull
		}
		l.must = append(l.must, j)
	}
	return nil, nil
}

// putBack queues a job that is to be made again. It is false for an edit that a newer one replaced.
func (l *outLane) putBack(j *job) bool {
	if j.Class != Coalesce {
		l.must = slices.Insert(l.must, 0, j)
		return true
	}
	if slices.ContainsFunc(l.edits, func(e *job) bool { return e.Key == j.Key }) {
		return false
	}
	l.edits = slices.Insert(l.edits, 0, j)
	return true
}

func (l *outLane) waiting() int { return len(l.must) + len(l.edits) + len(l.shed) }

// withdraw ends a job whose caller gave up, unless it is in flight or decided.
func (o *Outbox) withdraw(j *job) {
	o.mu.Lock()
	removed := j.lane.remove(j)
	o.mu.Unlock()
	if removed {
		j.lane.signal()
		end([]*job{j}, context.Cause(j.ctx))
	}
}

func (l *outLane) remove(j *job) bool {
	for _, q := range []*[]*job{&l.must, &l.edits, &l.shed} {
		if i := slices.Index(*q, j); i >= 0 {
			*q = slices.Delete(*q, i, i+1)
			return true
		}
	}
	return false
}

// dropOptional empties the queues of what may be missed.
func (l *outLane) dropOptional() []*job {
	dropped := slices.Concat(l.edits, l.shed)
	l.edits, l.shed = nil, nil
	return dropped
}

// budgetWait is how long the chat's own budget keeps back a call of a class. What may be missed leaves a
// third of the budget to what comes next.
func (l *outLane) budgetWait(now time.Time, class Class) time.Duration {
	if d := l.frozen.Sub(now); d > 0 {
		return d
	}
	need := 1.0
	if class == Shed {
		need += float64(l.bucket.Burst() / 3)
	}
	if lack := need - l.bucket.TokensAt(now); lack > 0 {
		return bucketWait(lack, l.bucket.Limit())
	}
	return 0
}

// pick is the job to make next: the first must-deliver call that neither waits out a backoff nor stands
// behind one of its key that does; else the first edit; else what may be shed. wait is the time until the
// first backoff ends, 0 for none.
func (l *outLane) pick(now time.Time) (next *job, wait time.Duration) {
	var held []string
	for _, j := range l.must {
		if slices.Contains(held, j.Key) {
			continue
		}
		d := j.notBefore.Sub(now)
		if d <= 0 {
			return j, 0
		}
		held = append(held, j.Key)
		if wait == 0 || d < wait {
			wait = d
		}
	}
	if len(l.edits) > 0 {
		return l.edits[0], wait
	}
	if len(l.shed) > 0 {
		return l.shed[0], wait
	}
	return nil, wait
}

// next takes the next job and the budget for it. With no job, wait says when to look again, 0 meaning that
// nothing waits. Sheds without budget are dropped.
func (l *outLane) next(now time.Time) (j *job, wait time.Duration, dropped []*job) {
	for {
		j, backoff := l.pick(now)
		if j == nil {
			return nil, backoff, dropped
		}
		wait := l.budgetWait(now, j.Class)
		if wait == 0 {
			wait = l.out.overall.take(now, j.Class)
		}
		if wait == 0 {
			l.bucket.AllowN(now, 1)
			l.remove(j)
			return j, 0, dropped
		}
		if j.Class != Shed {
			if backoff > 0 {
				wait = min(wait, backoff)
			}
			return nil, wait, dropped
		}
		l.remove(j)
		dropped = append(dropped, j)
	}
}

// run makes the lane's calls until none waits.
func (l *outLane) run() {
	o := l.out
	defer o.wg.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		o.mu.Lock()
		j, wait, dropped := l.next(time.Now())
		l.flying, l.runs = j, j != nil || wait > 0
		runs := l.runs
		o.mu.Unlock()
		end(dropped, ErrShed)
		switch {
		case j != nil:
			l.make(j)
			continue
		case !runs:
			return
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-l.wake:
		case <-o.life.Done():
			l.giveUp()
			return
		}
	}
}

// giveUp ends everything that waits.
func (l *outLane) giveUp() {
	l.out.mu.Lock()
	left := slices.Concat(l.must, l.edits, l.shed)
	l.must, l.edits, l.shed, l.runs = nil, nil, nil, false
	l.out.mu.Unlock()
	end(left, ErrClosed)
}
