package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/scenario"
)

// unfinishedMessages finds messages that still show running or waiting work after all work is done. Such messages are
// allowed in a conversation that waits for a user's decision.
func unfinishedMessages(f *facts) (all []Violation) {
	for _, c := range f.Chats {
		waits := f.waits(c)
		for _, m := range c.said() {
			says := has(m, scenario.StopTurn, scenario.Steer, scenario.Interrupt) && !waits[c.place(m)] || asks(m) &&
				f.Stored.Open != nil && !f.Stored.Open[c.ID]
			if says && !f.hurt(c.place(m)) && !f.unheardOf(m) {
				all = append(all, Violation{Detail: fmt.Sprintf("message %d in %s still has its buttons: %s", m.ID,
					c.place(m), start(m.Text))})
			}
		}
	}
	return all
}

// unheardOf reports whether ductor may not know the ID of a message. This is possible if the call that sent the message
// got no valid response, or if ductor ended during the call. Without the ID, ductor cannot edit the message.
func (f *facts) unheardOf(m telegram.Message) bool {
	return slices.ContainsFunc(f.Calls, func(c telegram.Call) bool {
		if c.Chat != m.Chat || c.Message != m.ID || !strings.HasPrefix(strings.ToLower(c.Method), "send") {
			return false
		}
		switch c.Fault {
		case telegram.DropAfter, telegram.BadGatewayAfter, telegram.BadJSON, telegram.Hang:
			return true
		}
		lost := func(s Stop) bool { return f.wasLost(s, c.Done, f.Scenario.Latest()) }
		return f.diedBetween(c.At, c.Done.Add(time.Second+f.Scenario.Latest())) || slices.ContainsFunc(f.Stops, lost) ||
			f.diedWithFullDisk(c) || f.Scenario.Latest() >= 10*time.Second
	})
}

// roomWindow is how long ductor may need after a full disk has space again: to notice this, and to store the remaining
// data.
const roomWindow = 15 * time.Second

// diedWithFullDisk reports whether ductor ended before it could store the ID of a message, because the disk was full.
func (f *facts) diedWithFullDisk(c telegram.Call) bool {
	return slices.ContainsFunc(f.Stops, func(s Stop) bool {
		return !s.At.Before(c.At) && !s.At.After(c.Done.Add(f.fullDisk()+roomWindow)) &&
			f.diskFailedIn(c.Done, s.At, scenario.DiskFull)
	})
}

// waits returns the conversations in a chat that wait for a user's decision.
func (f *facts) waits(c Chat) map[scenario.Place]bool {
	all := map[scenario.Place]bool{}
	for _, m := range c.said() {
		if asks(m) && (f.Stored.Open == nil || f.Stored.Open[c.ID]) {
			all[c.place(m)] = true
		}
	}
	return all
}

// asks reports whether a message waits for a user's decision.
func asks(m telegram.Message) bool {
	return has(m, scenario.AllowOnce, scenario.Deny, "approval.no-answer-button", "approval.begin",
		"approval.deny-without-reason", "approval.allow-rule", "approval.show")
}
