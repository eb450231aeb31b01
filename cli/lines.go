package cli

import (
	"bytes"
	"fmt"
	"io"
)

// MaxLine is the longest line taken from an agent, in bytes, when nothing else is said.
const MaxLine = 64 << 20

const (
	lineBuffer   = 8 << 10   // size of a buffer at rest
	lineRetained = 256 << 10 // a buffer above this is given back once its long line was handled
	oversizeHead = 1 << 10   // how much of an oversized line is kept
)

// ReadLines reads newline-ended lines from r until its end and hands each, without its newline, to line.
// The slice is valid during the call only. A last line without newline counts.
//
// A line of more than limit bytes (MaxLine if limit is not positive) is thrown away while it streams by,
// so memory stays bounded however long it is; oversized, which may be nil, gets its first bytes and its
// size when it ends. The error is r's, wrapped; io.EOF is no error.
func ReadLines(r io.Reader, limit int, line func([]byte), oversized func(head []byte, size int64)) error {
	if limit <= 0 {
		limit = MaxLine
	}
	lr := lineReader{limit: limit, line: line, oversized: oversized, buf: make([]byte, min(lineBuffer, limit+1))}
	for {
		n, err := r.Read(lr.buf[lr.used:])
		lr.take(n)
		if err == nil {
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
	limit     int
	line      func([]byte)
	oversized func([]byte, int64)

	buf  []byte
	used int // bytes of buf that hold the begun line

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
		l.end(data[:scanned+i])
		data, scanned = data[scanned+i+1:], 0
	}
	if l.skipping || len(data) > l.limit {
		l.skip(data)
		data = nil
	}
	l.settle(data)
}

func (l *lineReader) end(line []byte) {
	if l.skipping || len(line) > l.limit {
		l.skip(line)
		l.report()
		return
	}
	l.line(line)
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

func (l *lineReader) report() {
	if l.oversized != nil {
		l.oversized(l.head, l.skipped)
	}
	l.skipping, l.head, l.skipped = false, nil, 0
}

func (l *lineReader) finish() {
	switch {
	case l.skipping:
		l.report()
	case l.used > 0:
		l.line(l.buf[:l.used])
	}
}
