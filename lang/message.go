package lang

import (
	"fmt"
	"time"
)

// Message is a text that is written before its language is known. Its language is chosen when a user reads it. The
// arguments may be strings, numbers, durations and other messages. The zero value is empty.
type Message struct {
	Key  Key // if empty, the message consists of its arguments, which are words of others
	Args []any
}

// NewMessage returns the message with the text of key, and with args in its placeholders; see Printer.Text.
func NewMessage(key Key, args ...any) Message { return Message{key, args} }

// Words returns a message that is the same in all languages, such as an agent's own error text.
func Words(s string) Message {
	if s == "" {
		return Message{}
	}
	return Message{Args: []any{s}}
}

// IsZero reports whether the message is empty.
func (m Message) IsZero() bool { return m.Key == "" && len(m.Args) == 0 }

// In returns the message in the language of p.
func (m Message) In(p Printer) string {
	args := make([]any, len(m.Args))
	for i, arg := range m.Args {
		switch arg := arg.(type) {
		case Message:
			args[i] = arg.In(p)
		case time.Duration:
			args[i] = p.limit(arg)
		default:
			args[i] = arg
		}
	}
	if m.Key == "" {
		return fmt.Sprint(args...)
	}
	return p.Text(m.Key, args...)
}

// String returns the message in English.
func (m Message) String() string { return m.In(Printer{}) }

// limit formats how long something may take, or took. It omits fractions of seconds from durations of a second or more.
func (p Printer) limit(d time.Duration) string {
	if d < time.Second {
		return p.Elapsed(d)
	}
	return p.Span(d)
}
