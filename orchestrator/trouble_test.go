package orchestrator_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ductor/internal/store"
	"ductor/orchestrator"
)

// slowLoad is a store whose answers to Conversation are held back: the n-th is given when hold(n) returns.
type slowLoad struct {
	*store.DB
	mu      sync.Mutex
	loads   int
	hold    func(n int)
	created chan struct{}
}

func (s *slowLoad) Conversation(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Conversation, error) {
	c, err := s.DB.Conversation(ctx, id)
	s.mu.Lock()
	s.loads++
	n := s.loads
	s.mu.Unlock()
	s.hold(n)
	return c, err
}

func (s *slowLoad) CreateSession(ctx context.Context, session orchestrator.Session) error {
	defer close(s.created)
	return s.DB.CreateSession(ctx, session)
}

// TestAChangeWhileATurnBeginsItsSessionLosesNeither: the change has loaded what the chat chose as the turn makes its
// session the current one.
func TestAChangeWhileATurnBeginsItsSessionLosesNeither(t *testing.T) {
	s := &slowLoad{created: make(chan struct{})}
	changes := make(chan struct{})
	s.hold = func(n int) {
		switch n {
		case 2: // of the turn that runs; the first was as it was queued
			<-changes
		case 3: // of the change
			close(changes)
			select {
			case <-s.created:
			case <-time.After(200 * time.Millisecond): // it has to wait for the change
			}
		}
	}
	h := openAt(t, filepath.Join(t.TempDir(), "db"), func(o *orchestrator.Options) {
		s.DB = o.Store.(*store.DB)
		o.Store = s
	})
	h.submit(t, here, "first")
	h.eventually(t, "the turn to look what the chat chose", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.loads == 2
	})
	if err := h.SetBusy(t.Context(), here, orchestrator.BusySteer); err != nil {
		t.Fatal(err)
	}
	h.await(t, "done first")
	c, err := h.db.Conversation(t.Context(), here)
	if err != nil || c.Session == "" || c.Busy != orchestrator.BusySteer {
		t.Errorf("the chat chose %+v, %v", c, err)
	}
}
