package outbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// record records the calls with their times since the start of the test.
type record struct {
	mu    sync.Mutex
	start time.Time
	calls []string
}

func newRecord() *record { return &record{start: time.Now()} }

func (r *record) note(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, fmt.Sprintf("%s %s", time.Since(r.start).Round(10*time.Millisecond), name))
}

func (r *record) run(name string) func(context.Context) error {
	return r.fail(name)
}

// fail returns a Run that fails with each of errs in turn and then succeeds.
func (r *record) fail(name string, errs ...error) func(context.Context) error {
	return func(context.Context) error {
		r.note(name)
		if len(errs) == 0 {
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		return err
	}
}

func (r *record) want(t *testing.T, calls ...string) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.calls, calls) {
		t.Errorf("calls were\n  %q, want\n  %q", r.calls, calls)
	}
}

// failure is an error with this trouble.
type failure struct{ Trouble }

func (f failure) Error() string { return fmt.Sprintf("trouble %d", f.Kind) }

func troubleOf(err error) Trouble {
	var f failure
	errors.As(err, &f)
	return f.Trouble
}

func limit(after time.Duration) error { return failure{Trouble{Kind: Limited, After: after}} }

var (
	notMade    = failure{Trouble{Kind: NotMade}}
	unclear    = failure{Trouble{Kind: Unclear}}
	errForGood = errors.New("refused for good")
)

// exact returns an outbox with Telegram's round numbers and no jitter.
func exact() *Outbox {
	return New(Options{
		Private: Rate{time.Second, 3}, Group: Rate{3 * time.Second, 5},
		Trouble: troubleOf,
		Jitter:  func() float64 { return 0 },
	})
}

// outboxTest runs a test under a fake clock and drains the outbox at its end.
func outboxTest(t *testing.T, f func(t *testing.T, o *Outbox, r *record)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := exact()
		f(t, o, newRecord())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_ = o.Drain(ctx) // some tests leave calls that cannot be made
	})
}

var (
	anna = Chat{ID: 1}
	ben  = Chat{ID: 2}
	club = Chat{ID: -3, Group: true}
)

func TestOutboxSpendsAChatsBudget(t *testing.T) {
	for _, c := range []struct {
		name string
		chat Chat
		want []string
	}{
		{"private: three at once, then one a second", anna, []string{"0s 0", "0s 1", "0s 2", "1s 3", "2s 4", "3s 5"}},
		{"group: five at once, then one in three seconds", club, []string{"0s 0", "0s 1", "0s 2", "0s 3", "0s 4", "3s 5"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
				for i := range 6 {
					o.Go(t.Context(), Call{Chat: c.chat, Run: r.run(fmt.Sprint(i))}, nil)
				}
				time.Sleep(10 * time.Second)
				r.want(t, c.want...)
			})
		})
	}
}

func TestOutboxOverallBudget(t *testing.T) {
	outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				if err := o.Do(t.Context(), Call{Chat: Chat{ID: int64(i + 10)}, Run: r.run("x")}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		r.mu.Lock()
		if n := len(r.calls); n != 30 {
			t.Errorf("%d calls at once, want the burst of 30", n)
		}
		r.mu.Unlock()
		wg.Wait()
		if took := time.Since(r.start); took < 990*time.Millisecond || took > 1100*time.Millisecond {
			t.Errorf("60 calls took %s, want about a second", took)
		}
	})
}

func TestOutboxAnswersBeforeEdits(t *testing.T) {
	outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
		for range 3 {
			o.Go(t.Context(), Call{Chat: anna, Run: r.run("spend")}, nil)
		}
		synctest.Wait()
		o.Go(t.Context(), Call{Chat: anna, Delivery: Newest, Priority: Streaming, Key: "card", Run: r.run("edit")}, nil)
		o.Go(t.Context(), Call{Chat: anna, Run: r.run("answer")}, nil)
		time.Sleep(5 * time.Second)
		r.want(t, "0s spend", "0s spend", "0s spend", "1s answer", "3s edit")
	})
}

func TestOutboxKeepsOnlyTheNewestEdit(t *testing.T) {
	outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
		for range 3 {
			o.Go(t.Context(), Call{Chat: anna, Run: r.run("spend")}, nil)
		}
		synctest.Wait()
		var first error
		o.Go(t.Context(), Call{Chat: anna, Delivery: Newest, Priority: Streaming, Key: "a", Run: r.run("a1")}, func(err error) { first = err })
		o.Go(t.Context(), Call{Chat: anna, Delivery: Newest, Priority: Streaming, Key: "b", Run: r.run("b1")}, nil)
		o.Go(t.Context(), Call{Chat: anna, Delivery: Newest, Priority: Streaming, Key: "a", Run: r.run("a2")}, nil)
		if !errors.Is(first, ErrReplaced) {
			t.Errorf("the older edit ended with %v, want ErrReplaced", first)
		}
		time.Sleep(5 * time.Second)
		r.want(t, "0s spend", "0s spend", "0s spend", "2s a2", "4s b1")
	})
}

func TestOutboxDropsWhatMayBeMissed(t *testing.T) {
	outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
		typing := func() error {
			return o.Do(t.Context(), Call{Chat: anna, Delivery: Optional, Priority: Indicator, Run: r.run("typing")})
		}
		if err := typing(); err != nil {
			t.Errorf("with budget: %v", err)
		}
		o.Go(t.Context(), Call{Chat: anna, Run: r.run("answer")}, nil)
		synctest.Wait()
		if err := typing(); !errors.Is(err, ErrDropped) {
			t.Errorf("with one call left, which the next answer may need: %v, want ErrDropped", err)
		}
		time.Sleep(time.Second)
		if err := typing(); err != nil {
			t.Errorf("with budget again: %v", err)
		}
		time.Sleep(time.Minute)
		r.want(t, "0s typing", "0s answer", "1s typing")
	})
}

func TestOutboxRateLimitSilencesOneChat(t *testing.T) {
	outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
		o.Go(t.Context(), Call{Chat: anna, Run: r.fail("anna1", limit(7*time.Second))}, nil)
		synctest.Wait()
		o.Go(t.Context(), Call{Chat: anna, Delivery: Newest, Priority: Streaming, Key: "c", Run: r.run("anna edit")}, nil)
		o.Go(t.Context(), Call{Chat: anna, Run: r.run("anna2")}, nil)
		o.Go(t.Context(), Call{Chat: anna, Delivery: Optional, Priority: Indicator, Run: r.run("typing")}, nil)
		o.Go(t.Context(), Call{Chat: ben, Run: r.run("ben")}, nil)
		time.Sleep(10 * time.Second)
		r.want(t, "0s anna1", "0s ben", "7s anna1", "8.1s anna2", "9.2s anna edit")
	})
}

func TestOutboxRateLimitOfTheBotSlowsAll(t *testing.T) {
	outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
		for i := range 25 {
			o.Go(t.Context(), Call{Chat: Chat{ID: int64(100 + i)}, Run: func(context.Context) error { return nil }}, nil)
		}
		synctest.Wait()
		o.Go(t.Context(), Call{Chat: anna, Run: r.fail("anna", limit(4*time.Second))}, nil)
		synctest.Wait()
		for i := range 3 {
			o.Go(t.Context(), Call{Chat: Chat{ID: int64(200 + i)}, Run: r.run("other")}, nil)
		}
		time.Sleep(6 * time.Second)
		r.want(t, "0s anna", "40ms other", "70ms other", "110ms other", "4s anna")
	})
}

func TestOutboxRetries(t *testing.T) {
	for _, c := range []struct {
		name       string
		chat       Chat
		delivery   Delivery
		idempotent bool
		err        error
		want       []string
	}{
		{"must, network down", anna, Ensured, false, notMade, []string{"0s x", "380ms x"}},
		{"must, unknown outcome", anna, Ensured, false, unclear, []string{"0s x"}},
		{"must, unknown outcome, idempotent", anna, Ensured, true, unclear, []string{"0s x", "380ms x"}},
		{"must, refused", anna, Ensured, true, errForGood, []string{"0s x"}},
		{"must, journal broken", anna, Ensured, true, errors.New("disk full"), []string{"0s x"}},
		{"edit, rate limit", anna, Newest, true, limit(2 * time.Second), []string{"0s x", "2s x"}},
		{"edit, network down", anna, Newest, true, notMade, []string{"0s x"}},
		{"shed, rate limit", anna, Optional, true, limit(2 * time.Second), []string{"0s x"}},
		{"direct, network down", Chat{}, Ensured, true, notMade, []string{"0s x", "380ms x"}},
		{"direct, rate limit", Chat{}, Ensured, true, limit(2 * time.Second), []string{"0s x", "2s x"}},
		{"direct, refused", Chat{}, Ensured, true, errForGood, []string{"0s x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
				err := o.Do(t.Context(), Call{Chat: c.chat, Delivery: c.delivery, Idempotent: c.idempotent, Run: r.fail("x", c.err)})
				if again := len(c.want) > 1; again != (err == nil) {
					t.Errorf("Do gave %v", err)
				}
				r.want(t, c.want...)
			})
		})
	}
}

func TestOutboxTriesForEverButNotInAHurry(t *testing.T) {
	outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
		var down atomic.Bool
		var tries atomic.Int64
		down.Store(true)
		done := make(chan error, 1)
		o.Go(t.Context(), Call{Chat: anna, Run: func(context.Context) error {
			tries.Add(1)
			if down.Load() {
				return notMade
			}
			return nil
		}}, func(err error) { done <- err })
		time.Sleep(12 * time.Hour)
		synctest.Wait()
		if n := tries.Load(); n < 1000 || n > 3000 {
			t.Errorf("%d tries in twelve hours", n)
		}
		down.Store(false)
		time.Sleep(lastPause)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestOutboxACallInTroubleHoldsUpItsKeyOnly(t *testing.T) {
	outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
		o.Go(t.Context(), Call{Chat: anna, Key: "topic1", Run: r.fail("one", notMade)}, nil)
		synctest.Wait()
		o.Go(t.Context(), Call{Chat: anna, Key: "topic1", Run: r.run("two")}, nil)
		o.Go(t.Context(), Call{Chat: anna, Key: "topic2", Run: r.run("other")}, nil)
		time.Sleep(3 * time.Second)
		r.want(t, "0s one", "0s other", "380ms one", "1s two")
	})
}

func TestOutboxASlowCallDelaysNoOtherChat(t *testing.T) {
	outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
		o.Go(t.Context(), Call{Chat: anna, Run: func(context.Context) error { time.Sleep(time.Hour); return nil }}, nil)
		synctest.Wait()
		if err := o.Do(t.Context(), Call{Chat: ben, Run: r.run("ben")}); err != nil {
			t.Error(err)
		}
		r.want(t, "0s ben")
	})
}

func TestOutboxCallersMayGiveUp(t *testing.T) {
	outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		o.Go(t.Context(), Call{Chat: anna, Run: r.fail("first", limit(time.Minute))}, nil)
		err := o.Do(ctx, Call{Chat: anna, Run: r.run("late")})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Do gave %v, want the caller's deadline", err)
		}
		time.Sleep(2 * time.Minute)
		r.want(t, "0s first", "1m0s first")
	})
}

func TestOutboxWaitsForWhatIsInFlight(t *testing.T) {
	outboxTest(t, func(t *testing.T, o *Outbox, _ *record) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ended := false
		err := o.Do(ctx, Call{Chat: anna, Run: func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = true
			return unclear
		}})
		if !ended || troubleOf(err).Kind != Unclear {
			t.Errorf("Do gave %v before its call ended", err)
		}
	})
}

func TestOutboxBoundsWhatWaits(t *testing.T) {
	outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
		full := 0
		for range 600 {
			o.Go(t.Context(), Call{Chat: anna, Run: r.fail("x", limit(time.Hour))}, func(err error) {
				if errors.Is(err, ErrFull) {
					full++
				}
			})
		}
		if full < 600-512-3 || full > 600-512 {
			t.Errorf("%d of 600 calls were turned away, want all beyond 512", full)
		}
	})
}

func TestOutboxDrainDeliversWhatMust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, r := exact(), newRecord()
		for i := range 5 {
			o.Go(t.Context(), Call{Chat: anna, Run: r.run(fmt.Sprint(i))}, nil)
		}
		var edit error
		o.Go(t.Context(), Call{Chat: anna, Delivery: Newest, Priority: Streaming, Key: "c", Run: r.run("edit")}, func(err error) { edit = err })
		if err := o.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		r.want(t, "0s 0", "0s 1", "0s 2", "1s 3", "2s 4")
		if !errors.Is(edit, ErrClosed) {
			t.Errorf("the edit ended with %v, want ErrClosed", edit)
		}
		if err := o.Do(t.Context(), Call{Chat: ben, Run: r.run("late")}); !errors.Is(err, ErrClosed) {
			t.Errorf("a call after the end gave %v, want ErrClosed", err)
		}
	})
}

// Drain waits for no delay, neither of a waiting call nor of a new one. It drops optional calls.
func TestOutboxDrainEndsDelays(t *testing.T) {
	outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
		o.Go(t.Context(), Call{Chat: anna, Delay: 10 * time.Second, Run: r.run("waits")}, nil)
		o.Go(t.Context(), Call{Chat: ben, Delay: 10 * time.Second, Delivery: Optional, Run: r.run("optional")}, nil)
		o.Go(t.Context(), Call{Chat: anna, Key: "flies", Run: func(context.Context) error {
			time.Sleep(time.Second)
			o.Go(t.Context(), Call{Chat: anna, Delay: 10 * time.Second, Run: r.run("comes")}, nil)
			return nil
		}}, nil)
		synctest.Wait() // the last one is in flight
		if err := o.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		r.want(t, "1s waits", "1s comes")
	})
}

func TestOutboxDrainHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := exact()
		var errs []error
		hang := func(ctx context.Context) error { <-ctx.Done(); return unclear }
		for range 3 {
			o.Go(t.Context(), Call{Chat: anna, Run: hang}, func(err error) { errs = append(errs, err) })
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		if err := o.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Drain gave %v", err)
		}
		if time.Since(start) != 5*time.Second || len(errs) != 3 {
			t.Errorf("after %s callers heard %v", time.Since(start), errs)
		}
	})
}

func TestOutboxSurvivesAPanic(t *testing.T) {
	outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
		if err := o.Do(t.Context(), Call{Chat: anna, Run: func(context.Context) error { panic("boom") }}); err == nil {
			t.Error("a panic went by as success")
		}
		if err := o.Do(t.Context(), Call{Chat: anna, Run: r.run("next")}); err != nil {
			t.Error(err)
		}
	})
}

func TestOutboxForgetsQuietChats(t *testing.T) {
	outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
		for i := range 3 * maxQueues {
			if err := o.Do(t.Context(), Call{Chat: Chat{ID: int64(i + 1)}, Run: func(context.Context) error { return nil }}); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(o.queues); n > maxQueues+1 {
			t.Errorf("%d chats are remembered", n)
		}
	})
}

func BenchmarkOutboxCall(b *testing.B) {
	o := New(Options{Private: Rate{1, 1 << 30}, Overall: Rate{1, 1 << 30}})
	run := func(context.Context) error { return nil }
	for b.Loop() {
		if err := o.Do(b.Context(), Call{Chat: anna, Run: run}); err != nil {
			b.Fatal(err)
		}
	}
	if err := o.Drain(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// Calls that may be dropped do not delay Drain, even if they are being made.
func TestOutboxDoesNotWaitOutALimitForAnEditAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := exact()
		var got error
		limited := newRecord().fail("edit", limit(time.Minute))
		o.Go(t.Context(), Call{Chat: anna, Delivery: Newest, Priority: Streaming, Key: "k", Run: func(ctx context.Context) error {
			time.Sleep(time.Second)
			return limited(ctx)
		}}, func(err error) { got = err })
		synctest.Wait()
		began := time.Now()
		if err := o.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > time.Second || !errors.Is(got, ErrClosed) {
			t.Errorf("it ended after %s, the edit with %v", took, got)
		}
	})
}

// A call is made before its caller continues, even on a single processor: a user waits for the call.
func TestACallStartsBeforeItsCallerContinues(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	out := New(Options{Overall: Rate{Every: time.Millisecond, Burst: 1000}})
	const chats = 100
	prompt := 0
	for chat := range chats {
		var made atomic.Bool
		out.Go(t.Context(), Call{Chat: ChatOf(int64(chat + 1)), Run: func(context.Context) error {
			made.Store(true)
			return nil
		}}, nil)
		if made.Load() {
			prompt++
		}
	}
	if prompt < chats/2 { // the scheduler sometimes prefers another goroutine
		t.Errorf("only %d of %d calls were made at once", prompt, chats)
	}
	if err := out.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}
