package tgapi

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"ductor/bot/render"
)

// Button is a button below a message. When a user presses it, Telegram sends Data to the bot. Data has at most
// DataLimit bytes.
type Button struct {
	Text string `json:"text"`
	Data string `json:"data"`
}

// Keyboard contains the buttons below a message, in rows.
type Keyboard [][]Button

// Has reports whether the keyboard has a button with the given data.
func (k Keyboard) Has(data string) bool {
	return slices.ContainsFunc(k, func(row []Button) bool {
		return slices.ContainsFunc(row, func(b Button) bool { return b.Data == data })
	})
}

// Without returns the keyboard without the button that has the given data.
func (k Keyboard) Without(data string) (rest Keyboard) {
	for _, row := range k {
		row = slices.DeleteFunc(slices.Clone(row), func(b Button) bool { return b.Data == data })
		if len(row) > 0 {
			rest = append(rest, row)
		}
	}
	return rest
}

// Replaced returns the keyboard with another button in place of the one with the given data, or without that one if by is
// empty.
func (k Keyboard) Replaced(data string, by Button) (all Keyboard) {
	if by == (Button{}) {
		return k.Without(data)
	}
	for _, row := range k {
		row = slices.Clone(row)
		for i := range row {
			if row[i].Data == data {
				row[i] = by
			}
		}
		all = append(all, row)
	}
	return all
}

// DataLimit is Telegram's maximum length of a button's data, in bytes.
const DataLimit = 64

// ButtonData returns the data of a button. The action selects a handler, which gets arg. ButtonData returns false if
// the data is too long.
func ButtonData(action, arg string) (string, bool) {
	data := action + ":" + arg
	return data, len(data) <= DataLimit
}

// NewButton returns a button. The caller must make sure that its data is not too long.
func NewButton(text, action, what string) Button {
	data, _ := ButtonData(action, what)
	return Button{Text: text, Data: data}
}

// Digest returns a short hash of a name, for the data of a button that has no space for the name itself.
func Digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:8])
}

// ButtonNumber parses a number in a button's data. It accepts only numbers from 0 to 999 as strconv.Itoa writes them.
func ButtonNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && n < 1000 && strconv.Itoa(n) == s
}

// rowColumns is the number of columns of text that a phone shows in one row of buttons. buttonColumns is the number of
// columns that the edges of one button need. Telegram makes all buttons of a row equally wide, and cuts texts that are
// too long.
const (
	rowColumns    = 42
	buttonColumns = 2
)

// fitted splits a row of buttons into several rows if a phone would cut the texts of the buttons. The length of a text
// depends on the language.
func (k Keyboard) fitted() Keyboard {
	rows := make(Keyboard, 0, len(k))
	for _, row := range k {
		for len(row) > 0 {
			n := len(row)
			for n > 1 && !fits(row[:n]) {
				n--
			}
			rows, row = append(rows, row[:n]), row[n:]
		}
	}
	return rows
}

func fits(row []Button) bool {
	most := rowColumns/len(row) - buttonColumns
	for _, b := range row {
		if render.Width(b.Text) > most {
			return false
		}
	}
	return true
}
