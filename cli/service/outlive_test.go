package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
)

// The live processes of a turn are named, also if the turn has ended and its process has not.
func TestWhatOutlivesATurnIsNamed(t *testing.T) {
	for name, stuck := range map[string]error{"it ends": nil, "it does not end": errors.New("it is stuck")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				place := newFakePlace()
				p := &fakeProvider{open: place.open, turn: lasting}
				s := newTestService(t, on(place), p)
				over := begin(t, s, cli.Request{Conversation: "a", Turn: "t"}, quietly)
				session := p.opened()[0]
				session.closeErr = stuck
				alive := s.Outliving("t")
				want := []cli.ProcessName{{Name: "deaf", PID: 12}}
				if diff := cmp.Diff(want, alive(t.Context())); diff != "" {
					t.Errorf("while it runs: %s", diff)
				}
				s.Abort("a")
				<-over
				if stuck == nil {
					want = nil
				}
				if diff := cmp.Diff(want, alive(t.Context())); diff != "" {
					t.Errorf("after it: %s", diff)
				}
				place.processes[session.pid].die()
				if got := s.Outliving("t")(context.Background()); got != nil {
					t.Errorf("of a turn that does not run: %+v", got)
				}
				closeService(t, s)
			})
		})
	}
}
