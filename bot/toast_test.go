package bot_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// slowLook takes some seconds for the snapshot of a turn's files.
type slowLook struct {
	takes  time.Duration
	looked atomic.Bool
}

func (s *slowLook) Watch(orchestrator.Turn, string, bool) orchestrator.TurnWatch {
	time.AfterFunc(s.takes, func() { s.looked.Store(true) })
	return s
}

func (s *slowLook) AwaitSnapshot(ctx context.Context, _ cli.TurnID, _ cli.ApprovalID) {
	for !s.looked.Load() && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
}

func (s *slowLook) SnapshotTaken(cli.TurnID) bool { return s.looked.Load() }
func (s *slowLook) Observe(cli.Event)             {}
func (s *slowLook) Leave()                        {}

func (s *slowLook) End() func(context.Context) orchestrator.Changed {
	return func(context.Context) orchestrator.Changed { return orchestrator.Changed{} }
}

// A press is answered, and its message updated, before the snapshot of the files. An agent that may write now waits for
// the snapshot; a denied one does not.
func TestAPressDoesNotWaitForTheLookAtTheFiles(t *testing.T) {
	for _, c := range []struct {
		button, toast, shown, told string
		waits                      time.Duration
	}{
		{"Allow once", "Allowed.", "✅ Allowed. make", "a true []", 3 * time.Second},
		{"Deny", "Denied.", "⛔ Denied. make", "a false []", 0},
	} {
		t.Run(c.button, func(t *testing.T) {
			withApprovals(t, agentAsking(bash("a", "make")), func(s *approvalRig) {
				began := time.Now()
				s.begin()
				synctest.Wait()
				time.Sleep(time.Second)
				synctest.Wait()
				m, _ := s.in.View().Find("May Claude run this command?")
				pressed := time.Now()
				answer, err := s.who.Press(s.Context(), m, s.data(m, c.button))
				if took := time.Since(pressed); err != nil || answer.Text != c.toast || took > 100*time.Millisecond {
					s.Errorf("after %s the press is answered by %q, %v", took, answer.Text, err)
				}
				s.awaitSettled("the approval", m.ID)
				if took := time.Since(pressed); took > 100*time.Millisecond {
					s.Errorf("the message is settled after %s", took)
				}
				for len(s.agent.toldAll()) == 0 && time.Since(began) < enough {
					time.Sleep(10 * time.Millisecond)
				}
				if told := time.Since(began); told < c.waits || told > 4*time.Second {
					s.Errorf("the agent is told after %s", told)
				}
				s.wantTold(c.told)
				s.wantShown(c.shown, "The work is done.")
			}, func(h *botRig) { h.snapshots = &slowLook{takes: 3 * time.Second} })
		})
	}
}
