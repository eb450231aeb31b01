package tgapi

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"ductor/bot/render"
)

// Button is an inline button. A press returns Data, which has at most DataLimit bytes.
type Button struct {
	Text string `json:"text"`
	Data string `json:"data"`
}

// Keyboard is the rows of buttons below a message. nil means no buttons.
type Keyboard [][]Button

// DataLimit is Telegram's limit for the data of a button, in bytes.
const DataLimit = 64

// ButtonData returns the data of a button: its action, and the text that the action parses. It returns false if a
// button cannot hold that much.
func ButtonData(action, what string) (string, bool) {
	data := action + ":" + what
	return data, len(data) <= DataLimit
}

// NewButton returns a button whose data is known to fit.
func NewButton(text, action, what string) Button {
	data, _ := ButtonData(action, what)
	return Button{Text: text, Data: data}
}

// Digest returns a short digest of a name, for buttons that may have no room for the name.
func Digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:8])
}

// ButtonNumber parses a small number in a button's data. It accepts only the form that strconv.Itoa produces.
func ButtonNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && n < 1000 && strconv.Itoa(n) == s
}

// rowColumns is the width for the labels of a row on a phone: Telegram makes all buttons of a row equally wide and cuts
// longer labels. buttonColumns is the width of each button's border.
const (
	rowColumns    = 42
	buttonColumns = 2
)

// fitted returns the keyboard with rows split if a phone would cut their labels: in some languages the words are longer
// than the row was made for.
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
