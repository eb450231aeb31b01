package cli

import "bytes"

// PlainJSON takes out of a settings file what JSON does not have and agents allow there: comments of both kinds, and
// commas before a closing bracket. It looks at nothing else: what is no JSON stays so.
func PlainJSON(raw []byte) []byte {
	var out bytes.Buffer
	comma := -1 // where in out a comma is that nothing followed yet
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '"':
			end := stringEnd(raw, i)
			out.Write(raw[i:end])
			i, comma = end, -1
			continue
		case c == '/' && i+1 < len(raw) && (raw[i+1] == '/' || raw[i+1] == '*'):
			i = commentEnd(raw, i)
			continue
		case c == ',':
			comma = out.Len()
		case (c == '}' || c == ']') && comma >= 0:
			out.Bytes()[comma] = ' '
			comma = -1
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			comma = -1
		}
		out.WriteByte(raw[i])
		i++
	}
	return out.Bytes()
}

// stringEnd is behind the string that begins at i.
func stringEnd(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

// commentEnd is behind the comment that begins at i. The end of a line is not part of it.
func commentEnd(raw []byte, i int) int {
	end, length := []byte("\n"), 0
	if raw[i+1] == '*' {
		end, length = []byte("*/"), 2
	}
	if at := bytes.Index(raw[i+2:], end); at >= 0 {
		return i + 2 + at + length
	}
	return len(raw)
}
