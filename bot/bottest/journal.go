package bottest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// Journal stores outgoing messages and cards in memory. It is a fake of the corresponding methods of
// orchestrator.Journal.
type Journal struct {
	Mu         sync.Mutex
	Cards      map[string][]byte
	Messages   []orchestrator.Message // messages in the order in which they were first saved
	Reading    time.Duration          // how long OwedMessages takes
	Reads      int                    // number of calls of OwedMessages
	Writes     int
	Unreadable bool        // true if LoadCard fails
	Full       atomic.Bool // true if all writes fail, as on a full disk
	// DiesAt simulates a killed process: the write with this number fails, and so do all later ones. 0 disables this.
	DiesAt int
}

// NewJournal returns an empty Journal.
func NewJournal() *Journal { return &Journal{Cards: make(map[string][]byte)} }

func (s *Journal) write() error {
	s.Writes++
	if s.DiesAt > 0 && s.Writes >= s.DiesAt {
		return fmt.Errorf("ductor is dead")
	}
	if s.Full.Load() {
		return orchestrator.ErrDiskFull
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

func (s *Journal) LoadCard(_ context.Context, turn string) ([]byte, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Unreadable {
		return nil, fmt.Errorf("the disk is in trouble")
	}
	return slices.Clone(s.Cards[turn]), nil
}

// SaveMessage stores a message, and replaces a message with the same key.
func (s *Journal) SaveMessage(_ context.Context, m orchestrator.Message) error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if err := s.write(); err != nil {
		return err
	}
	if i := slices.IndexFunc(s.Messages, func(o orchestrator.Message) bool { return o.Key == m.Key }); i >= 0 {
		s.Messages[i] = m
	} else {
		s.Messages = append(s.Messages, m)
	}
	return nil
}

// AddMessage stores a message, unless a message has the same key.
func (s *Journal) AddMessage(_ context.Context, m orchestrator.Message) (bool, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if err := s.write(); err != nil {
		return false, err
	}
	if slices.ContainsFunc(s.Messages, func(o orchestrator.Message) bool { return o.Key == m.Key }) {
		return false, nil
	}
	s.Messages = append(s.Messages, m)
	return true, nil
}

// FindMessage returns the message with the key. If no message has the key, it returns the zero Message.
func (s *Journal) FindMessage(_ context.Context, key string) (orchestrator.Message, error) {
	return first(s.those(func(m orchestrator.Message) bool { return m.Key == key })), nil
}

// MessageAt returns the message with the ID in a conversation.
func (s *Journal) MessageAt(_ context.Context, in orchestrator.ConversationID, id int) (orchestrator.Message, error) {
	return first(s.those(func(m orchestrator.Message) bool { return m.Conversation == in && m.ID == id && id > 0 })),
		nil
}

// MessagesOf returns the messages of a turn.
func (s *Journal) MessagesOf(_ context.Context, turn cli.TurnID) ([]orchestrator.Message, error) {
	return s.those(func(m orchestrator.Message) bool { return m.Turn == turn }), nil
}

// CommitMessages does nothing, because the journal loses nothing.
func (*Journal) CommitMessages(context.Context) error { return nil }

// OwedMessages returns the messages whose content is not sent yet.
func (s *Journal) OwedMessages(context.Context) ([]orchestrator.Message, error) {
	out := s.those(func(m orchestrator.Message) bool { return m.Content != nil })
	s.Mu.Lock()
	s.Reads++
	s.Mu.Unlock()
	time.Sleep(s.Reading)
	return out, nil
}

func (s *Journal) those(are func(orchestrator.Message) bool) (out []orchestrator.Message) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, m := range s.Messages {
		if are(m) {
			out = append(out, m)
		}
	}
	return out
}

func first(all []orchestrator.Message) orchestrator.Message {
	if len(all) == 0 {
		return orchestrator.Message{}
	}
	return all[0]
}
