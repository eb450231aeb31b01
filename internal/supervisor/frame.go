package supervisor

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// A frame is a kind, the length of the payload (4 bytes, big endian) and the payload. Kinds that a side
// does not know are passed over.
type kind byte

const (
	kindHello        kind = 'H' // client: hello
	kindWelcome      kind = 'W' // supervisor: welcome
	kindRefused      kind = 'X' // supervisor: refused, and the connection ends
	kindRequest      kind = 'Q' // client: request
	kindReply        kind = 'R' // supervisor: reply
	kindInput        kind = 'I' // client: 8 bytes of sequence number, then bytes for the agent's standard input
	kindWindow       kind = 'C' // client: 8 bytes, output up to this offset may be sent
	kindOutput       kind = 'O' // supervisor: 8 bytes of offset, then output
	kindLost         kind = 'L' // supervisor: lossNote
	kindStderr       kind = 'E' // supervisor: bytes of standard error
	kindExit         kind = 'D' // supervisor: Status, the agent exited
	kindEnd          kind = 'Z' // supervisor: 8 bytes, output ended at this offset; then Status, if the agent exited
	kindTaken        kind = 'T' // supervisor: takenNote, and the connection ends
	kindProxyRequest kind = 'B' // client to a proxy: proxyRequest
	kindOutcome      kind = 'b' // proxy: outcome
)

const (
	frameHead = 5
	markHead  = 8       // the offset or number that begins some payloads
	maxFrame  = 4 << 20 // a hello carries a whole environment
	keptFrame = 256 << 10

	readBuffer = 32 << 10 // more than talk word by word brings while it gathers
)

// frameReader takes frames off a stream. One goroutine at a time.
type frameReader struct {
	r   *bufio.Reader
	buf []byte
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, readBuffer)}
}

// next returns a frame; the payload is valid until the next call. A stream that ends between two frames
// gives io.EOF, one that ends inside a frame io.ErrUnexpectedEOF.
func (f *frameReader) next() (kind, []byte, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.BigEndian.Uint32(head[1:]))
	if n > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes is longer than %d", n, maxFrame)
	}
	if cap(f.buf) > keptFrame && n <= keptFrame {
		f.buf = nil
	}
	f.buf = f.buf[:0]
	for len(f.buf) < n { // in steps, so that a length alone costs no memory
		step := min(n-len(f.buf), keptFrame)
		from := len(f.buf)
		f.buf = append(f.buf, make([]byte, step)...)
		if _, err := io.ReadFull(f.r, f.buf[from:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return 0, nil, err
		}
	}
	return kind(head[0]), f.buf, nil
}

// frameWriter puts frames on a stream. Safe for concurrent use; a write waits for the one before.
type frameWriter struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
}

// bytes writes a frame whose payload is body.
func (f *frameWriter) bytes(k kind, body []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begin(k, len(body))
	return f.flush(body)
}

// marked writes a frame whose payload is a number and body.
func (f *frameWriter) marked(k kind, mark int64, body []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begin(k, markHead+len(body))
	f.buf = binary.BigEndian.AppendUint64(f.buf, uint64(mark))
	return f.flush(body)
}

// json writes a frame whose payload is v.
func (f *frameWriter) json(k kind, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode frame: %w", err)
	}
	if len(body) > maxFrame {
		return fmt.Errorf("a frame of %d bytes is longer than %d", len(body), maxFrame)
	}
	return f.bytes(k, body)
}

func (f *frameWriter) begin(k kind, n int) {
	f.buf = append(f.buf[:0], byte(k))
	f.buf = binary.BigEndian.AppendUint32(f.buf, uint32(n))
}

func (f *frameWriter) flush(body []byte) error {
	f.buf = append(f.buf, body...)
	_, err := f.w.Write(f.buf)
	if cap(f.buf) > keptFrame {
		f.buf = nil
	}
	return err
}

// cutMark takes the number off the front of a payload.
func cutMark(payload []byte) (mark int64, rest []byte, err error) {
	if len(payload) < markHead {
		return 0, nil, fmt.Errorf("a frame of %d bytes is too short", len(payload))
	}
	mark = int64(binary.BigEndian.Uint64(payload))
	if mark < 0 {
		return 0, nil, fmt.Errorf("a frame carries the negative number %d", mark)
	}
	return mark, payload[markHead:], nil
}
