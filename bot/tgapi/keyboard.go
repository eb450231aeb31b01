package tgapi

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"ductor/bot/render"
)

// Button is one inline button. Data comes back to us when it is pressed; at most DataLimit bytes.
type Button struct {
	Text string `json:"text"`
	Data string `json:"data"`
}

// Keyboard is the rows of buttons below a message. A nil Keyboard is none.
type Keyboard [][]Button

// DataLimit is what Telegram lets a button carry, in bytes.
const DataLimit = 64

// ButtonData is the data of a button: the action that it belongs to, and what that action reads. False if it is more
// than a button can carry.
func ButtonData(action, what string) (string, bool) {
	data := action + ":" + what
	return data, len(data) <= DataLimit
}

// NewButton makes a button with what is known to fit into ButtonData.
func NewButton(text, action, what string) Button {
	data, _ := ButtonData(action, what)
	return Button{Text: text, Data: data}
}

// Digest stands for a name in the data of a button, which may have no room for the name.
func Digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:8])
}

// ButtonNumber reads a small number of a button's data, written in the one way that strconv.Itoa writes it.
func ButtonNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && n < 1000 && strconv.Itoa(n) == s
}

// rowColumns is what the labels of a row may take on a phone: Telegram gives all buttons of a row the same width and cuts longer
// labels. buttonColumns is what the borders of each button take of it.
const (
	rowColumns    = 42
	buttonColumns = 2
)

// fitted is the keyboard with the rows cut whose labels a phone would cut: the words of some languages are longer than those that
// a row was made for.
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
