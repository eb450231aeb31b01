package lang

// Error is an error for users, with a text in each language.
type Error struct {
	Explain func(p Printer) string // returns a whole sentence
	Kind    error                  // the error that errors.Is finds; nil for none
}

// Error returns the English text.
func (e *Error) Error() string { return e.Explain(Printer{}) }

func (e *Error) Unwrap() error { return e.Kind }
