package claude

import (
	"context"
	"testing"
	"time"

	"ductor/cli"
)

// talk is a running turn that the test observes.
type talk struct {
	t      *testing.T
	cancel context.CancelCauseFunc
	news   chan cli.Event
	events []cli.Event
}

const patience = time.Minute

// begin starts a turn.
func begin(t *testing.T, s cli.Session, req cli.Request) *talk {
	ctx, cancel := contextWithAbort(t)
	k := &talk{t: t, cancel: cancel, news: make(chan cli.Event, 1<<16)}
	go func() {
		defer close(k.news)
		s.Turn(ctx, req, func(ev cli.Event) { k.news <- ev })
	}()
	return k
}

// next returns the next event, or false at the end.
func (k *talk) next() (cli.Event, bool) {
	k.t.Helper()
	select {
	case ev, ok := <-k.news:
		if ok {
			k.events = append(k.events, ev)
		}
		return ev, ok
	case <-time.After(patience):
		k.t.Fatalf("nothing more came after %+v", k.events)
		return nil, false
	}
}

// until waits for the next event of a type.
func until[T cli.Event](k *talk) T {
	k.t.Helper()
	for {
		ev, ok := k.next()
		if !ok {
			k.t.Fatalf("the turn ended without a %T: %+v", *new(T), k.events)
		}
		if ev, is := ev.(T); is {
			return ev
		}
	}
}

// text waits until the answer has this many bytes.
func (k *talk) text(bytes int) {
	k.t.Helper()
	for {
		var a cli.Answer
		for _, ev := range k.events {
			a.Add(ev)
		}
		if len(a.String()) >= bytes {
			return
		}
		if _, ok := k.next(); !ok {
			k.t.Fatalf("the turn ended: %+v", k.events)
		}
	}
}

// end waits for the result.
func (k *talk) end() cli.Result {
	k.t.Helper()
	for {
		if _, ok := k.next(); !ok {
			break
		}
	}
	r, ok := k.events[len(k.events)-1].(cli.Result)
	if !ok {
		k.t.Fatalf("the turn ended with %+v", k.events)
	}
	return r
}
