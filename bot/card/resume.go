package card

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/cli"
	"ductor/orchestrator"
)

// After a restart, a card waits until the agent's earlier events have been replayed. These limits end the wait if no
// event reports the end of the replay.
const (
	replaySilence = 2 * time.Second
	replayLongest = 5 * time.Second
)

// past describes a card that ductor opened before a restart.
type past struct {
	unknown   bool // true until the method recall has read the database
	saved     savedCard
	replaying bool // the agent's earlier events are being replayed; the card makes no edits until the replay ends
	began     time.Time
	lastEvent time.Time
}

// quiet returns the time at which the replay counts as complete if no more events come.
func (p past) quiet() time.Time {
	if silence := p.lastEvent.Add(replaySilence); silence.Before(p.began.Add(replayLongest)) {
		return silence
	}
	return p.began.Add(replayLongest)
}

// Reopen returns a card for a turn that started before a restart of ductor. The card continues to edit the same
// messages.
//
// First, the agent's events are replayed from the start of the turn. Then the card edits each message whose content
// differs from the document. If Telegram has not confirmed a message, the card neither edits this message nor sends it
// again. Instead, the next message repeats the text that may be missing, and a notice follows after the turn.
func (c *Cards) Reopen(ctx context.Context, t orchestrator.Turn) orchestrator.Card {
	k := c.cardOf(t)
	k.past = past{unknown: true, replaying: true, began: k.pace.moved, lastEvent: k.pace.moved}
	if err := k.recall(ctx); err != nil {
		c.opts.Log.Warn("reopen a card; it is tried again", "turn", t.ID, "err", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.startLocked()
	return k
}

// recall reads the content that the previous process stored, unless an earlier call has already read it. Before recall,
// the card does not know its messages, so it must not change the chat.
func (c *card) recall(ctx context.Context) error {
	c.recalling.Lock()
	defer c.recalling.Unlock()
	c.mu.Lock()
	unknown := c.past.unknown
	c.mu.Unlock()
	if !unknown {
		return nil
	}
	saved, err := c.messages.recall(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.past.unknown, c.past.saved = false, saved
	if !saved.Final {
		c.doc.begin(saved.Layout.Lead)
	}
	return nil
}

// begin inserts the notes with which the document of the previous process started.
func (d *document) begin(notes []leadNote) {
	var lead []*segment
	for _, n := range notes {
		if slices.ContainsFunc(d.lead(), func(s *segment) bool { return s.note.Text == n.Note.Text }) {
			continue
		}
		lead = append(lead, &segment{kind: noteSegment, note: n.Note, noteIfFailed: n.IfFailed, own: true})
	}
	d.segments = slices.Concat(lead, d.segments)
}

func (d *document) leadNotes() (all []leadNote) {
	for _, s := range d.lead() {
		all = append(all, leadNote{d.scrub.Text(s.note), d.scrub.Text(s.noteIfFailed)})
	}
	return all
}

// noteReplayLocked records the time of a replayed event, and ends the replay if the event reports the end.
func (c *card) noteReplayLocked(ev cli.Event, now time.Time) {
	if !c.past.replaying {
		return
	}
	c.past.lastEvent = now
	if _, ok := ev.(cli.CaughtUp); ok {
		c.caughtUpLocked(now)
	}
}

// caughtUpLocked is called when all earlier events have been replayed. During the replay, the card edits no message.
func (c *card) caughtUpLocked(now time.Time) {
	c.past.replaying = false
	c.pace.addNews(urgentNews, now)
}

// inheritLocked returns the positions at which the messages of the previous process start. If the replayed document
// cannot be cut at these positions, inheritLocked returns only the start of the document.
func (c *card) inheritLocked() []position {
	fresh := []position{{}}
	saved := c.past.saved
	if saved.Final || len(saved.Layout.Starts) == 0 {
		return fresh
	}
	var starts []position
	for _, s := range saved.Layout.Starts[:min(len(saved.Layout.Starts), max(c.messages.opened(), 1))] {
		starts = append(starts, position{s[0], s[1]})
	}
	if starts[0] != (position{}) {
		return fresh
	}
	for i := 1; i < len(starts); i++ {
		if !c.doc.within(starts[i-1], starts[i]) {
			return fresh
		}
	}
	texts := c.doc.slices(starts, starts[len(starts)-1])
	for _, t := range texts[:len(texts)-1] {
		if t.Text == "" || !render.Fits(t, render.MessageLimit) {
			return fresh
		}
	}
	return starts
}

// within reports whether p is a valid position in the document and lies after start.
func (d *document) within(start, p position) bool {
	if p.segment < 0 || p.offset < 0 || p.segment > len(d.segments) || p.segment == len(d.segments) && p.offset > 0 {
		return false
	}
	return cmp.Or(cmp.Compare(start.segment, p.segment), cmp.Compare(start.offset, p.offset)) < 0
}

// reach returns the position at which message i ends in the document. For the last message, it excludes segments at the
// end that may still change.
func (d *document) reach(starts []position, i int) position {
	if i+1 < len(starts) {
		return starts[i+1]
	}
	end := len(d.segments)
	for end > starts[i].segment+1 && d.segments[end-1].mayChange() {
		end--
	}
	if end > 0 {
		if s := d.segments[end-1]; s.kind == textSegment {
			return position{end - 1, render.Len(s.shown.text.Text)}
		}
	}
	return position{segment: end}
}

// longestWord is the maximum length of a word in bytes. A longer sequence of letters is not a word, or its language
// uses no spaces.
const longestWord = 32

// wholeWord returns the start of the word that contains p, so that the next message does not begin with half a word. It
// returns p if p is not inside a word, or if the word does not begin after the given start of the current message.
func (d *document) wholeWord(start, p position) position {
	if p.segment >= len(d.segments) || p.offset == 0 {
		return p
	}
	d.show(d.segments[p.segment])
	s := &d.segments[p.segment].shown
	at := s.atUnit(p.offset).bytes
	next, _ := utf8.DecodeRuneInString(s.text.Text[at:])
	word := s.text.Text[len(strings.TrimRightFunc(s.text.Text[:at], ofWord)):at]
	if word == "" || !ofWord(next) {
		return p
	}
	begin := position{p.segment, p.offset - render.Len(word)}
	if len(word) > longestWord || !d.within(start, begin) {
		return p
	}
	return begin
}

func ofWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_' || r == '\''
}

// mayChange reports whether the segment may still change, apart from new text at its end.
func (s *segment) mayChange() bool {
	return s.kind == toolSegment && !s.tool.ended() || s.kind == thinkingSegment
}

// Leave implements orchestrator.Card.
func (c *card) Leave(ctx context.Context) {
	c.mu.Lock()
	if c.finished {
		c.mu.Unlock()
		return
	}
	c.finished = true
	c.alarm.timer.Stop()
	pending, replaying := c.pace.news != noNews || c.pace.queued, c.past.replaying
	c.mu.Unlock()
	if replaying {
		return // the chat has not changed since the previous process stored the card
	}
	if pending {
		if err := c.flush(ctx); err != nil {
			c.cards.opts.Log.Warn("show what is pending", "turn", c.turn.ID, "err", err)
		}
	}
	c.mu.Lock()
	texts, rich := c.liveLocked(time.Now())
	last := len(texts) - 1
	newest := c.snapshotLocked(last, texts[last], rich)
	c.mu.Unlock()
	if last == c.messages.opened()-1 {
		newest.unchanged++ // the last message will not change any more
		c.saveSnapshot(ctx, newest)
	}
}

// flush asks the outbox to show the pending changes now, and waits for the result.
func (c *card) flush(ctx context.Context) error {
	err := c.cards.opts.Outbox.Do(ctx, outbox.Call{
		Chat: outbox.ChatOf(c.messages.where().Chat), Delivery: outbox.Newest, Priority: outbox.Awaited,
		Key: cardKey(c.turn.ID),
		Run: func(ctx context.Context) error {
			if err := c.recall(ctx); err != nil {
				return err
			}
			c.mu.Lock()
			return c.advanceUnlock(ctx)
		},
	})
	if err != nil {
		return fmt.Errorf("flush a card: %w", err)
	}
	return nil
}
