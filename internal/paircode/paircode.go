// Package paircode makes and reads the codes by which a user proves to have seen a console or a link of an owner.
//
// It does NOT keep codes, and does not count who tries them.
package paircode

import (
	"crypto/subtle"
	"encoding/base32"
	"fmt"
	"io"
	"strings"
	"time"
)

// Limits that all who wait for a code keep.
const (
	Life      = 10 * time.Minute
	MostWrong = 10 // codes
	length    = 12 // letters, of 5 bits each
)

// New makes a code of 60 random bits.
func New(random io.Reader) (string, error) {
	bits := make([]byte, 8)
	if _, err := io.ReadFull(random, bits); err != nil {
		return "", fmt.Errorf("make a code: %w", err)
	}
	return base32.StdEncoding.EncodeToString(bits)[:length], nil
}

// Sent is the code that a message sends as /start CODE, in capital letters; false for a message that sends none. It costs
// next to nothing.
func Sent(text string) (code string, ok bool) {
	const most = 64 // bytes that are looked at
	if len(text) > most {
		return "", false
	}
	code, ok = strings.CutPrefix(strings.TrimSpace(text), "/start ")
	code = strings.ToUpper(strings.TrimSpace(code))
	return code, ok && Shaped(code)
}

// Shaped says whether a text can be a code.
func Shaped(text string) bool {
	return len(text) == length && !strings.ContainsFunc(text, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '2' || r > '7') })
}

// Same compares in a time that does not depend on where two texts differ.
func Same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// Link opens a chat with a bot that sends it the code.
func Link(bot, code string) string { return "https://t.me/" + bot + "?start=" + code }
