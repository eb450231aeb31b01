package config

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a value that must appear in no log, error, argument or message. However it is printed, logged or
// encoded, it shows as "[redacted]", and as nothing when it is empty. Only Reveal gives the value.
type Secret string

// Reveal is the value itself.
func (s Secret) Reveal() string { return string(s) }

// String hides the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// Format hides the value from every verb of package fmt.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue hides the value from log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the value from encoders, JSON and TOML among them.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// AgentKey is an API key of one agent. The configuration's file never has one.
type AgentKey struct {
	Agent, Name string // the agent that gets it, in a variable of this name
	Value       Secret
	From        KeyPlace
}

// KeyPlace is where a key is kept.
type KeyPlace string

// The places of keys.
const (
	KeyInFile       KeyPlace = "the state directory"
	KeyInCredential KeyPlace = "a credential of systemd"
)
