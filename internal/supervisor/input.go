package supervisor

import (
	"errors"
	"fmt"
	"os"
	"slices"
)

const inputQueue = 4

// inputItem is something to write to the agent, or the end of it.
type inputItem struct {
	data []byte
	last bool
	done func(error)
}

// pumpStdin writes to the agent, one thing after the other, whichever client it came from.
func (s *server) pumpStdin() {
	for {
		select {
		case it := <-s.input:
			it.done(s.writeInput(it))
		case <-s.done:
			return
		}
	}
}

func (s *server) writeInput(it inputItem) error {
	if it.last {
		if err := s.agent.in.Close(); !errors.Is(err, os.ErrClosed) { // else it was asked for twice, or the agent is dead
			return err
		}
		return nil
	}
	_, err := s.agent.in.Write(it.data) // the agent's death closes it
	return err
}

// takeInput hands data of an owner's to pumpStdin, and counts it. It does not wait: this is called by who
// reads the client's frames.
func (c *session) takeInput(seq uint64, data []byte) {
	s := c.srv
	it := inputItem{data: slices.Clone(data), done: func(err error) { c.reply(seq, err) }}
	if err := s.queueInput(c, it); err != nil {
		c.reply(seq, err)
	}
}

func (c *session) closeInput(seq uint64) {
	it := inputItem{last: true, done: func(err error) { c.reply(seq, err) }}
	if err := c.srv.queueInput(c, it); err != nil {
		c.reply(seq, err)
	}
}

// queueInput takes it whole or gives an error. Only the owner of this very moment is listened to: a new one
// was told how much input there is, and nothing that a dead client left in its socket may be added to that.
func (s *server) queueInput(c *session, it inputItem) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.owner != c:
		return errNotOwner
	case s.inputDone && !it.last:
		return fmt.Errorf("write to the agent: %w", os.ErrClosed)
	}
	select {
	case s.input <- it:
	default:
		return fmt.Errorf("the agent does not read: %w", os.ErrDeadlineExceeded)
	}
	s.inputEnd += int64(len(it.data))
	s.inputDone = s.inputDone || it.last
	return nil
}
