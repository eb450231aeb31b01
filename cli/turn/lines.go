package turn

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"ductor/cli"
)

// MaxLine is the longest line taken from an agent, in bytes, when nothing else is said.
const MaxLine = 64 << 20

const (
	lineBuffer   = 8 << 10   // size of a buffer at rest
	lineRetained = 256 << 10 // a buffer above this is given back once its long line was handled
	oversizeHead = 1 << 10   // how much of an oversized line is kept
)

// lineSink gets what readLines reads. end is the offset after the line, its newline included. Only line
// must be set.
type lineSink struct {
	line      func(line []byte, end int64)
	oversized func(head []byte, size, end int64)
	lost      func(*cli.LostOutput)
}

// readLines reads newline-ended lines from r, which begins at offset, until its end and hands each, without its newline, to
// tell. The slice is valid during the call only. A last line without newline counts.
//
// A line of more than limit bytes (MaxLine if limit is not positive) is thrown away while it streams by, so memory stays bounded
// however long it is; tell.oversized gets its first bytes and its size when it ends. What a *LostOutput cut in two is thrown
// away as well. The error is r's, wrapped; io.EOF is no error.
func readLines(r io.Reader, limit int, offset int64, tell lineSink) error {
	if limit <= 0 {
		limit = MaxLine
	}
	lr := lineReader{limit: limit, tell: tell, at: offset, buf: make([]byte, min(lineBuffer, limit+1))}
	for {
		n, err := r.Read(lr.buf[lr.used:])
		lr.take(n)
		var lost *cli.LostOutput
		switch {
		case err == nil:
			continue
		case errors.As(err, &lost):
			lr.jump(lost)
			continue
		}
		lr.finish()
		if err == io.EOF {
			return nil
		}
		return fmt.Errorf("read lines: %w", err)
	}
}

type lineReader struct {
	limit int
	tell  lineSink
	at    int64 // where the begun line began

	buf  []byte
	used int  // bytes of buf that hold the begun line
	torn bool // the begun line has lost its beginning

	skipping bool
	head     []byte
	skipped  int64
}

// take handles n fresh bytes behind buf[:used] and leaves room for more.
func (l *lineReader) take(n int) {
	data, scanned := l.buf[:l.used+n], l.used
	for {
		i := bytes.IndexByte(data[scanned:], '\n')
		if i < 0 {
			break
		}
		l.end(data[:scanned+i], 1)
		data, scanned = data[scanned+i+1:], 0
	}
	if l.skipping || len(data) > l.limit {
		l.skip(data)
		data = nil
	}
	l.settle(data)
}

// end hands on a line that ended, with or without a newline.
func (l *lineReader) end(line []byte, newline int64) {
	if l.torn {
		l.at += l.skipped + int64(len(line)) + newline
		l.torn, l.skipping, l.head, l.skipped = false, false, nil, 0
		return
	}
	if l.skipping || len(line) > l.limit {
		l.skip(line)
		l.report(newline)
		return
	}
	l.at += int64(len(line)) + newline
	l.tell.line(line, l.at)
}

// jump goes on after what is lost, without the line that it tore.
func (l *lineReader) jump(lost *cli.LostOutput) {
	l.used, l.skipping, l.head, l.skipped = 0, false, nil, 0
	l.torn, l.at = true, lost.To
	if l.tell.lost != nil {
		l.tell.lost(lost)
	}
}

// settle moves the begun line to the front of a buffer that fits it.
func (l *lineReader) settle(rest []byte) {
	size := len(l.buf)
	switch {
	case len(rest) == size: // full, and no newline in sight
		size = min(2*size, l.limit+1)
	case size > lineRetained && len(rest) < lineBuffer:
		size = lineBuffer
	}
	if size != len(l.buf) {
		grown := make([]byte, size)
		l.used = copy(grown, rest)
		l.buf = grown
		return
	}
	if len(rest) > 0 && &rest[0] == &l.buf[0] {
		l.used = len(rest) // it is there already: a long line is not to be gone over at each read
		return
	}
	l.used = copy(l.buf, rest)
}

func (l *lineReader) skip(part []byte) {
	l.skipping = true
	if room := oversizeHead - len(l.head); room > 0 {
		l.head = append(l.head, part[:min(room, len(part))]...)
	}
	l.skipped += int64(len(part))
}

func (l *lineReader) report(newline int64) {
	l.at += l.skipped + newline
	if l.tell.oversized != nil {
		l.tell.oversized(l.head, l.skipped, l.at)
	}
	l.skipping, l.head, l.skipped = false, nil, 0
}

func (l *lineReader) finish() {
	switch {
	case l.torn:
	case l.skipping:
		l.report(0)
	case l.used > 0:
		l.end(l.buf[:l.used], 0)
	}
}
