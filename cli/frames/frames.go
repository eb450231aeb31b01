// Package frames cuts the output of a program into messages: lines, or bodies behind headers with their length. Its memory is
// bounded however long a message is, and what is lost of the output costs no more than the message that it tears.
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

// Framing is how messages are told apart.
type Framing int

// The framings. Lines ends each message with a newline. ContentLength writes a header before each message that says its
// length in bytes, as in the language server protocol.
const (
	Lines Framing = iota
	ContentLength
)

// MaxMessage is the longest message that is taken when nothing else is said, in bytes. A longer one is thrown away.
const MaxMessage = 64 << 20

const (
	readBuffer  = 64 << 10
	keptBody    = 256 << 10 // a buffer above this is given back after its message
	garbageHead = 1 << 10   // how much of a message that is too long is kept
)

// Frame is body as it is written.
func (f Framing) Frame(body []byte) []byte {
	if f == Lines {
		return append(body, '\n')
	}
	return append([]byte("Content-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"), body...)
}

// Options say how to read an output.
type Options struct {
	Framing Framing
	Limit   int   // of a message in bytes; MaxMessage when 0
	From    int64 // the offset at which the output begins
	// CaughtUp is called once all that was printed before the offset Until is dealt with: before the first read after it. Nil
	// where nothing is caught up with.
	CaughtUp func()
	Until    int64
	Garbage  func([]byte)          // gets what is no message, or its beginning; valid during the call
	Lost     func(*cli.LostOutput) // learns that output is missing
}

// Reader cuts a program's output into messages. It holds what is read of the one that is not whole yet.
type Reader struct {
	opts Options
	in   *bufio.Reader
	at   int64 // offset of what is taken next
	body []byte
	torn bool // what comes next has lost its beginning
}

// NewReader makes a Reader of what out prints.
func NewReader(out io.Reader, o Options) *Reader {
	o.Limit = cmp.Or(o.Limit, MaxMessage)
	s := &source{r: out, at: o.From, until: o.Until, caughtUp: o.CaughtUp}
	return &Reader{opts: o, in: bufio.NewReaderSize(s, readBuffer), at: o.From}
}

// At is the offset after what was read last.
func (r *Reader) At() int64 { return r.at }

// Next gives the next message, which is valid until the call after it. A last line counts without its newline, and lines that are
// empty do not count.
func (r *Reader) Next() ([]byte, error) {
	if cap(r.body) > keptBody {
		r.body = nil
	}
	for {
		read := r.line
		if r.opts.Framing == ContentLength {
			read = r.headed
		}
		raw, err := read()
		var lost *cli.LostOutput
		switch {
		case errors.As(err, &lost):
			r.torn, r.at = true, lost.To
			r.opts.Lost(lost)
		case len(raw) > 0:
			return raw, nil // its error comes again
		case err != nil:
			return nil, err
		}
	}
}

// line reads a line; nil for one that is empty, too long or torn.
func (r *Reader) line() ([]byte, error) {
	line, size, err := r.rawLine()
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

// rawLine reads up to a newline, and gives its beginning if it is too long.
func (r *Reader) rawLine() (line []byte, size int, err error) {
	r.body = r.body[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		r.at += int64(len(part))
		if size == 0 && !errors.Is(err, bufio.ErrBufferFull) {
			return part, len(part), err // whole: it need not be copied
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

// lengthHeader is the end of a line that says how long the message behind it is.
var lengthHeader = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)content-length:[ \t]*(\d{1,18})\s*$`) })

// headed reads a header, and the message behind it; nil for one that is too long. What stands in one line with a header,
// and before it, is the rest of a message that was torn, or garbage.
func (r *Reader) headed() ([]byte, error) {
	length := -1
	for {
		line, _, err := r.rawLine()
		text := bytes.TrimSpace(line)
		header := lengthHeader().FindSubmatchIndex(text)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case header != nil:
			length, _ = strconv.Atoi(string(text[header[2]:header[3]])) // digits that fit
			text = text[:header[0]]
		case len(text) == 0 && length >= 0:
			return r.content(length)
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

func (r *Reader) content(length int) ([]byte, error) {
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

// skip throws a message away while it streams by.
func (r *Reader) skip(length int) error {
	head, _ := r.in.Peek(garbageHead) // an error comes again
	r.opts.Garbage(head)
	n, err := io.CopyN(io.Discard, r.in, int64(length))
	r.at += n
	return err
}

// source says once when all that was printed before until has been taken: at the read after it.
type source struct {
	r        io.Reader
	at       int64 // how far was read
	until    int64
	caughtUp func() // nil once called, and where nothing is caught up with
	err      error  // that came with the last bytes
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
		s.err = err // what came before it is dealt with first
		return n, nil
	}
	return n, err
}

func isLost(err error) bool {
	var lost *cli.LostOutput
	return errors.As(err, &lost)
}
