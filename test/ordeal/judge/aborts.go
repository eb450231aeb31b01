package judge

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/lang"
	"ductor/test/ordeal/scenario"
)

// aborted finds effects that happened after the chat had reported that an abort was complete. The prompt must be older
// than the abort. It also finds turns that ended as aborted although no user stopped them.
func aborted(f *facts) (all []Violation) {
	for _, token := range f.tokens {
		if c, ok := f.chat(f.sent[token].In); ok && f.endsAborted(c, token) && !f.stopped(token) {
			all = append(all, Violation{Token: token, Detail: "ended as aborted, and no user stopped it"})
		}
	}
	for _, c := range f.Chats {
		for _, in := range append([]scenario.Place{c.Name}, slices.Sorted(maps.Values(c.Topics))...) {
			answered := make(map[telegram.MessageID]bool)
			for _, stop := range f.aborts(in) {
				all = append(all, f.goesOn(c, stop, answered)...)
			}
		}
	}
	return all
}

// endsAborted reports whether a reply to a prompt shows that the prompt's turn was aborted. If the user sent the prompt
// by editing a message, replies that showed this before the edit do not count: they belong to the old text.
func (f *facts) endsAborted(c Chat, token scenario.Token) bool {
	s := f.sent[token]
	return slices.ContainsFunc(c.said(), func(m telegram.Message) bool {
		if s.ID == 0 || m.ReplyTo != s.ID || m.Chat != s.Chat || !says(m.Text, "card.aborted") {
			return false
		}
		first := slices.IndexFunc(m.Versions, func(v telegram.Version) bool { return says(v.Text, "card.aborted") })
		return s.Old == "" || first < 0 || !m.Versions[first].At.Before(s.At)
	})
}

// goesOn finds effects after an abort. It also finds the bot's message that answers the abort, and adds this message to
// the map answered. A message in this map cannot be the answer to a later abort.
func (f *facts) goesOn(c Chat, stop Sent, answered map[telegram.MessageID]bool) (all []Violation) {
	at, ok := f.saidStopped(c, stop, answered)
	if !ok || f.reordered() {
		return nil
	}
	for _, token := range f.tokens {
		s := f.sent[token]
		_, job := f.jobs[token]
		if s.In != stop.In || s.ID >= stop.ID || s.ID == 0 || job || f.pressesOf(token, again()...) > 0 ||
			f.edited(token) {
			continue
		}
		for _, e := range f.events[token] {
			if e.At.After(at) && (e.What == Effect || e.What == Got) {
				all = append(all, Violation{Token: token,
					Detail: fmt.Sprintf("%s %s came %s behind the abort", e.What, e.Name, e.At.Sub(at))})
				break
			}
		}
	}
	return all
}

// abortWithin limits how long processes of a turn may live after the chat shows "Stopping…".
const abortWithin = 15 * time.Second

// saidStopped returns the time at which an abort must be complete. The abort must be complete when the chat reports the
// end of the turn, and at most abortWithin after the chat has shown "Stopping…".
func (f *facts) saidStopped(c Chat, stop Sent, answered map[telegram.MessageID]bool) (time.Time, bool) {
	var stopping time.Time
	for _, m := range c.History {
		other := m.ReplyTo != stop.ID && (m.ReplyTo != 0 || m.ID < stop.ID || c.place(m) != stop.In)
		if !m.From.Bot || other || answered[m.ID] {
			continue
		}
		for _, v := range m.Versions {
			if slices.ContainsFunc([]lang.Key{"bot.stopped", "bot.nothing-runs", "bot.nothing-ran"},
				func(k lang.Key) bool { return says(v.Text, k) }) {
				answered[m.ID] = true
				if !stopping.IsZero() && stopping.Before(v.At) {
					return stopping, true
				}
				return v.At, true
			}
			if says(v.Text, "bot.stopping") {
				stopping = v.At.Add(abortWithin)
			}
		}
	}
	return stopping, !stopping.IsZero()
}
