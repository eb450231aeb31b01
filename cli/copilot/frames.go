package copilot

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"ductor/cli"
)

const (
	frameBuffer = 64 << 10
	maxFrame    = cli.MaxLine // a longer one is thrown away
	maxWaiting  = 256 << 20   // bytes that may wait for the process to read them
	eventMethod = "session.event"
)

var (
	errInputFull   = errors.New("its input is closed, or it does not read it")
	errInputClosed = errors.New("its input is closed")
)

// frames is the stream of JSON-RPC messages to and from a process: a jsonrpc2.ObjectStream. Each message stands
// behind a header that says its length, as in the language server protocol. Session events, which are nearly all
// there is, are handed on by themselves. What is no frame, or no message, is noted and passed over.
type frames struct {
	in      *bufio.Reader
	src     *offsetReader
	taker   frameTaker
	from    io.WriteCloser
	waiting chan struct{} // a token when there is something to write, or the end
	written chan struct{} // closed when nothing is written any more

	mu     sync.Mutex
	queue  []outgoing
	bytes  int
	closed bool
}

// frameTaker gets what frames reads, from its one reading goroutine. It must not block.
type frameTaker interface {
	sessionEvent(raw []byte, end int64) // raw is kept by the taker
	garbage(raw []byte)
	lost(l *cli.LostOutput)
}

// outgoing is a message to write. before is called first; the message is not written if it fails. There may be none.
type outgoing struct {
	data   []byte
	before func() error
	failed func(error)
}

// newFrames reads from process's output, which begins at offset, and starts the one goroutine that writes to it;
// it ends with closeInput.
func newFrames(process cli.Process, offset int64, taker frameTaker) *frames {
	src := &offsetReader{r: process.Stdout(), at: offset, lost: taker.lost}
	f := &frames{
		in: newBufferedReader(src), src: src, taker: taker, from: process.Stdin(),
		waiting: make(chan struct{}, 1), written: make(chan struct{}),
	}
	go f.write()
	return f
}

func newBufferedReader(src io.Reader) *bufio.Reader { return bufio.NewReaderSize(src, frameBuffer) }

// ReadObject reads up to the next message that is no session event.
func (f *frames) ReadObject(v any) error {
	for {
		raw, err := f.frame()
		if err != nil {
			return err
		}
		if raw == nil {
			continue
		}
		if isEvent(raw) {
			f.taker.sessionEvent(raw, f.offset())
			continue
		}
		if err := json.Unmarshal(raw, v); err != nil {
			f.taker.garbage(raw)
			continue
		}
		return nil
	}
}

// isEvent looks at the beginning only: Copilot writes the method before the params.
func isEvent(raw []byte) bool {
	return bytes.Contains(raw[:min(len(raw), 80)], []byte(`"`+eventMethod+`"`))
}

// offset is where in the output the next frame begins.
func (f *frames) offset() int64 { return f.src.at - int64(f.in.Buffered()) }

// frame reads one frame; nil if it was too long. Lines that are no header are passed over until one comes.
func (f *frames) frame() ([]byte, error) {
	length := -1
	for {
		line, err := f.in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			f.taker.garbage(line)
			continue
		case errors.Is(err, errLost):
			length = -1
			continue
		case err != nil:
			return nil, err
		}
		text := strings.TrimSpace(string(line))
		name, value, _ := strings.Cut(text, ":")
		n, bad := strconv.Atoi(strings.TrimSpace(value))
		switch {
		case strings.EqualFold(name, "Content-Length") && bad == nil && n >= 0:
			length = n
		case text == "" && length >= 0:
			return f.body(length)
		case text != "" && !strings.EqualFold(name, "Content-Type"):
			f.taker.garbage(line)
		}
	}
}

func (f *frames) body(length int) ([]byte, error) {
	if length > maxFrame {
		head := make([]byte, 1<<10)
		n, err := io.ReadFull(f.in, head)
		f.taker.garbage(head[:n])
		if err == nil {
			_, err = io.CopyN(io.Discard, f.in, int64(length-n))
		}
		return nil, torn(err)
	}
	raw := make([]byte, length)
	if _, err := io.ReadFull(f.in, raw); err != nil {
		return nil, torn(err)
	}
	return raw, nil
}

// torn is the error of a frame that was not whole; none if the output goes on behind it.
func torn(err error) error {
	if errors.Is(err, errLost) {
		return nil
	}
	return err
}

// WriteObject queues a message and returns at once.
func (f *frames) WriteObject(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	return f.offer(outgoing{data: framed(body)})
}

func framed(body []byte) []byte {
	return append([]byte("Content-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"), body...)
}

func (f *frames) offer(o outgoing) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return errInputClosed
	case f.bytes > 0 && f.bytes+len(o.data) > maxWaiting:
		return errInputFull
	}
	f.queue = append(f.queue, o)
	f.bytes += len(o.data)
	wake(f.waiting)
	return nil
}

// write writes what is queued until the input is closed. A process that is gone shows at its output.
func (f *frames) write() {
	defer close(f.written)
	defer f.from.Close()
	for range f.waiting {
		f.mu.Lock()
		batch, closed := f.queue, f.closed
		f.queue, f.bytes = nil, 0
		f.mu.Unlock()
		for _, o := range batch {
			if o.before != nil {
				if err := o.before(); err != nil {
					o.failed(err)
					continue
				}
			}
			if len(o.data) == 0 {
				continue
			}
			if _, err := f.from.Write(o.data); err != nil {
				f.closeInput()
				break
			}
		}
		if closed {
			return
		}
	}
}

// closeInput gives the process end of file once what waits is written.
func (f *frames) closeInput() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	wake(f.waiting)
}

// flush waits until what was offered is written, but no longer than wait.
func (f *frames) flush(wait time.Duration) {
	done := make(chan struct{})
	if f.offer(outgoing{before: func() error { close(done); return nil }}) != nil {
		return // nothing is written any more
	}
	limit := time.NewTimer(wait)
	defer limit.Stop()
	select {
	case <-done:
	case <-f.written:
	case <-limit.C: // it does not read
	}
}

// drop throws away what waits to be written.
func (f *frames) drop() {
	f.mu.Lock()
	f.queue, f.bytes = nil, 0
	f.mu.Unlock()
	f.closeInput()
}

// Close closes the process's input. What it still prints is read on by whoever reads.
func (f *frames) Close() error {
	f.closeInput()
	return nil
}

// wake leaves a token in c unless there is one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// errLost says that output is missing here; reading goes on behind it.
var errLost = errors.New("output is lost")

// offsetReader counts what it reads, and says when it asks for more than what was there until a moment.
type offsetReader struct {
	r       io.Reader
	at      int64
	until   int64
	reached func() // nil once called, and where nothing is caught up with
	lost    func(*cli.LostOutput)
}

func (o *offsetReader) Read(p []byte) (int, error) {
	if o.reached != nil && o.at >= o.until {
		o.reached()
		o.reached = nil
	}
	n, err := o.r.Read(p)
	o.at += int64(n)
	var lost *cli.LostOutput
	if errors.As(err, &lost) {
		o.at = lost.To
		o.lost(lost)
		return n, errLost
	}
	if err != nil && o.reached != nil { // it ended before: there is nothing else to catch up with
		o.reached()
		o.reached = nil
	}
	return n, err
}
