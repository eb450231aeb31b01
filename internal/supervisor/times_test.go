package supervisor

import (
	"encoding/json"
	"errors"
	"io"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// printed is output and when it came.
type printed struct {
	offset int64
	at     time.Duration
}

// Every byte's time is right, a little early at most, however long the output and the silences in it.
func TestTimesLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var x timeIndex
		var all []printed
		offset, now := int64(0), time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "boot"))
		for range rapid.IntRange(1, 20).Draw(t, "phases") {
			pause := time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "pause"))
			for range rapid.IntRange(1, 2000).Draw(t, "lines") {
				now += pause
				x.note(offset, now)
				all = append(all, printed{offset, now})
				offset += 10
			}
			now += time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "silence"))
		}
		if len(x.marks) >= mostMarks {
			t.Fatalf("%d marks", len(x.marks))
		}
		wall := time.Unix(1e9, 0)
		times := x.times(offset, now, wall)
		for _, p := range all {
			truth := wall.Add(p.at - now)
			for _, at := range []int64{p.offset, p.offset + 9} {
				if late := truth.Sub(times.At(at)); late < 0 || late > max(2*x.every, 2*markEvery) {
					t.Fatalf("byte %d was printed %s after the time told, marks are %s apart", at, late, x.every)
				}
			}
		}
		if !times.At(offset).IsZero() || !times.At(-1).IsZero() {
			t.Fatal("the future is known")
		}
		if x.every > 2*markEvery && (now-all[0].at)/x.every < mostMarks/8 {
			t.Fatalf("marks %s apart are few for %s", x.every, now-all[0].at)
		}
	})
}

func FuzzTimes(f *testing.F) {
	f.Add([]byte(`{"end":7,"marks":[0,5,3,9]}`))
	f.Add([]byte(`{"marks":[3,5,0,9]}`))
	f.Add([]byte(`{"end":9223372036854775807,"marks":[-9223372036854775808,9223372036854775807]}`))
	f.Add([]byte(`{"end":1,"marks":[0]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var note timesNote
		if json.Unmarshal(raw, &note) != nil {
			return
		}
		times, err := note.times()
		if err != nil {
			return
		}
		for _, at := range []int64{-1, 0, 5, note.End - 1, note.End} {
			if (at < 0 || at >= note.End) && !times.At(at).IsZero() {
				t.Fatalf("byte %d has a time", at)
			}
		}
	})
}

func TestTimesOfARun(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	run := start(t, root, sh(`echo one; read x; echo two; read y`))
	readLine(t, run.Stdout())
	if got := run.Info(); got.OutputEnd != 0 {
		t.Errorf("%+v", got)
	}
	time.Sleep(3 * markEvery)
	between := time.Now()
	if _, err := io.WriteString(run.Stdin(), "x\n"); err != nil {
		t.Fatal(err)
	}
	readLine(t, run.Stdout())
	after := time.Now()
	run.Detach()
	again := attach(t, root, run.ID(), 0)
	times, err := again.Times(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	one, two := times.At(0), times.At(4)
	if one.Before(run.Info().Started) || !one.Before(between) || two.Before(between) || two.After(after) {
		t.Errorf("one at %s, then %s, two at %s, then %s", one, between, two, after)
	}
	if !times.At(8).IsZero() || times.At(3) != one || times.At(7) != two {
		t.Errorf("%+v", times)
	}
	kill9(t, run.Info().Supervisor)
	await(t, "done", again.Done())
	if times, err := again.Times(t.Context()); !errors.Is(err, ErrGone) || !times.At(0).IsZero() {
		t.Errorf("%+v, %v", times, err)
	}
}
