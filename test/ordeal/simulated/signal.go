package simulated

// signal wakes goroutines that wait for a change. The zero value is ready to use. A mutex of the caller must guard it.
type signal struct{ ch chan struct{} }

// wait returns a channel that the next broadcast closes.
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
