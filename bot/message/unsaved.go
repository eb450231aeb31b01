package message

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"ductor/orchestrator"
)

// unsaved contains the messages in the chat whose IDs could not be stored because the disk was full. If ductor crashes
// before it has stored the ID of a message, the next process cannot edit the message.
type unsaved struct {
	mu       sync.Mutex
	messages []*Message
}

// saveLater stores the ID of a sent message after a pause if err means that the disk is full. After other errors, it
// does nothing.
func (s *Messages) saveLater(m *Message, state orchestrator.SendState, err error) {
	if state != orchestrator.Sent || !errors.Is(err, orchestrator.ErrDiskFull) {
		return
	}
	s.unsaved.mu.Lock()
	defer s.unsaved.mu.Unlock()
	if len(s.unsaved.messages) == 0 {
		time.AfterFunc(owedRetry, s.saveAgain)
	}
	if !slices.Contains(s.unsaved.messages, m) {
		s.unsaved.messages = append(s.unsaved.messages, m)
	}
}

func (s *Messages) saveAgain() {
	s.unsaved.mu.Lock()
	all := s.unsaved.messages
	s.unsaved.messages = nil
	s.unsaved.mu.Unlock()
	for _, m := range all {
		err := m.saveID(context.Background())
		if err != nil && !errors.Is(err, orchestrator.ErrDiskFull) { // do not fill the log while the disk is full
			m.log.Warn("store the ID of a message again", "err", err)
		}
	}
}

// saveID stores the ID of the message, unless another Message with the same key has changed the row.
func (m *Message) saveID(ctx context.Context) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	row, err := m.all.store.FindMessage(ctx, m.spec.Key)
	if err != nil || row.State != orchestrator.Sending {
		return err
	}
	return m.storeRow(ctx)
}
