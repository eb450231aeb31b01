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

// Keyboard contains the rows of buttons below a message. nil means no buttons.
type Keyboard [][]Button

// DataLimit is Telegram's limit for the data of a button, in bytes.
const DataLimit = 64

// ButtonData returns the data of a button: its action, and a text that the handler of the action parses. It returns
// false if the data is too long for a button.
func ButtonData(action, what string) (string, bool) {
	data := action + ":" + what
	return data, len(data) <= DataLimit
}

// NewButton returns a button. The caller guarantees that the data fits.
func NewButton(text, action, what string) Button {
	data, _ := ButtonData(action, what)
	return Button{Text: text, Data: data}
}

// Digest returns a short digest of a name, for use in buttons where the name may be too long.
func Digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:8])
}

// ButtonNumber parses a small number in a button's data. It accepts only the output of strconv.Itoa.
func ButtonNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && n < 1000 && strconv.Itoa(n) == s
}

// rowColumns is the width of the labels in one row on a phone. Telegram makes all buttons of a row equally wide and
// cuts longer labels. buttonColumns is the width of each button's border.
const (
	rowColumns    = 42
	buttonColumns = 2
)

// fitted returns the keyboard, with rows split if a phone would cut their labels. In some languages the labels are
// longer.
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
