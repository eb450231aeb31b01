package script

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// directive contains the words between double brackets. Its values are not checked yet.
type directive struct {
	name string
	kind kind
	args []string          // values that have no name
	opts map[string]string // values that have a name
	seen map[string]bool   // names that kind.make has read; any other name in opts is an error
	err  error
}

// kind describes all directives with the same name.
type kind struct {
	bare string // name that a directive may omit: with the name "cmd", [[tool "ls"]] means [[tool cmd="ls"]]
	make func(*directive) Step
}

// kindOf returns the kind of the directives with the given name. The function kind.make reads the values of a directive
// with methods such as text and duration. These methods store the first error in the directive.
func kindOf(name string) (kind, bool) {
	switch name {
	case "text":
		return kind{"text", func(d *directive) Step { c, w := d.chunks(); return Text{c, w} }}, true
	case "words":
		return kind{"token", func(d *directive) Step { return d.words() }}, true
	case "think":
		return kind{"text", func(d *directive) Step { c, w := d.chunks(); return Think{c, w} }}, true
	case "retry-text":
		return kind{"text", func(d *directive) Step { c, w := d.chunks(); return RetryText{c, w} }}, true
	case "tool":
		return kind{"cmd", func(d *directive) Step {
			return Tool{Command: d.must("cmd"), Dir: d.text("dir", ""), As: d.text("as", "")}
		}}, true
	case "ask":
		return kind{"cmd", askStep}, true
	case "request":
		return kind{"kind", func(d *directive) Step {
			return Request{Kind: d.must("kind"), Params: d.text("params", "{}")}
		}}, true
	case "background":
		return kind{"cmd", func(d *directive) Step {
			return Background{Command: d.must("cmd"), Chunks: cut(d.must("text"), defaultChunk)}
		}}, true
	case "question":
		return kind{"text", func(d *directive) Step {
			return Question{Text: d.must("text"), Secret: d.text("secret", "") != "", Echo: d.text("echo", "") != ""}
		}}, true
	case "write":
		return kind{"path", func(d *directive) Step { return Write{Path: d.must("path"), Body: d.text("text", "")} }},
			true
	case "call":
		return kind{"tool", func(d *directive) Step { return Call{Tool: d.must("tool"), Args: d.text("args", "{}")} }},
			true
	case "error":
		return kind{"status", errorStep}, true
	case "sleep":
		return kind{"for", func(d *directive) Step { return Sleep{d.duration("for", time.Second)} }}, true
	case "usage":
		return kind{"", usageStep}, true
	case "limits":
		return kind{"json", func(d *directive) Step { return Limits{d.must("json")} }}, true
	case "start": // Parse handles this directive itself
		return kind{}, true
	}
	return brokenKindOf(name)
}

// brokenKindOf returns the kind of a directive that makes an agent misbehave.
func brokenKindOf(name string) (kind, bool) {
	switch name {
	case "hang":
		return kind{"", func(*directive) Step { return Hang{} }}, true
	case "drop":
		return kind{"times", func(d *directive) Step { return Drop{d.number("times", 0, 1000)} }}, true
	case "end":
		return kind{"reason", endStep}, true
	case "crash":
		return kind{"code", func(d *directive) Step { return Crash{d.number("code", 1, 255), d.text("stderr", "")} }},
			true
	case "silent":
		return kind{"", func(*directive) Step { return Silent{} }}, true
	case "garbage":
		return kind{"bytes", func(d *directive) Step { return Garbage{d.number("bytes", 256, 1<<30)} }}, true
	case "longline":
		return kind{"bytes", func(d *directive) Step { return LongLine{d.number("bytes", 1<<20, 1<<30)} }}, true
	case "endlessline":
		return kind{"", func(*directive) Step { return EndlessLine{} }}, true
	case "ignore-term":
		return kind{"", func(*directive) Step { return IgnoreTerm{} }}, true
	case "late":
		return kind{"text", func(d *directive) Step {
			return Late{d.must("text"), d.text("file", ""), d.duration("after", 100*time.Millisecond)}
		}}, true
	case "hold-pipe":
		return kind{"for", func(d *directive) Step { return HoldPipe{d.duration("for", time.Minute)} }}, true
	case "compact":
		return kind{"", func(*directive) Step { return Compact{} }}, true
	case "history":
		return kind{"", func(*directive) Step { return History{} }}, true
	}
	return kind{}, false
}

func askStep(d *directive) Step {
	d.text("tool", "Bash")
	return Tool{Command: d.text("cmd", "touch asked.txt"), Ask: true}
}

func errorStep(d *directive) Step {
	return APIError{
		Status:     d.number("status", 500, 599),
		RetryAfter: d.duration("retry_after", 0),
		Times:      d.number("times", 0, 1000),
		Delay:      d.duration("delay", 0),
		Message:    d.text("message", ""),
	}
}

func endStep(d *directive) Step {
	e := End{Reason: EndReason(d.must("reason")), Times: d.number("times", 0, 1000)}
	switch e.Reason {
	case EndMaxTokens, EndRefusal, EndUnsaid:
	default:
		d.fail("reason=%q is none of %s, %s, %s", e.Reason, EndMaxTokens, EndRefusal, EndUnsaid)
	}
	return e
}

func usageStep(d *directive) Step {
	const most = 1 << 40
	u := Usage{
		Input:  int64(d.number("in", 0, most)),
		Output: int64(d.number("out", 0, most)),
		Cached: int64(d.number("cached", 0, most)),
		Cost:   -1,
	}
	if v := d.text("cost", ""); v != "" {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || f < 0 || f > 1e6 {
			d.fail("cost=%q is no amount", v)
		}
		u.Cost = f
	}
	return u
}

// step returns the step of a directive. If a value is invalid, step returns a Text that describes the error.
func (d *directive) step() Step {
	d.seen = map[string]bool{}
	st := d.kind.make(d)
	if d.err == nil && len(d.args) > 0 {
		d.fail("%q is one value too many", d.args[0])
	}
	for name := range d.opts {
		if d.err == nil && !d.seen[name] {
			d.fail("no option %s", name)
		}
	}
	if d.err != nil {
		return Text{Chunks: []string{fmt.Sprintf("script: [[%s]]: %v\n", d.name, d.err)}}
	}
	return st
}

func (d *directive) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// text returns the value with the given name. If the directive does not contain this name, text returns the next value
// without a name. If no such value remains, text returns fallback.
func (d *directive) text(name, fallback string) string {
	d.seen[name] = true
	if v, ok := d.opts[name]; ok {
		return v
	}
	if d.kind.bare == name && len(d.args) > 0 {
		v := d.args[0]
		d.args = d.args[1:]
		return v
	}
	return fallback
}

func (d *directive) must(name string) string {
	v := d.text(name, "")
	if v == "" {
		d.fail("%s is missing", name)
	}
	return v
}

func (d *directive) number(name string, fallback, most int) int {
	v := d.text(name, "")
	if v == "" {
		return fallback
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > most {
		d.fail("%s=%q is no number up to %d", name, v, most)
		return fallback
	}
	return n
}

// duration parses a value such as "25ms" or "1s". A number without a unit is in milliseconds, except that retry_after
// is in seconds.
func (d *directive) duration(name string, fallback time.Duration) time.Duration {
	v := d.text(name, "")
	if v == "" {
		return fallback
	}
	unit := time.Millisecond
	if name == "retry_after" {
		unit = time.Second
	}
	if n, err := strconv.Atoi(v); err == nil && n >= 0 && n < 1e7 {
		return time.Duration(n) * unit
	}
	w, err := time.ParseDuration(v)
	if err != nil || w < 0 {
		d.fail("%s=%q is no duration", name, v)
		return fallback
	}
	return w
}

const defaultChunk = 8

// chunks reads the values for streamed text. It returns the text in pieces, and the pause between two pieces.
func (d *directive) chunks() ([]string, time.Duration) {
	delay := d.duration("delay", 0)
	n, size := d.number("n", 0, 1e6), d.number("size", 0, 1e6)
	chunk := d.number("chunk", defaultChunk, 1e6)
	text := d.text("text", "") + d.contents()
	switch {
	case n > 0 && text != "":
		d.fail("give a text or n, not both")
	case n*max(size, 8) > 1<<25:
		d.fail("n=%d is too much", n)
	case n > 0:
		return Generated(n, size), delay
	case text == "":
		d.fail("nothing to say: give a text or n")
	}
	return cut(text, max(chunk, 1)), delay
}

// words returns a step that streams numbered words: p7w0, p7w1 and so on, each followed by a space.
func (d *directive) words() Step {
	const most = 1e6
	token, from := d.must("token"), d.number("from", 0, most)
	var text strings.Builder
	for i := range d.number("n", 1, most) {
		fmt.Fprintf(&text, "%sw%d ", token, from+i)
	}
	return Text{cut(text.String(), max(1, d.number("chunk", defaultChunk, most))), d.duration("delay", 0)}
}

// contents returns the value of the environment variable that the directive names with env, followed by the content of
// the file that it names with file.
func (d *directive) contents() string {
	text := os.Getenv(d.text("env", ""))
	if path := d.text("file", ""); path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			d.fail("%v", err)
		}
		text += string(data)
	}
	return text
}

// Generated returns n pieces of a plain text. If size is 0, each piece is a word. Otherwise each piece has exactly size
// characters.
func Generated(n, size int) []string {
	vocabulary := [...]string{"The ", "quick ", "brown ", "fox ", "jumps ", "over ", "the ", "lazy ", "dog. "}
	chunks := make([]string, n)
	if size == 0 {
		for i := range chunks {
			chunks[i] = vocabulary[i%len(vocabulary)]
		}
		return chunks
	}
	sentence := strings.Join(vocabulary[:], "")
	for i, at := 0, 0; i < n; i++ {
		var b strings.Builder
		for b.Len() < size {
			take := min(size-b.Len(), len(sentence)-at)
			b.WriteString(sentence[at : at+take])
			at = (at + take) % len(sentence)
		}
		chunks[i] = b.String()
	}
	return chunks
}

// cut splits text into chunks of size characters.
func cut(text string, size int) []string {
	var chunks []string
	count, start := 0, 0
	for i := range text {
		if count == size {
			chunks = append(chunks, text[start:i])
			start, count = i, 0
		}
		count++
	}
	return append(chunks, text[start:])
}
