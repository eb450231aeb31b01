// Package frames splits the output of a program into messages. A message is a line, or the bytes after a header that
// contains their number. The memory for a message is limited. If a part of the output is lost, the package drops the
// damaged messages and continues with the next complete message.
package frames

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"ductor/cli"
)

// Framing determines how messages are separated.
type Framing int

// The kinds of framing. With the framing Lines, a newline ends each message. With ContentLength, a header before each
// message contains its length in bytes, as in the Language Server Protocol.
const (
	Lines Framing = iota
	ContentLength
)

// MaxMessage is the default size limit of a message, in bytes. A Reader drops longer messages.
const MaxMessage = 64 << 20

const (
	readBuffer  = 64 << 10
	keptBody    = 256 << 10 // bytes; a Reader releases a larger buffer after each message
	garbageHead = 1 << 10   // Options.Garbage receives at most this many bytes of a dropped message
)

// Frame returns the message with the newline or the header that this framing requires.
func (f Framing) Frame(body []byte) []byte {
	if f == Lines {
		return append(body, '\n')
	}
	return append([]byte("Content-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"), body...)
}

// Options configures a Reader.
type Options struct {
	Framing Framing
	Limit   int   // size limit of a message in bytes; default: MaxMessage
	From    int64 // offset of the first byte to read in the program's whole output
	// CaughtUp is called once, when all output before the offset Until has been handled and Next needs more output.
	// CaughtUp may be nil.
	CaughtUp func()
	Until    int64
	Garbage  func([]byte)          // receives the beginning of output that is not a message; valid during the call
	Lost     func(*cli.LostOutput) // called for each part of the output that was lost
}

// Reader splits a program's output into messages.
type Reader struct {
	opts Options
	in   *bufio.Reader
	at   int64 // offset of the next byte in the program's whole output
	body []byte
	torn bool // whether the next message is incomplete, because its beginning is lost
}

// NewReader returns a Reader of out.
func NewReader(out io.Reader, o Options) *Reader {
	o.Limit = cmp.Or(o.Limit, MaxMessage)
	s := &source{r: out, at: o.From, until: o.Until, caughtUp: o.CaughtUp}
	return &Reader{opts: o, in: bufio.NewReaderSize(s, readBuffer), at: o.From}
}

// At returns the offset after the last returned message.
func (r *Reader) At() int64 { return r.at }

// Next returns the next message. The message is valid until the next call of Next. Next skips empty lines. The last
// line needs no newline.
func (r *Reader) Next() ([]byte, error) {
	if cap(r.body) > keptBody {
		r.body = nil
	}
	for {
		read := r.readLine
		if r.opts.Framing == ContentLength {
			read = r.readHeaded
		}
		raw, err := read()
		var lost *cli.LostOutput
		switch {
		case errors.As(err, &lost):
			r.torn, r.at = true, lost.To
			r.opts.Lost(lost)
		case len(raw) > 0:
			return raw, nil // the next read returns the error again
		case err != nil:
			return nil, err
		}
	}
}

// readLine reads a line. It returns nil if the line is empty, too long or damaged.
func (r *Reader) readLine() ([]byte, error) {
	line, size, err := r.readRawLine()
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case r.torn:
		r.torn = false
		return nil, err
	case size > r.opts.Limit:
		r.opts.Garbage(line)
		return nil, err
	}
	return bytes.TrimSpace(line), err
}

// readRawLine reads up to and including a newline. Of a line that is too long, it returns only the beginning. size is
// the length of the whole line.
func (r *Reader) readRawLine() (line []byte, size int, err error) {
	r.body = r.body[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		r.at += int64(len(part))
		if size == 0 && !errors.Is(err, bufio.ErrBufferFull) {
			return part, len(part), err // the line is completely in the buffer, so no copy is needed
		}
		r.body = append(r.body, part...)
		if size += len(part); size > r.opts.Limit {
			r.body = r.body[:min(len(r.body), garbageHead)]
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return r.body, size, err
		}
	}
}

// lengthHeader matches a header with the length of the message, at the end of a line.
var lengthHeader = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)content-length:[ \t]*(\d{1,18})\s*$`) })

// readHeaded reads a header and the message after it. It returns nil if the message is too long. It passes any other
// text before the message to Options.Garbage, unless the text is the rest of a damaged message.
func (r *Reader) readHeaded() ([]byte, error) {
	length := -1
	for {
		line, _, err := r.readRawLine()
		text := bytes.TrimSpace(line)
		header := lengthHeader().FindSubmatchIndex(text)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case header != nil:
			length, _ = strconv.Atoi(string(text[header[2]:header[3]])) // cannot fail: at most 18 digits
			text = text[:header[0]]
		case len(text) == 0 && length >= 0:
			return r.readContent(length)
		}
		if len(text) > 0 && !r.torn && !otherHeader(text) {
			r.opts.Garbage(text)
		}
		r.torn = r.torn && header == nil
		if err != nil {
			return nil, err
		}
	}
}

func otherHeader(text []byte) bool {
	name, _, _ := bytes.Cut(text, []byte(":"))
	return bytes.EqualFold(name, []byte("Content-Type"))
}

func (r *Reader) readContent(length int) ([]byte, error) {
	if length > r.opts.Limit {
		return nil, r.skip(length)
	}
	r.body = slices.Grow(r.body[:0], length)[:length]
	n, err := io.ReadFull(r.in, r.body)
	r.at += int64(n)
	if err != nil {
		return nil, err
	}
	return r.body, nil
}

// skip reads a message that is too long, and drops it.
func (r *Reader) skip(length int) error {
	head, _ := r.in.Peek(garbageHead) // if Peek fails, CopyN returns the error
	r.opts.Garbage(head)
	n, err := io.CopyN(io.Discard, r.in, int64(length))
	r.at += n
	return err
}

// source reads the program's output. It calls caughtUp once, after all output up to the offset in until was handled.
type source struct {
	r        io.Reader
	at       int64 // offset of the next read
	until    int64
	caughtUp func() // set to nil after it was called; nil if Options.CaughtUp is nil
	err      error  // the error that the next Read returns
}

func (s *source) Read(p []byte) (int, error) {
	if s.caughtUp != nil && (s.at >= s.until || s.err != nil && !isLost(s.err)) {
		s.caughtUp()
		s.caughtUp = nil
	}
	if err := s.err; err != nil {
		s.err = nil
		return 0, err
	}
	if s.caughtUp != nil {
		p = p[:min(int64(len(p)), s.until-s.at)]
	}
	n, err := s.r.Read(p)
	s.at += int64(n)
	var lost *cli.LostOutput
	if errors.As(err, &lost) {
		s.at = lost.To
	}
	if err != nil && (n > 0 || s.caughtUp != nil && lost == nil) {
		s.err = err // the next Read returns the error
		return n, nil
	}
	return n, err
}

func isLost(err error) bool {
	var lost *cli.LostOutput
	return errors.As(err, &lost)
}
