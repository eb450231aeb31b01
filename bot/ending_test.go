package bot_test

import (
	"testing"
	"testing/synctest"
	"time"

	"ductor/internal/sim/telegram"
)

// An orderly shutdown waits for nothing that is due later: neither for the pin of an approval, which the next process
// makes, nor for the delay of a queue card, which is sent at once.
func TestTheEndWaitsForNothingThatIsDueLater(t *testing.T) {
	withApprovals(t, agentAsking(bash("a", "make")), func(s *approvalRig) {
		s.begin()
		time.Sleep(2 * time.Second)
		s.say("and then this")
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		for range 2 {
			began := time.Now()
			s.restart()
			if took := time.Since(began); took > restSettles+time.Second {
				s.Errorf("the end took %s", took-restSettles)
			}
			s.card("Queued, next in line.")
		}
		time.Sleep(10 * time.Second)
		if m := s.card("May Claude run this command?"); !m.Pinned {
			s.Error("the approval is not pinned after all")
		}
		s.press(s.card("May Claude run this command?"), "Allow once")
		pins := 0
		for _, c := range s.srv.Calls(telegram.Methods("pinChatMessage")) {
			if c.OK {
				pins++
			}
		}
		if m := s.card("✅ Allowed."); m.Pinned || pins != 1 {
			s.Errorf("pinned %v, by %d calls", m.Pinned, pins)
		}
	})
}

// restSettles is how long restart waits after the start for everything that happens without further input.
const restSettles = 10 * time.Second
