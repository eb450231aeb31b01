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

// effectsAfterAborts finds effects that happened too late: the prompt was older than an abort, and the chat had already
// reported that the abort was complete. It also finds turns that ended as aborted although no user stopped them.
func effectsAfterAborts(f *facts) (all []Violation) {
	for _, token := range f.tokens {
		c, ok := f.chat(f.sent[token].In)
		if ok && f.endsAborted(c, token) && !f.stopped(token) && !f.oldTextStops(c, token) {
			all = append(all, Violation{Token: token, Detail: "ended as aborted, and no user stopped it"})
		}
	}
	for _, c := range f.Chats {
		for _, in := range append([]scenario.Place{c.Name}, slices.Sorted(maps.Values(c.Topics))...) {
			answered := make(map[telegram.MessageID]bool)
			for _, stop := range f.aborts(in) {
				all = append(all, f.effectsAfter(c, stop, answered)...)
			}
		}
	}
	return all
}

// endsAborted reports whether a reply of the bot shows that the turn of a prompt was aborted. If a user sent the prompt
// by editing a message, a reply that showed an abort before the edit does not count: it was about the old text.
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

// oldTextStops reports whether a user aborted the old text of a message, and then edited the message into this prompt
// before the abort was complete. After the edit, the bot may then still reply that the old text was aborted.
func (f *facts) oldTextStops(c Chat, token scenario.Token) bool {
	s := f.sent[token]
	first := s // the original message
	for first.Old != "" {
		first = f.sent[first.Old]
	}
	return s.Old != "" && slices.ContainsFunc(f.aborts(s.In), func(stop Sent) bool {
		if stop.At.Before(first.At) || !stop.At.Before(s.At) {
			return false
		}
		at, ok := f.saidStopped(c, stop, map[telegram.MessageID]bool{})
		return !ok || !at.Before(s.At)
	})
}

// effectsAfter finds what still happened after the chat said "Stopped." to an abort: prompts that an agent got, and
// effects. stop is the user's abort. answered contains the bot's messages that answer earlier aborts, because each
// message answers only one. effectsAfter adds the message that answers stop.
func (f *facts) effectsAfter(c Chat, stop Sent, answered map[telegram.MessageID]bool) (all []Violation) {
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

// saidStopped returns the time at which an abort must be complete: when the chat reports the end of the turn, or
// abortWithin after the chat has shown "Stopping…", whichever is earlier. It returns false if the chat shows neither.
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
