package simulated

// signal wakes everyone who waits for a change. The zero value is ready; the owner's lock guards it.
type signal struct{ ch chan struct{} }

// wait is closed at the next broadcast.
func (s *signal) wait() <-chan struct{} {
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) broadcast() {
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
