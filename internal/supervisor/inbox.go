package supervisor

import (
	"fmt"
	"io"
	"sync"
)

// window is how much output may be on its way to a client, or in its memory, unread.
const window = 256 << 10

// LostError says that bytes [From, To) of the output are gone: the journal is bounded, its owner had them
// forgotten, or it was damaged. Reading
// goes on behind them, which may be in the middle of a line.
type LostError struct {
	From, To int64
	Damaged  bool // they were on disk once
}

func (e *LostError) Error() string {
	why := "they are not kept any more"
	if e.Damaged {
		why = "the spool was damaged"
	}
	return fmt.Sprintf("%d bytes of output are lost after the first %d: %s", e.To-e.From, e.From, why)
}

// inbox is the output a client received and did not read. One reader, one writer.
type inbox struct {
	mu     sync.Mutex
	cond   *sync.Cond
	data   []byte // received, from head on
	head   int
	offset int64 // of the first byte at head
	losses []lossNote
	lost   int64
	err    error // what follows the data

	granted int64             // the supervisor may send up to here
	grant   func(limit int64) // asks it for more
}

func newInbox(offset int64, grant func(int64)) *inbox {
	b := &inbox{offset: offset, granted: offset + window, grant: grant}
	b.cond = sync.NewCond(&b.mu)
	return b
}

// end is the offset after what was received.
func (b *inbox) end() int64 { return b.offset + int64(len(b.data)-b.head) }

// put takes output that begins at offset.
func (b *inbox) put(offset int64, p []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := b.received(); offset != at {
		return fmt.Errorf("output from %d where %d was expected", offset, at)
	}
	if b.head > 0 && (b.head == len(b.data) || b.head > window) {
		b.data = append(b.data[:0], b.data[b.head:]...)
		b.head = 0
	}
	b.data = append(b.data, p...)
	b.cond.Signal()
	return nil
}

// received is end, with the losses in between that the reader has not come to.
func (b *inbox) received() int64 {
	at := b.end()
	for _, l := range b.losses {
		at += l.To - l.From
	}
	return at
}

// reach is the offset up to which output was received or is known to be lost, and how far more may be sent.
func (b *inbox) reach() (from, granted int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.received(), b.granted
}

func (b *inbox) lose(l lossNote) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.From != b.received() || l.To < l.From {
		return fmt.Errorf("a loss of [%d, %d) where %d was expected", l.From, l.To, b.received())
	}
	b.losses = append(b.losses, l)
	b.cond.Signal()
	return nil
}

// close says what follows the data. The first one counts.
func (b *inbox) close(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	b.cond.Broadcast()
}

// Read gives output in order, a *LostError once at every gap, and io.EOF at the end.
func (b *inbox) Read(p []byte) (int, error) {
	n, limit, err := b.read(p)
	if limit > 0 {
		b.grant(limit)
	}
	return n, err
}

func (b *inbox) read(p []byte) (n int, limit int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		ready := b.data[b.head:]
		if len(b.losses) > 0 {
			l := b.losses[0]
			if l.From == b.offset {
				b.losses = append(b.losses[:0], b.losses[1:]...)
				b.offset = l.To
				b.lost += l.To - l.From
				return 0, b.more(), &LostError{From: l.From, To: l.To, Damaged: l.Damaged}
			}
			ready = ready[:l.From-b.offset]
		}
		if len(ready) > 0 || len(p) == 0 {
			n = copy(p, ready)
			b.head += n
			b.offset += int64(n)
			return n, b.more(), nil
		}
		if b.err != nil {
			return 0, 0, b.err
		}
		b.cond.Wait()
	}
}

// more is the limit to ask for, or 0 while there is enough.
func (b *inbox) more() int64 {
	if b.err != nil || b.granted-b.offset > window*3/4 {
		return 0
	}
	b.granted = b.offset + window
	return b.granted
}

// position is how far the reader is, and how much it never saw.
func (b *inbox) position() (offset, lost int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.offset, b.lost
}

var _ io.Reader = (*inbox)(nil)
