package card

import (
	"context"
	"fmt"

	"ductor/bot/render"
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

// keep stores a snapshot. It only logs an error, because the card works without it.
func (s *messages) keep(ctx context.Context, snap snapshot) {
	s.writing.Lock() // so that it cannot overwrite the final content
	defer s.writing.Unlock()
	if s.final {
		return
	}
	kept := savedCard{
		First: snap.part, Texts: []render.Text{snap.text}, Prints: s.fingerprints(snap.stay), Rich: snap.rich,
	}
	for _, p := range snap.starts {
		kept.Starts = append(kept.Starts, [2]int{p.segment, p.offset})
	}
	if err := s.storeKept(ctx, kept); err != nil {
		s.log.Warn("store a running card", "turn", s.turn, "err", err)
	}
}

// disown deletes the stored content of a message from the journal, before it becomes outdated.
func (s *messages) disown(ctx context.Context, part int) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.final || part >= len(s.kept.Prints) || s.kept.Prints[part] == "" {
		return nil
	}
	kept := s.kept
	kept.Prints = append([]string(nil), kept.Prints...)
	kept.Prints[part] = ""
	return s.storeKept(ctx, kept)
}

func (s *messages) storeKept(ctx context.Context, kept savedCard) error {
	kept.Topic = s.where().Topic
	data, err := kept.encode()
	if err != nil {
		return err
	}
	if err := s.journal.SaveCard(context.WithoutCancel(ctx), string(s.turn), data); err != nil {
		return err
	}
	s.kept = kept
	return nil
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

// store saves the final content of the messages.
func (s *messages) store(ctx context.Context, content contents) error {
	data, err := content.encode(s.where().Topic)
	if err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.journal.SaveCard(ctx, string(s.turn), data); err != nil {
		return fmt.Errorf("store a card: %w", err)
	}
	s.final = true
	return nil
}
