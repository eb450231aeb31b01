package judge

import (
	"time"

	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/scenario"
)

// shownRunning adds a card that says that a turn runs, and the call that sent it.
func shownRunning(s *stage) {
	s.sends(ownerChat, s.shows(ownerChat, s.whole(), "💭 thinking…", "⏹ Stop"))
}

func verdictsOfCards() []verdict {
	const late = "telegram late for 5s\n" + plainPrompt
	return []verdict{
		{"a card that runs for ever", plainPrompt, "rest", func(s *stage) {
			s.shows(ownerChat, s.whole(), "💭 thinking…", "⏹ Stop")
		}},
		{"a card whose number came too late for a ductor that died", late, "", func(s *stage) {
			shownRunning(s)
			s.now = s.now.Add(3 * time.Second)
			s.stops(scenario.Crash)
		}},
		{"a card whose number came in time", late, "rest", func(s *stage) {
			shownRunning(s)
			s.now = s.now.Add(10 * time.Second)
			s.stops(scenario.Crash)
		}},
		{"a card that waits for its user", plainPrompt, "", func(s *stage) {
			s.shows(ownerChat, s.whole(), "💭 thinking…", "⏹ Stop")
			s.shows(ownerChat, 0, "May I?", "✅ Allow once", "⛔ Deny")
		}},
		{"a card that waits for a decision that was made", plainPrompt, "rest rest", func(s *stage) {
			s.shows(ownerChat, s.whole(), "💭 thinking…", "⏹ Stop")
			s.shows(ownerChat, 0, "May I?", "✅ Allow once", "⛔ Deny")
			s.Stored.Open = map[telegram.ChatID]bool{annChat: true}
		}},
		{"an approval that is open", plainPrompt, "", func(s *stage) {
			s.shows(ownerChat, s.whole(), "💭 thinking…", "⏹ Stop")
			s.shows(ownerChat, 0, "May I?", "✅ Allow once", "⛔ Deny")
			s.Stored.Open = map[telegram.ChatID]bool{ownerChat: true}
		}},
	}
}

func verdictsOfCardsOnBadDisks() []verdict {
	const fullDisk = "disk full for 20s\n" + plainPrompt
	return []verdict{
		{"a card whose number a failed flush lost", failedFlush, "", func(s *stage) {
			shownRunning(s)
			s.diskFails(scenario.DiskFsync)
			s.stops(scenario.Restart)
		}},
		{"a card that came long after a failed flush", failedFlush, "rest", func(s *stage) {
			s.diskFails(scenario.DiskFsync)
			s.now = s.now.Add(time.Minute)
			shownRunning(s)
			s.now = s.now.Add(5 * time.Second)
			s.stops(scenario.Restart)
		}},
		{"a card whose number a failing disk did not take", failedDisk, "", func(s *stage) {
			s.diskFails(scenario.DiskEIO)
			shownRunning(s)
			s.stops(scenario.Restart)
		}},
		{"a card whose number came late to a failing disk", "telegram late for 5s\n" + failedDisk, "", func(s *stage) {
			shownRunning(s)
			s.now = s.now.Add(3 * time.Second)
			s.diskFails(scenario.DiskEIO)
			s.now = s.now.Add(10 * time.Second)
			s.stops(scenario.Restart)
		}},
		{"a card whose number was taken before the disk failed", failedDisk, "rest", func(s *stage) {
			shownRunning(s)
			s.now = s.now.Add(time.Second)
			s.diskFails(scenario.DiskEIO)
			s.stops(scenario.Restart)
		}},
		{"a card that came just before the disk was full", fullDisk, "", func(s *stage) {
			shownRunning(s)
			s.diskFails(scenario.DiskFull)
			s.stops(scenario.Restart)
		}},
		{"a card that came long after the disk was full", fullDisk, "rest", func(s *stage) {
			s.diskFails(scenario.DiskFull)
			s.now = s.now.Add(time.Minute)
			shownRunning(s)
			s.now = s.now.Add(5 * time.Second)
			s.stops(scenario.Restart)
		}},
		{"a message is sent again after a restart on a full disk", plainPrompt, "", func(s *stage) {
			id := s.whole()
			s.diskFails(scenario.DiskFull)
			s.stops(scenario.Restart)
			s.shows(ownerChat, id, "p1w0 p1w1 p1w2")
		}},
		{"a card whose number a full disk did not take", fullDisk, "", func(s *stage) {
			shownRunning(s)
			s.now = s.now.Add(5 * time.Second)
			s.stops(scenario.Restart)
		}},
		{"a card whose number was taken before the disk was full", fullDisk, "rest", func(s *stage) {
			shownRunning(s)
			s.now = s.now.Add(time.Minute)
			s.stops(scenario.Restart)
		}},
	}
}
