package claude

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// deltaLine is the memory for one line with a piece of a block. There are thousands of them a turn, so it
// is used again for the next.
type deltaLine struct {
	line  line
	event streamEvent
	delta delta
}

// decode reads raw if it is a piece of a block, written as Claude Code writes it; false says that another
// decoder has to look at it. What it returns is valid until the next call.
//
//	{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"…"}},
//	 "session_id":"…","parent_tool_use_id":null,"uuid":"…"}
func (d *deltaLine) decode(raw []byte) (*line, bool) {
	rest, ok := bytes.CutPrefix(raw, []byte(`{"type":"stream_event","event":{"type":"content_block_delta","index":`))
	if !ok {
		return nil, false
	}
	c := cursor{rest: rest}
	index := c.digits()
	c.skip(`,"delta":{"type":"`)
	var piece delta
	var text *string
	switch {
	case c.has(`text_delta","text":`):
		piece.Type, text = "text_delta", &piece.Text
	case c.has(`thinking_delta","thinking":`):
		piece.Type, text = "thinking_delta", &piece.Thinking
	case c.has(`input_json_delta","partial_json":`):
		piece.Type, text = "input_json_delta", &piece.PartialJSON
	default:
		return nil, false
	}
	*text = c.text("")
	c.skip(`}},"session_id":`)
	session := c.text(d.line.SessionID)
	c.skip(`,"parent_tool_use_id":`)
	parent := ""
	if !c.has("null") {
		parent = c.text(d.line.Parent)
	}
	c.skip(`,"uuid":`)
	c.text(d.line.UUID) // it is not used
	c.skip("}")
	if c.failed || len(c.rest) > 0 {
		return nil, false
	}
	d.delta = piece
	d.event = streamEvent{Type: "content_block_delta", Index: index, Delta: &d.delta}
	d.line.Type, d.line.SessionID, d.line.Parent, d.line.Event = "stream_event", session, parent, &d.event
	return &d.line, true
}

// cursor goes through JSON of a known shape. After something else it has failed, and stays so.
type cursor struct {
	rest   []byte
	failed bool
}

// has passes over s if it comes next.
func (c *cursor) has(s string) bool {
	if len(c.rest) < len(s) || string(c.rest[:len(s)]) != s {
		return false
	}
	c.rest = c.rest[len(s):]
	return true
}

func (c *cursor) skip(s string) { c.failed = c.failed || !c.has(s) }

// digits is a number of a few digits.
func (c *cursor) digits() (n int) {
	most := 0
	for most < len(c.rest) && most < 6 && c.rest[most] >= '0' && c.rest[most] <= '9' {
		n = 10*n + int(c.rest[most]-'0')
		most++
	}
	c.failed = c.failed || most == 0 || most > 1 && c.rest[0] == '0'
	c.rest = c.rest[most:]
	return n
}

// text is a string; known is returned instead of a copy if it is the same.
func (c *cursor) text(known string) string {
	if c.failed || len(c.rest) == 0 || c.rest[0] != '"' {
		c.failed = true
		return ""
	}
	end, escaped := 1, false
	for end < len(c.rest) && c.rest[end] != '"' {
		if c.rest[end] == '\\' {
			escaped = true
			end++
		}
		end++
	}
	if end >= len(c.rest) {
		c.failed = true
		return ""
	}
	quoted := c.rest[:end+1]
	c.rest = c.rest[end+1:]
	return c.unquote(quoted, known, escaped)
}

func (c *cursor) unquote(quoted []byte, known string, escaped bool) string {
	inner := quoted[1 : len(quoted)-1]
	if escaped {
		var s string
		c.failed = json.Unmarshal(quoted, &s) != nil
		return s
	}
	for _, b := range inner {
		if b < ' ' {
			c.failed = true
			return ""
		}
	}
	c.failed = !utf8.Valid(inner)
	if string(inner) == known {
		return known
	}
	return string(inner)
}
