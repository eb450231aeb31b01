package secrets

import (
	"fmt"
	"io"
	"log/slog"
)

// Value is a secret that must not appear in a log, error, argument or message. All ways of printing, logging and
// encoding it show Removed instead, or "" if it is empty. Only Reveal returns the secret.
type Value string

// Reveal returns the secret.
func (v Value) Reveal() string { return string(v) }

// String hides the secret.
func (v Value) String() string {
	if v == "" {
		return ""
	}
	return Removed
}

// Format hides the secret from every verb of package fmt.
func (v Value) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, v.String()) }

// LogValue hides the secret from log/slog.
func (v Value) LogValue() slog.Value { return slog.StringValue(v.String()) }

// MarshalText hides the secret from encoders such as JSON and TOML.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }
