package telegram

import (
	"encoding/json"
	"slices"
)

// Button is a button below a message.
type Button struct {
	Text string `json:"text"`
	Data string `json:"callback_data,omitempty"`
	URL  string `json:"url,omitempty"`
}

type wireMarkup struct {
	Keyboard [][]Button `json:"inline_keyboard"`
}

func wireKeyboard(rows [][]Button) *wireMarkup {
	if len(rows) == 0 {
		return nil
	}
	return &wireMarkup{rows}
}

// maxButtons is the maximum number of buttons of a message. If a message has more buttons, Telegram returns an error
// about the length of the keyboard.
const maxButtons = 100

// keyboard returns the inline keyboard in reply_markup. It accepts and ignores reply keyboards, which older bots use.
func (q *request) keyboard() ([][]Button, *Error) {
	text := q.params["reply_markup"]
	if text == "" {
		return nil, nil
	}
	if !json.Valid([]byte(text)) {
		return nil, badRequest("can't parse reply keyboard markup JSON object")
	}
	var markup struct {
		Rows *[]json.RawMessage `json:"inline_keyboard"`
	}
	if text[0] != '{' {
		return nil, badRequest("object expected as reply markup")
	}
	if json.Unmarshal([]byte(text), &markup) != nil {
		return nil, badRequest(`field "inline_keyboard" must be of type Array`)
	}
	if markup.Rows == nil {
		return nil, nil
	}
	return parseRows(*markup.Rows)
}

func parseRows(raw []json.RawMessage) ([][]Button, *Error) {
	var rows [][]Button
	count := 0
	for _, r := range raw {
		var list []json.RawMessage
		if json.Unmarshal(r, &list) != nil {
			return nil, badRequest(`field "inline_keyboard" must be an Array of Arrays`)
		}
		row, err := parseRow(list)
		if err != nil {
			return nil, err
		}
		count += len(row)
		if len(row) > 0 {
			rows = append(rows, row)
		}
	}
	if count > maxButtons {
		return nil, badRequest("reply markup is too long")
	}
	return rows, nil
}

// parseRow parses a row of buttons. It drops buttons without a text, like the real server.
func parseRow(raw []json.RawMessage) ([]Button, *Error) {
	var row []Button
	for _, r := range raw {
		b, err := parseButton(r)
		if err != nil {
			return nil, err
		}
		if b.Text != "" {
			row = append(row, b)
		}
	}
	return row, nil
}

func parseButton(raw json.RawMessage) (Button, *Error) {
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return Button{}, badRequest("can't parse inline keyboard button: InlineKeyboardButton must be an Object")
	}
	text, ok := fields["text"].(string)
	if !ok {
		return Button{}, badRequest(`can't parse inline keyboard button: Can't find field "text"`)
	}
	b := Button{Text: text}
	data, hasData := fields["callback_data"].(string)
	link, hasLink := fields["url"].(string)
	switch {
	case hasLink && link != "":
		b.URL, ok = checkLink(link)
		if !ok {
			return b, badRequest("inline keyboard button URL '%s' is invalid: Wrong HTTP URL", link)
		}
	case hasData:
		b.Data = data
		if data == "" || len(data) > MaxCallbackData {
			return b, badRequest("BUTTON_DATA_INVALID")
		}
	case len(fields) > 1:
		return b, badRequest("BUTTON_TYPE_INVALID")
	default:
		return b, badRequest("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
	}
	return b, nil
}

func sameKeyboard(a, b [][]Button) bool {
	return slices.EqualFunc(a, b, func(x, y []Button) bool { return slices.Equal(x, y) })
}

func button(rows [][]Button, name string) (Button, bool) {
	for _, row := range rows {
		for _, b := range row {
			if b.Text == name || (b.Data != "" && b.Data == name) {
				return b, true
			}
		}
	}
	return Button{}, false
}
