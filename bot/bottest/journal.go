package bottest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ductor/orchestrator"
)

// Journal is a Journal's outgoing half in memory. It encodes and decodes as a real one would.
type Journal struct {
	Mu         sync.Mutex
	Cards      map[string][]byte
	Parts      map[string]map[int]orchestrator.CardPart
	Notices    map[int64]orchestrator.Notice
	Reading    time.Duration // from what the notices were to who asked for them
	next       int64
	Writes     int
	Unreadable bool        // loading fails
	Full       atomic.Bool // nothing is stored
	DiesAt     int         // the write at which ductor dies: from then on nothing is stored and every call fails; 0 never
}

func NewJournal() *Journal {
	return &Journal{
		Cards: make(map[string][]byte), Parts: make(map[string]map[int]orchestrator.CardPart),
		Notices: make(map[int64]orchestrator.Notice),
	}
}

func (s *Journal) write() error {
	s.Writes++
	if s.DiesAt > 0 && s.Writes >= s.DiesAt {
		return fmt.Errorf("ductor is dead")
	}
	if s.Full.Load() {
		return fmt.Errorf("the disk is full")
	}
	return nil
}

func (s *Journal) Dead() bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.DiesAt > 0 && s.Writes >= s.DiesAt
}

func (s *Journal) SaveCard(_ context.Context, turn string, content []byte) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if err := s.write(); err != nil {
		return err
	}
	if !json.Valid(content) {
		return fmt.Errorf("not JSON: %s", content)
	}
	s.Cards[turn] = slices.Clone(content)
	return nil
}

func (s *Journal) SaveCardPart(_ context.Context, turn string, part int, state orchestrator.SendState, message int) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if err := s.write(); err != nil {
		return err
	}
	if s.Parts[turn] == nil {
		s.Parts[turn] = make(map[int]orchestrator.CardPart)
	}
	s.Parts[turn][part] = orchestrator.CardPart{Part: part, State: state, Message: message}
	return nil
}

func (s *Journal) LoadCard(_ context.Context, turn string) ([]byte, []orchestrator.CardPart, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Unreadable {
		return nil, nil, fmt.Errorf("the disk is in trouble")
	}
	var parts []orchestrator.CardPart
	for _, i := range slices.Sorted(maps.Keys(s.Parts[turn])) {
		parts = append(parts, s.Parts[turn][i])
	}
	return slices.Clone(s.Cards[turn]), parts, nil
}

func (s *Journal) PostNotice(_ context.Context, l orchestrator.Notice) (int64, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.next++
	l.ID, l.State = s.next, orchestrator.Pending
	s.Notices[l.ID] = l
	return l.ID, s.write()
}

func (s *Journal) PendingNotices(context.Context) ([]orchestrator.Notice, error) {
	out := s.inState(orchestrator.Pending)
	time.Sleep(s.Reading)
	return out, nil
}

func (s *Journal) inState(state orchestrator.SendState) []orchestrator.Notice {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var out []orchestrator.Notice
	for _, id := range slices.Sorted(maps.Keys(s.Notices)) {
		if s.Notices[id].State == state {
			out = append(out, s.Notices[id])
		}
	}
	return out
}

func (s *Journal) MoveNotice(_ context.Context, id int64, state orchestrator.SendState, message int) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if err := s.write(); err != nil {
		return err
	}
	l := s.Notices[id]
	l.State, l.Message = state, message
	s.Notices[id] = l
	return nil
}

func (s *Journal) LostNotices(ctx context.Context) ([]orchestrator.Notice, error) {
	lost := s.inState(orchestrator.Sending)
	for _, l := range lost {
		if err := s.MoveNotice(ctx, l.ID, orchestrator.Unknown, 0); err != nil {
			return nil, err
		}
	}
	return lost, nil
}
