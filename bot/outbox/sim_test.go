package outbox

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var seeds = flag.Int("seeds", 12, "how many hidden limits TestEveryHiddenLimitIsLearned tries")

// limiter is one of Telegram's hidden limits: a token bucket, or a window that lets a number of calls pass. Refusals
// can become longer with their number.
type limiter struct {
	rand    *rand.Rand
	group   bool
	bot     bool
	every   time.Duration
	burst   float64
	tokens  float64
	at      time.Time
	window  time.Duration // 0 for a bucket
	passed  []time.Time
	grows   bool
	refused int
	last    time.Time
	banned  time.Time
}

// change chooses another limit.
func (l *limiter) change(now time.Time) {
	l.window, l.grows = 0, l.rand.IntN(3) == 0
	l.every = time.Duration(500+l.rand.IntN(1500)) * time.Millisecond
	l.burst = float64(1 + l.rand.IntN(30))
	switch {
	case l.bot:
		l.every, l.burst = time.Second/time.Duration(15+l.rand.IntN(20)), float64(10+l.rand.IntN(40))
	case l.group:
		l.every, l.burst = time.Duration(2+l.rand.IntN(4))*time.Second, float64(1+l.rand.IntN(15))
	}
	if !l.bot && l.rand.IntN(2) == 0 {
		l.window = time.Duration(10+l.rand.IntN(50)) * time.Second
		l.burst = max(3, float64(l.window/l.every))
	}
	l.at, l.tokens = now, l.burst
}

// ask returns how long a call must wait, or 0 if it may pass.
func (l *limiter) ask(now time.Time) time.Duration {
	if now.Before(l.banned) {
		return l.refuse(now, l.banned.Sub(now))
	}
	if l.window > 0 {
		l.passed = slices.DeleteFunc(l.passed, func(at time.Time) bool { return now.Sub(at) >= l.window })
		if float64(len(l.passed)) >= l.burst {
			return l.refuse(now, l.window-now.Sub(l.passed[0]))
		}
		l.passed = append(l.passed, now)
		return 0
	}
	l.tokens = min(l.tokens+float64(now.Sub(l.at))/float64(l.every), l.burst)
	l.at = now
	if l.tokens < 1 {
		return l.refuse(now, time.Duration((1-l.tokens)*float64(l.every)))
	}
	l.tokens--
	return 0
}

// refuse returns the time to wait, in whole seconds as Telegram does.
func (l *limiter) refuse(now time.Time, wait time.Duration) time.Duration {
	if now.Sub(l.last) > time.Minute {
		l.refused = 0
	}
	l.last = now
	if l.grows {
		wait *= time.Duration(1 << min(l.refused, 4))
	}
	l.refused++
	if l.rand.IntN(500) == 0 { // a ban
		wait += time.Duration(1+l.rand.IntN(3)) * time.Hour
	}
	wait = wait.Truncate(time.Second) + time.Second
	if wait > time.Minute {
		l.banned = now.Add(wait)
	}
	return wait
}

// telegram has the hidden limits of some chats and of the bot, and counts calls.
type telegram struct {
	mu      sync.Mutex
	limits  map[int64]*limiter
	silent  map[int64]time.Time // end of a chat's silence; 0 is the bot
	calls   int
	refused int
}

func (s *telegram) call(chat int64) error {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	for _, scope := range []int64{chat, 0} {
		if wait := s.limits[scope].ask(now); wait > 0 {
			s.refused++
			s.silent[scope] = now.Add(wait)
			if scope == 0 {
				s.silent[chat] = now.Add(wait)
			}
			return limit(wait)
		}
	}
	return nil
}

// actor is a chat with one turn after another.
type actor struct {
	t     *testing.T
	rand  *rand.Rand
	out   *Outbox
	sky   *telegram
	chat  Chat
	shown []string // the chat's content, in order
	want  []string
	late  time.Duration // the greatest delay of a first text, without the silences that Telegram wanted
}

// awaited makes a call that a user waits for. It measures the call's delay without the silence that Telegram wanted.
func (a *actor) awaited(priority Priority, what string) {
	began := time.Now()
	quiet := time.Duration(0) // reported while this call waited
	a.want = append(a.want, what)
	err := a.out.Do(a.t.Context(), Call{Chat: a.chat, Priority: priority, Key: "turn", Run: func(context.Context) error {
		a.sky.mu.Lock()
		until := later(a.sky.silent[a.chat.ID], a.sky.silent[0])
		a.sky.mu.Unlock()
		quiet = max(quiet, until.Sub(began))
		if err := a.sky.call(a.chat.ID); err != nil {
			return err
		}
		a.shown = append(a.shown, what)
		return nil
	}})
	if err != nil {
		a.t.Errorf("chat %d: %s: %v", a.chat.ID, what, err)
	}
	if priority == Urgent {
		a.late = max(a.late, time.Since(began)-quiet)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// turn runs a turn: a first text, edits while it streams, and its end; it also makes some housekeeping calls for
// approvals.
func (a *actor) turn(n int) {
	a.awaited(Urgent, fmt.Sprintf("first %d", n))
	interval := time.Second
	if a.chat.Group {
		interval = 3 * time.Second
	}
	run := func(context.Context) error { return a.sky.call(a.chat.ID) }
	for range a.rand.IntN(30) {
		time.Sleep(interval)
		a.out.Go(a.t.Context(), Call{Chat: a.chat, Delivery: Newest, Priority: Streaming, Key: "card", Run: run}, nil)
		if a.rand.IntN(20) == 0 {
			a.awaited(Awaited, "approval")
			a.out.Go(a.t.Context(), Call{Chat: a.chat, Priority: Housekeeping, Key: "tidy", Idempotent: true, Run: run}, nil)
		}
	}
	a.out.Retract(a.chat, "card")
	a.awaited(Awaited, fmt.Sprintf("end %d", n))
}

// Whatever Telegram's limits are, and however they change: everything arrives in order, few calls are refused, and
// calls that a user waits for arrive soon, except during Telegram's silences.
func TestEveryHiddenLimitIsLearned(t *testing.T) {
	for seed := range *seeds {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulate(t, uint64(seed+1)) })
		})
	}
}

func simulate(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	derive := func() *rand.Rand { return rand.New(rand.NewPCG(random.Uint64(), 1)) }
	sky := &telegram{limits: map[int64]*limiter{}, silent: map[int64]time.Time{}}
	out := New(Options{Trouble: troubleOf, Jitter: derive().Float64})
	add := func(chat Chat) {
		l := &limiter{rand: derive(), group: chat.Group, bot: chat.ID == 0}
		l.change(time.Now())
		sky.limits[chat.ID] = l
	}
	add(Chat{})
	var actors []*actor
	chats := 1 + random.IntN(8)
	if random.IntN(8) == 0 {
		chats = 20 + random.IntN(20) // so they reach the limit of the bot
	}
	for i := range chats {
		chat := Chat{ID: int64(i + 1)}
		if random.IntN(4) == 0 {
			chat = Chat{ID: -int64(i + 1), Group: true}
		}
		add(chat)
		actors = append(actors, &actor{t: t, rand: derive(), out: out, sky: sky, chat: chat})
	}
	done := make(chan struct{})
	var work, weather sync.WaitGroup
	weather.Go(func() { // the limits change
		for r := derive(); ; {
			select {
			case <-done:
				return
			case <-time.After(time.Duration(10+r.IntN(50)) * time.Minute):
			}
			sky.mu.Lock()
			ids := []int64{0}
			for _, a := range actors {
				ids = append(ids, a.chat.ID)
			}
			sky.limits[ids[r.IntN(len(ids))]].change(time.Now())
			sky.mu.Unlock()
		}
	})
	for _, a := range actors {
		work.Go(func() {
			for n := range 1200 / (7 + chats) {
				time.Sleep(time.Duration(a.rand.IntN(20_000)) * time.Millisecond)
				a.turn(n)
			}
		})
	}
	work.Wait()
	close(done)
	weather.Wait()
	if err := out.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	for _, a := range actors {
		if !slices.Equal(a.shown, a.want) {
			t.Errorf("chat %d shows %d things, want %d", a.chat.ID, len(a.shown), len(a.want))
		}
		if a.late > time.Second {
			t.Errorf("in chat %d a first text came %s late", a.chat.ID, a.late)
		}
	}
	if share := float64(sky.refused) / float64(sky.calls); share > 0.03 {
		t.Errorf("%d of %d calls were refused: %.1f %%", sky.refused, sky.calls, 100*share)
	}
}
