package acp

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"ductor/cli"
)

// lineEvent is a line of an agent's output, or news about the output.
type lineEvent struct {
	line      []byte // without its newline; the receiver may keep it
	oversized bool   // line is the head of one that is too long
	lost      *cli.LostOutput
	caughtUp  bool  // what was printed before until was dealt out
	end       int64 // the offset after it
}

const (
	lineBuffer   = 32 << 10
	oversizeHead = 1 << 10
)

// readLines deals out r's lines, the first of which begins at offset from, with the offset after each. It says
// once when everything before until was dealt out, unless until is negative. The error is r's, wrapped; io.EOF is no error.
func readLines(r io.Reader, from, until int64, deal func(lineEvent)) error {
	l := lineReader{at: from, until: until, deal: deal, begun: from}
	l.in = bufio.NewReaderSize(&l.source, lineBuffer)
	l.source = source{r: r, before: l.beforeRead}
	for {
		part, err := l.in.ReadSlice('\n')
		l.take(part)
		var lost *cli.LostOutput
		switch {
		case err == nil || errors.Is(err, bufio.ErrBufferFull):
		case errors.As(err, &lost):
			l.jump(lost)
		default:
			l.finish()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("read the agent's output: %w", err)
		}
	}
}

// source is called before before each read.
type source struct {
	r      io.Reader
	before func()
}

func (s *source) Read(p []byte) (int, error) {
	s.before()
	return s.r.Read(p)
}

type lineReader struct {
	in     *bufio.Reader
	source source
	deal   func(lineEvent)

	at     int64 // how far was read
	begun  int64 // where the begun line began
	until  int64 // -1 once it was told
	line   []byte
	excess bool // the begun line is too long: only its head is kept
	torn   bool // the begun line has lost its beginning
}

// beforeRead tells that the past is over when all of it was read.
func (l *lineReader) beforeRead() {
	if l.until >= 0 && l.at >= l.until {
		l.until = -1
		l.deal(lineEvent{caughtUp: true, end: l.begun})
	}
}

func (l *lineReader) take(part []byte) {
	l.at += int64(len(part))
	whole := len(part) > 0 && part[len(part)-1] == '\n'
	if whole {
		part = part[:len(part)-1]
	}
	if !l.excess && len(l.line)+len(part) > cli.MaxLine {
		l.excess = true
		l.line = append([]byte(nil), l.line[:min(len(l.line), oversizeHead)]...)
	}
	if room := oversizeHead - len(l.line); l.excess {
		part = part[:min(len(part), max(room, 0))]
	}
	l.line = append(l.line, part...)
	if whole {
		l.end()
	}
}

func (l *lineReader) end() {
	if !l.torn {
		l.deal(lineEvent{line: l.line, oversized: l.excess, end: l.at})
	}
	l.line, l.excess, l.torn, l.begun = nil, false, false, l.at
}

// jump goes on after what is lost, without the line that it tore.
func (l *lineReader) jump(lost *cli.LostOutput) {
	l.line, l.excess, l.torn = nil, false, true
	l.at, l.begun = lost.To, lost.To
	l.deal(lineEvent{lost: lost, end: lost.To})
}

// finish deals out a last line without newline.
func (l *lineReader) finish() {
	if len(l.line) > 0 {
		l.end()
	}
	l.at = max(l.at, l.until) // what is missing will not come any more
	l.beforeRead()
}
