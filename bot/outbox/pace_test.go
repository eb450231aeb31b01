package outbox

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ductor/orchestrator"
)

// strict answers as Telegram would, with a token bucket of its own.
type strict struct {
	every   time.Duration
	burst   float64
	tokens  float64
	at      time.Time
	calls   int
	refused int
}

func newStrict(every time.Duration, burst int) *strict {
	return &strict{every: every, burst: float64(burst), tokens: float64(burst), at: time.Now()}
}

func (s *strict) call(context.Context) error {
	now := time.Now()
	s.tokens = min(s.tokens+float64(now.Sub(s.at))/float64(s.every), s.burst)
	s.at = now
	s.calls++
	if s.tokens < 1 {
		s.refused++
		return limit(time.Second)
	}
	s.tokens--
	return nil
}

func TestOneCallASecondWithABurstOfThreeIsLearned(t *testing.T) {
	outboxTest(t, func(t *testing.T, _ *Outbox, _ *record) {
		o := New(Options{Trouble: troubleOf})
		telegram := newStrict(time.Second, 3)
		made := 0
		for range 40 { // bursts of six with quiet times between
			for range 6 {
				o.Go(t.Context(), Call{Chat: anna, Priority: Awaited, Run: telegram.call}, func(err error) {
					if err == nil {
						made++
					}
				})
			}
			time.Sleep(30 * time.Second)
		}
		synctest.Wait()
		if made != 240 {
			t.Errorf("%d of 240 calls were made", made)
		}
		if telegram.refused > 7 {
			t.Errorf("%d of %d calls were refused, want a handful", telegram.refused, telegram.calls)
		}
		if err := o.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A user who replies as soon as the answer is there waits one second each time, because of the budget, and never for
// tokens that earlier calls borrowed.
func TestUrgentCallsBackToBackWaitOneSecondAtMost(t *testing.T) {
	outboxTest(t, func(t *testing.T, _ *Outbox, r *record) {
		o := New(Options{Trouble: troubleOf})
		for n := range 200 {
			start := time.Now()
			if err := o.Do(t.Context(), Call{Chat: anna, Priority: Urgent, Run: r.run("x")}); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(start); waited > time.Second+10*time.Millisecond {
				t.Fatalf("call %d waited %s", n, waited)
			}
		}
		if err := o.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAChatRecoversSlowly(t *testing.T) {
	outboxTest(t, func(t *testing.T, _ *Outbox, r *record) {
		o := New(Options{Trouble: troubleOf})
		for range 25 { // the burst, and five at the rate
			if err := o.Do(t.Context(), Call{Chat: anna, Run: r.run("x")}); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.Do(t.Context(), Call{Chat: anna, Run: r.fail("x", limit(5*time.Second))}); err != nil {
			t.Fatal(err)
		}
		if s := o.Slowed(anna.ID); s.Every != 1500*time.Millisecond {
			t.Errorf("after a refusal: %+v", s)
		}
		calls := 0
		for ; o.Slowed(anna.ID).Every > 0; calls++ {
			if err := o.Do(t.Context(), Call{Chat: anna, Run: r.run("x")}); err != nil {
				t.Fatal(err)
			}
		}
		if calls < 2*stepCalls || calls > 6*stepCalls {
			t.Errorf("the rate was back to normal after %d calls", calls)
		}
		if err := o.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// ledger is a Store in memory.
type ledger map[int64]orchestrator.SendRate

func (l ledger) SendRates(context.Context) (all []orchestrator.SendRate, _ error) {
	for _, r := range l {
		all = append(all, r)
	}
	return all, nil
}

func (l ledger) SaveSendRate(_ context.Context, r orchestrator.SendRate) error {
	l[r.Chat] = r
	return nil
}

func TestWhatWasLearnedOutlivesARestart(t *testing.T) {
	outboxTest(t, func(t *testing.T, _ *Outbox, r *record) {
		kept := ledger{}
		before := New(Options{Trouble: troubleOf, Store: kept, Jitter: func() float64 { return 0 }})
		before.Go(t.Context(), Call{Chat: anna, Run: r.fail("before", limit(time.Hour))}, nil)
		synctest.Wait()
		over, cancel := context.WithCancel(t.Context())
		cancel()
		_ = before.Drain(over) // the call waits for the end of the silence

		after := New(Options{Trouble: troubleOf, Store: kept})
		if err := after.Restore(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := after.Slowed(anna.ID); s.Silence != time.Hour || s.Every == 0 {
			t.Errorf("after the restart: %+v", s)
		}
		if err := after.Do(t.Context(), Call{Chat: anna, Run: r.run("after")}); err != nil {
			t.Fatal(err)
		}
		r.want(t, "0s before", "1h0m0s after")
		if err := after.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A silence that started while the clock was hours ahead lasts as long as Telegram wanted, not until that time comes
// again.
func TestAClockThatWasSetBackProlongsNoSilence(t *testing.T) {
	outboxTest(t, func(t *testing.T, _ *Outbox, r *record) {
		ahead := time.Now().Add(5 * time.Hour)
		kept := ledger{}
		for _, chat := range []int64{0, anna.ID} {
			kept[chat] = orchestrator.SendRate{Chat: chat, Every: time.Second, Burst: 20, Told: ahead, Until: ahead.Add(20 * time.Second)}
		}
		after := New(Options{Trouble: troubleOf, Store: kept})
		if err := after.Restore(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := after.Do(t.Context(), Call{Chat: anna, Run: r.run("after")}); err != nil {
			t.Fatal(err)
		}
		r.want(t, "20s after")
		if err := after.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestCallsOfAChatGoByPriority(t *testing.T) {
	outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
		for range 3 {
			o.Go(t.Context(), Call{Chat: anna, Run: r.run("spend")}, nil)
		}
		synctest.Wait()
		for _, c := range []struct {
			name     string
			priority Priority
		}{{"tidy", Housekeeping}, {"edit", Streaming}, {"first text", Awaited}, {"abort", Urgent}} {
			o.Go(t.Context(), Call{Chat: anna, Priority: c.priority, Key: c.name, Run: r.run(c.name)}, nil)
		}
		time.Sleep(time.Minute)
		r.want(t, "0s spend", "0s spend", "0s spend", "900ms abort", "2s first text", "4s edit", "5s tidy")
	})
}

func TestEditsLeaveTheBurstToWhatUsersWaitFor(t *testing.T) {
	outboxTest(t, func(t *testing.T, _ *Outbox, r *record) {
		o := New(Options{Trouble: troubleOf})
		defer func() { _ = o.Drain(t.Context()) }()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		edits := 0
		for ctx.Err() == nil {
			if err := o.Do(ctx, Call{Chat: anna, Delivery: Newest, Priority: Streaming, Key: "card", Run: func(context.Context) error { return nil }}); err == nil {
				edits++
			}
		}
		if edits < 18 || edits > 21 {
			t.Errorf("%d edits in twenty seconds, want one a second", edits)
		}
		began := time.Now()
		for i := range 18 {
			if err := o.Do(t.Context(), Call{Chat: anna, Priority: Awaited, Run: r.run(fmt.Sprint(i))}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("18 replies after them took %s", took)
		}
	})
}

func TestAReceiptIsSentOnlyWhereNothingElseIs(t *testing.T) {
	for name, c := range map[string]struct {
		answer time.Duration // 0: no answer comes
		want   []string
	}{
		"no answer":       {0, []string{"700ms receipt"}},
		"a quick answer":  {500 * time.Millisecond, []string{"500ms answer"}},
		"a slower answer": {800 * time.Millisecond, []string{"700ms receipt", "800ms answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
				var receipt error
				o.Go(t.Context(), Call{Chat: anna, Delivery: Optional, Priority: Indicator, Delay: 700 * time.Millisecond, Run: r.run("receipt")},
					func(err error) { receipt = err })
				if c.answer > 0 {
					time.Sleep(c.answer)
					o.Go(t.Context(), Call{Chat: anna, Priority: Awaited, Run: r.run("answer")}, nil)
				}
				time.Sleep(5 * time.Second)
				r.want(t, c.want...)
				if sent := slices.Contains(c.want, "700ms receipt"); sent != (receipt == nil) {
					t.Errorf("the receipt ended with %v", receipt)
				}
			})
		})
	}
}

// Only calls use budget: a call that turns out to be unnecessary costs nothing.
func TestACallThatIsNotNeededCostsNothing(t *testing.T) {
	outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
		for range 10 {
			err := o.Do(t.Context(), Call{Chat: anna, Run: func(context.Context) error { return ErrNotNeeded }})
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			o.Go(t.Context(), Call{Chat: anna, Run: r.run(fmt.Sprint(i))}, nil)
		}
		r.want(t, "0s 0", "0s 1", "0s 2")
	})
}

func TestADelayedCallHoldsUpItsKeyOnly(t *testing.T) {
	outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
		o.Go(t.Context(), Call{Chat: anna, Key: "queued", Delay: time.Second, Run: r.run("queued")}, nil)
		o.Go(t.Context(), Call{Chat: anna, Key: "queued", Priority: Urgent, Run: r.run("after it")}, nil)
		o.Go(t.Context(), Call{Chat: anna, Key: "other", Run: r.run("other")}, nil)
		time.Sleep(5 * time.Second)
		r.want(t, "0s other", "1s queued", "1s after it")
	})
}
