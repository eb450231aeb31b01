package cli

// Answer folds text events into the answer they make.
type Answer struct{ text []byte }

// Add folds ev in; events without text change nothing.
func (a *Answer) Add(ev Event) {
	switch ev := ev.(type) {
	case TextDelta:
		a.text = append(a.text, ev.Text...)
	case TextRetracted:
		a.text = a.text[:max(len(a.text)-ev.Bytes, 0)]
	}
}

// String is the answer so far.
func (a *Answer) String() string { return string(a.text) }
