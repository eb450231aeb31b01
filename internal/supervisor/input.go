package supervisor

import (
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
		return s.agent.in.Close()
	}
	_, err := s.agent.in.Write(it.data) // the agent's death closes it
	return err
}

// queueInput hands data to pumpStdin. It does not wait: this is called by who reads the client's frames.
func (s *server) queueInput(data []byte, done func(error)) {
	select {
	case s.input <- inputItem{data: slices.Clone(data), done: done}:
	default:
		done(os.ErrDeadlineExceeded)
	}
}
