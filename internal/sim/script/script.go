package script

import (
	"fmt"
	"strings"
	"time"
)

// Script is a parsed prompt.
type Script struct {
	Steps []Step
	Plain string // the prompt without its directives and surrounding white space
	// Default is true if the prompt contains no directive. Steps then contains the default answer.
	Default bool
}

// Parse parses a prompt. It never fails.
func Parse(prompt string) Script {
	var (
		s     Script
		plain strings.Builder
	)
	for rest := prompt; rest != ""; {
		open := strings.Index(rest, "[[")
		if open < 0 {
			plain.WriteString(rest)
			break
		}
		plain.WriteString(rest[:open])
		d, n, ok := readDirective(rest[open:])
		if !ok {
			plain.WriteString("[[")
			rest = rest[open+2:]
			continue
		}
		rest = rest[open+n:]
		if d.name == "start" {
			s.Steps = nil
			plain.Reset()
			continue
		}
		s.Steps = append(s.Steps, d.step())
	}
	s.Plain = strings.TrimSpace(plain.String())
	if len(s.Steps) == 0 {
		s.Default = true
		s.Steps = defaultAnswer(s.Plain)
	}
	return s
}

// Responses divides the steps into responses of the model. A tool call ends a response. If the last step is a tool
// call, a response "Done." is added.
func (s Script) Responses() [][]Step {
	var (
		all [][]Step
		cur []Step
	)
	for _, st := range s.Steps {
		cur = append(cur, st)
		if CallsTool(st) {
			all, cur = append(all, cur), nil
		}
	}
	if len(all) > 0 && !speaks(cur) {
		cur = append(cur, Done())
	}
	return append(all, cur)
}

// CallsTool reports whether a step is a tool call, which ends a response of the model.
func CallsTool(st Step) bool {
	switch st.(type) {
	case Tool, Write, Request, Call, Background:
		return true
	}
	return false
}

// Done returns the response of the model after a tool call at the end of a script.
func Done() Text { return Text{Chunks: []string{"Done."}} }

func speaks(steps []Step) bool {
	for _, st := range steps {
		switch st.(type) {
		case Usage, Sleep, IgnoreTerm, HoldPipe, Compact:
		default:
			return true
		}
	}
	return false
}

const (
	defaultDelay = 40 * time.Millisecond
	quoteLimit   = 200
)

func defaultAnswer(plain string) []Step {
	asked := plain
	if r := []rune(asked); len(r) > quoteLimit {
		asked = string(r[:quoteLimit]) + "…"
	}
	quoted := "> " + strings.ReplaceAll(asked, "\n", "\n> ")
	if asked == "" {
		quoted = "> *(nothing)*"
	}
	answer := fmt.Sprintf("You asked:\n\n%s\n\nI am a **scripted agent**: no model is behind me, "+
		"but everything between us is real. Each word of this answer was streamed on its own, and "+
		"`[[tool cmd=\"date\"]]` in a message makes me run a command.\n\n"+
		"1. Send another message, I remember this one.\n2. Try `/model` or `/abort`.", quoted)
	return []Step{Text{Chunks: words(answer), Delay: defaultDelay}}
}

// words splits text into words. Each word includes the white space after it.
func words(text string) []string {
	var (
		parts []string
		start int
		space bool
	)
	for i, r := range text {
		isSpace := r == ' ' || r == '\n' || r == '\t'
		if space && !isSpace {
			parts = append(parts, text[start:i])
			start = i
		}
		space = isSpace
	}
	if start < len(text) {
		parts = append(parts, text[start:])
	}
	return parts
}
