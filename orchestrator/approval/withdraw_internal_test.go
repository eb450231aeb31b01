package approval

import (
	"context"
	"fmt"
	"log/slog"
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

func (f fullStore) WithdrawTurn(context.Context, cli.TurnID, time.Time) ([]orchestrator.Approval, error) {
	if time.Now().Before(f.until) {
		return nil, fmt.Errorf("withdraw: %w", orchestrator.ErrDiskFull)
	}
	var a orchestrator.Approval
	a.State = orchestrator.ApprovalWithdrawn
	return []orchestrator.Approval{a}, nil
}

type shown struct {
	orchestrator.ApprovalScreen
	states []orchestrator.ApprovalState
}

func (s *shown) ShowApproval(a orchestrator.Approval) { s.states = append(s.states, a.State) }

// If an agent dies while the disk is full, its approvals lose their buttons once it has room again.
func TestApprovalsAreWithdrawnAfterAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		screen := &shown{}
		s := New(Options{
			Store: fullStore{until: time.Now().Add(time.Minute)}, Screen: screen, Now: time.Now,
			Enter:  func() (func(), bool) { return func() {}, true },
			After:  func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop },
			Logger: slog.New(slog.DiscardHandler),
		})
		s.WithdrawTurn(t.Context(), "turn")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(screen.states) != 1 || screen.states[0] != orchestrator.ApprovalWithdrawn {
			t.Errorf("shown: %v", screen.states)
		}
	})
}
