package card

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/orchestrator"
)

// snapshot is the state of a running card in the journal. The process after a crash reads it.
type snapshot struct {
	part   int         // the newest message
	stay   int         // the messages before this one stay as they are
	text   render.Text // its text, without the live line
	starts []position  // where the messages start
	rich   richContent // its rich content, if it is rich
}

// before returns a snapshot of the message before part.
func (s snapshot) before(texts []render.Text, part int) snapshot {
	return snapshot{part: part - 1, stay: part - 1, text: texts[part-1], starts: s.starts}
}

// record is the stored content of a card. The journal has either a snapshot or the final content.
type record struct {
	journal orchestrator.CardStore
	turn    cli.TurnID

	mu       sync.Mutex // held during a write, so that the journal gets the newest state
	final    bool
	snapshot savedCard
}

// load reads the stored content. It returns false if the journal has none.
func (r *record) load(ctx context.Context) (saved savedCard, stored bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	data, err := r.journal.LoadCard(ctx, string(r.turn))
	if err != nil {
		return savedCard{}, false, fmt.Errorf("load a card: %w", err)
	}
	if len(data) > 0 {
		if saved, err = decodeCard(data); err != nil {
			return savedCard{}, false, err
		}
	}
	if !saved.Final {
		r.snapshot = saved
	}
	return saved, len(data) > 0, nil
}

// update stores a changed snapshot, unless the journal has the final content or change returns false.
func (r *record) update(ctx context.Context, change func(snapshot *savedCard) bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := r.snapshot
	if r.final || !change(&changed) {
		return nil
	}
	data, err := changed.encode()
	if err != nil {
		return err
	}
	if err := r.journal.SaveCard(context.WithoutCancel(ctx), string(r.turn), data); err != nil {
		return err
	}
	r.snapshot = changed
	return nil
}

// finish stores the final content.
func (r *record) finish(ctx context.Context, data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.journal.SaveCard(ctx, string(r.turn), data); err != nil {
		return fmt.Errorf("store a card: %w", err)
	}
	r.final = true
	return nil
}

// saveSnapshot stores a snapshot. It only logs an error, because the card works without it.
func (c *card) saveSnapshot(ctx context.Context, snap snapshot) {
	err := c.messages.record.update(ctx, func(saved *savedCard) bool {
		*saved = savedCard{
			First: snap.part, Texts: []render.Text{snap.text}, Prints: c.messages.fingerprints(snap.stay),
			Rich: snap.rich, Topic: c.messages.where().Topic,
		}
		for _, p := range snap.starts {
			saved.Starts = append(saved.Starts, [2]int{p.segment, p.offset})
		}
		return true
	})
	if err != nil {
		c.cards.opts.Log.Warn("store a running card", "turn", c.turn.ID, "err", err)
	}
}

// forgetFingerprint deletes the stored content of a message from the journal, before it becomes outdated.
func (s *messages) forgetFingerprint(ctx context.Context, part int) error {
	return s.record.update(ctx, func(saved *savedCard) bool {
		if part >= len(saved.Prints) || saved.Prints[part] == "" {
			return false
		}
		saved.Prints = slices.Clone(saved.Prints)
		saved.Prints[part], saved.Topic = "", s.where().Topic
		return true
	})
}

// fingerprints returns the fingerprints of the first n messages, as far as their content is known.
func (s *messages) fingerprints(n int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]string, min(n, len(s.parts)))
	for i := range out {
		if p := s.parts[i]; p.State() == orchestrator.Sent {
			out[i] = p.Shown()
		}
	}
	return out
}

// saveFinal stores the final content of the messages.
func (s *messages) saveFinal(ctx context.Context, content contents) error {
	data, err := content.encode(s.where().Topic)
	if err != nil {
		return err
	}
	return s.record.finish(ctx, data)
}
