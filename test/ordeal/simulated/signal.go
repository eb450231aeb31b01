package simulated

// signal wakes all goroutines that wait for a change. The zero value is ready to use. The owner's lock guards it.
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
