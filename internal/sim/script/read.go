package script

import "strings"

// maxDirective is the maximum length of a directive in bytes.
const maxDirective = 1 << 20

// readDirective parses the directive at the start of s, which begins with "[[", and returns the directive's length. If
// the brackets are not closed or the name is unknown, it returns false.
func readDirective(s string) (d *directive, n int, ok bool) {
	r := reader{s: s[:min(len(s), maxDirective)], at: 2}
	name := r.bare()
	k, known := kindOf(name)
	if !known {
		return nil, 0, false
	}
	d = &directive{name: name, kind: k, opts: map[string]string{}}
	for {
		r.space()
		if r.end() {
			return d, r.at + 2, true
		}
		if r.at >= len(r.s) || !r.value(d) {
			return nil, 0, false
		}
	}
}

type reader struct {
	s  string
	at int
}

func (r *reader) end() bool { return strings.HasPrefix(r.s[r.at:], "]]") }

func (r *reader) space() {
	for r.at < len(r.s) && strings.IndexByte(" \t\r\n", r.s[r.at]) >= 0 {
		r.at++
	}
}

// bare reads up to white space, a quote or an equals sign.
func (r *reader) bare() string {
	start := r.at
	for r.at < len(r.s) && strings.IndexByte(" \t\r\n=\"", r.s[r.at]) < 0 && !r.end() {
		r.at++
	}
	return r.s[start:r.at]
}

// value reads a value with or without a name, and adds it to d.
func (r *reader) value(d *directive) bool {
	if r.s[r.at] == '"' {
		v, ok := r.quoted()
		d.args = append(d.args, v)
		return ok
	}
	word := r.bare()
	if r.at >= len(r.s) || r.s[r.at] != '=' {
		d.args = append(d.args, word)
		return word != ""
	}
	r.at++
	v, ok := "", true
	if r.at < len(r.s) && r.s[r.at] == '"' {
		v, ok = r.quoted()
	} else {
		v = r.bareValue()
	}
	d.opts[word] = v
	return ok && word != ""
}

// bareValue is like bare, but does not stop at an equals sign.
func (r *reader) bareValue() string {
	start := r.at
	for r.at < len(r.s) && strings.IndexByte(" \t\r\n", r.s[r.at]) < 0 && !r.end() {
		r.at++
	}
	return r.s[start:r.at]
}

// quoted reads a value in quotes. The escapes \n, \t and \r are control characters. A backslash before any other
// character is removed.
func (r *reader) quoted() (string, bool) {
	var b strings.Builder
	for r.at++; r.at < len(r.s); r.at++ {
		c := r.s[r.at]
		switch {
		case c == '"':
			r.at++
			return b.String(), true
		case c == '\\' && r.at+1 < len(r.s):
			r.at++
			b.WriteByte(unescape(r.s[r.at]))
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	}
	return c
}
