package supervisor

import (
	"errors"
	"io"
	"strconv"
	"testing"
	"time"
)

func TestUpdateIsKnownAtOnceAndOnDiskSoon(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	spec := sh(`sleep 600`)
	spec.Labels = map[string]string{"turn": "0", "old": "yes"}
	spec.Limits.MaxAge = time.Hour
	run := start(t, root, spec)
	for i := range 100 {
		if err := run.Update(t.Context(), map[string]string{"turn": strconv.Itoa(i)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	info := root.look(t.Context(), run.ID())
	if len(info.Labels) != 1 || info.Labels["turn"] != "99" || info.Limits.MaxAge != time.Hour {
		t.Errorf("%+v", info)
	}
	if err := run.Update(t.Context(), nil, &Limits{MaxAge: time.Minute, MaxSpool: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	if info, err := run.Inspect(t.Context()); err != nil || len(info.Labels) != 0 || info.Limits.MaxAge != time.Minute || info.Limits.MaxSpool != 1<<20 {
		t.Errorf("%+v, %v", info, err)
	}
	eventually(t, "the disk follows", func() bool {
		rec, err := root.record(run.ID())
		return err == nil && len(rec.Labels) == 0 && rec.Limits.MaxAge == time.Minute
	})
}

// The labels that belong to a prompt are there before the prompt is, and need no answer for it.
func TestAnnouncedLabelsComeBeforeTheInput(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	spec := sh(`cat`)
	spec.Limits.KeepResult = 1
	run := start(t, root, spec)
	for i := range 50 {
		turn := strconv.Itoa(i)
		if err := run.Announce(map[string]string{"turn": turn}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(run.Stdin(), turn+"\n"); err != nil {
			t.Fatal(err)
		}
		if info := root.look(t.Context(), run.ID()); info.Labels["turn"] != turn {
			t.Fatalf("%+v after the input of turn %d", info, i)
		}
	}
	if err := run.Announce(map[string]string{"turn": "last"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := run.Stdin().Close(); err != nil {
		t.Fatal(err)
	}
	run.Detach()
	eventually(t, "the supervisor leaves", func() bool { return root.pool.reap() == 0 })
	if info := root.look(t.Context(), run.ID()); info.Labels["turn"] != "last" {
		t.Errorf("on disk: %+v", info)
	}
	if err := attach(t, root, run.ID(), 0).Announce(nil, nil); !errors.Is(err, ErrGone) {
		t.Errorf("%v", err)
	}
}

func TestOnlyTheOwnerUpdates(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	spec := sh(`sleep 600`)
	spec.Labels = map[string]string{"turn": "0"}
	run := start(t, root, spec)
	guest, err := root.Follow(t.Context(), run.ID(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var no *RemoteError
	if err := guest.Update(t.Context(), nil, &Limits{MaxAge: time.Nanosecond}); !errors.As(err, &no) {
		t.Errorf("%v", err)
	}
	second := attach(t, root, run.ID(), 0)
	if err := run.Update(t.Context(), nil, nil); err == nil {
		t.Error("a former owner may update")
	}
	if info, err := second.Inspect(t.Context()); err != nil || info.Labels["turn"] != "0" || !info.Alive {
		t.Errorf("%+v, %v", info, err)
	}
}

// BenchmarkUpdate is what a turn waits for before it may begin: with an answer, without one, and one after the
// other as it never is.
func BenchmarkUpdate(b *testing.B) {
	run := start(b, openRoot(b, benchOptions(0)), sh("sleep 600"))
	labels := map[string]string{"conversation": "-1001234567890/77", "agent": "claude", "session": "0b0e6a8e-3f1c-4f55-9d3a-1c9d2b7f4a11", "turn": "421", "offset": "123456"}
	limits := run.Info().Limits
	limits.MaxAge = time.Hour
	answered := func() error { return run.Update(b.Context(), labels, &limits) }
	for name, tc := range map[string]struct {
		pause time.Duration
		do    func() error
	}{
		"in between":     {2 * time.Millisecond, answered},
		"back to back":   {0, answered},
		"without answer": {2 * time.Millisecond, func() error { return run.Announce(labels, &limits) }},
	} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				time.Sleep(tc.pause)
				began := time.Now()
				if err := tc.do(); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			reportMedian(b, took)
		})
	}
}
