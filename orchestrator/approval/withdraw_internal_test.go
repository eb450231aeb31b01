package approval

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// fullStore has no room for some time.
type fullStore struct {
	orchestrator.ApprovalStore
	until time.Time
}

func (f fullStore) end(as orchestrator.ApprovalState) (a orchestrator.Approval, err error) {
	if time.Now().Before(f.until) {
		return a, fmt.Errorf("end an approval: %w", orchestrator.ErrDiskFull)
	}
	a.State = as
	return a, nil
}

func (f fullStore) WithdrawTurn(context.Context, cli.TurnID, time.Time) ([]orchestrator.Approval, error) {
	a, err := f.end(orchestrator.ApprovalWithdrawn)
	if err != nil {
		return nil, err
	}
	return []orchestrator.Approval{a}, nil
}

func (f fullStore) WithdrawRequest(context.Context, cli.TurnID, cli.ApprovalID, orchestrator.AuditKind,
	time.Time) (orchestrator.Approval, bool, error) {
	a, err := f.end(orchestrator.ApprovalWithdrawn)
	return a, err == nil, err
}

func (f fullStore) FindApproval(context.Context, orchestrator.ApprovalID) (a orchestrator.Approval, err error) {
	return a, nil
}

func (f fullStore) DecideApproval(_ context.Context, d orchestrator.ApprovalDecision) (orchestrator.Approval, bool,
	error) {
	a, err := f.end(d.State)
	return a, err == nil, err
}

type shown struct {
	orchestrator.ApprovalScreen
	mu     sync.Mutex
	states []orchestrator.ApprovalState
}

func (s *shown) ShowApproval(a orchestrator.Approval, _ bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states = append(s.states, a.State)
}

// If approvals end while the disk is full, they lose their buttons once the disk has space: because their agent died,
// because it withdrew its request, and because no user decided in time.
func TestApprovalsThatEndOnAFullDisk(t *testing.T) {
	for want, end := range map[orchestrator.ApprovalState]func(s *Service, r *Requests){
		orchestrator.ApprovalWithdrawn: func(s *Service, r *Requests) {
			s.WithdrawTurn(context.Background(), "turn")
			r.HandleEvent(cli.ApprovalWithdrawn{ID: "request"})
		},
		orchestrator.ApprovalExpired: func(_ *Service, r *Requests) { r.expire("1"); r.expire("2") },
	} {
		synctest.Test(t, func(t *testing.T) {
			screen, logs := &shown{}, &bytes.Buffer{}
			s := New(Options{
				Store: fullStore{until: time.Now().Add(time.Minute)}, Policy: Policy{Screen: screen}, Now: time.Now,
				Enter:  func() (func(), bool) { return func() {}, true },
				After:  func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop },
				Logger: slog.New(slog.NewTextHandler(logs, nil)),
			})
			r := s.Open(t.Context(), RunningTurn{})
			end(s, r)
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if !slices.Equal(screen.states, []orchestrator.ApprovalState{want, want}) {
				t.Errorf("shown: %v, want %s twice", screen.states, want)
			}
			if logs.Len() > 0 {
				t.Errorf("each attempt fills the log:\n%s", logs)
			}
			r.Drain()
			r.Close()
		})
	}
}
