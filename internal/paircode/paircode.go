// Package paircode creates and parses pairing codes. By sending such a code to the bot, a user proves that an owner
// gave it to them, or that they see the console of the machine.
//
// The package neither stores codes nor counts attempts.
package paircode

import (
	"crypto/subtle"
	"encoding/base32"
	"fmt"
	"io"
	"strings"
	"time"
)

// Limits of a pairing code. MostWrong limits the attempts of all users together.
const (
	Life      = 10 * time.Minute
	MostWrong = 10 // number of failed attempts after which the code is void
	length    = 12 // number of characters, of 5 bits each
)

// New returns a code with 60 random bits.
func New(random io.Reader) (string, error) {
	bits := make([]byte, 8)
	if _, err := io.ReadFull(random, bits); err != nil {
		return "", fmt.Errorf("make a code: %w", err)
	}
	return base32.StdEncoding.EncodeToString(bits)[:length], nil
}

// Sent returns the code in a message "/start CODE", in capital letters. It returns false for all other messages. It is
// fast, because ductor calls it for messages of strangers.
func Sent(text string) (code string, ok bool) {
	const most = 64 // maximum length of the message, in bytes
	if len(text) > most {
		return "", false
	}
	code, ok = strings.CutPrefix(strings.TrimSpace(text), "/start ")
	code = strings.ToUpper(strings.TrimSpace(code))
	return code, ok && Shaped(code)
}

// Shaped reports whether a text has the form of a code.
func Shaped(text string) bool {
	return len(text) == length && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < '2' || r > '7')
	})
}

// Same compares two codes in a time that does not depend on their contents.
func Same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// Link returns a link that opens the chat with a bot. When the user presses Start there, Telegram sends the code to the
// bot.
func Link(bot, code string) string { return "https://t.me/" + bot + "?start=" + code }
