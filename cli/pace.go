package cli

import (
	"io"
	"time"
)

const (
	// paceEvery is how far apart the reads of a busy stream are. It is far below the rhythm in which people
	// are shown anything, and the moments are the same for all streams, so that many wake the machine once.
	paceEvery = 50 * time.Millisecond
	// paceBulk is a read that is no word-by-word talk any more: who has so much to say is read at full speed.
	paceBulk = 4 << 10
	// paceSpare is how many reads may come as fast as there is something to read.
	paceSpare = 16
)

// pacedReader lets a stream of many small pieces gather a little before it is read: an agent that writes
// word by word would otherwise wake us for each word. What comes after a silence is read at once, and so is
// what comes in bulk. One goroutine reads; hurry may be called at any time.
type pacedReader struct {
	r      io.Reader
	busy   time.Time // every read that found little moves it by paceEvery
	urgent chan struct{}
}

func newPacedReader(r io.Reader) *pacedReader {
	return &pacedReader{r: r, urgent: make(chan struct{}, 1)}
}

// hurry makes the next reads come at once, also the one that waits.
func (p *pacedReader) hurry() { wake(p.urgent) }

func (p *pacedReader) Read(b []byte) (int, error) {
	p.wait()
	n, err := p.r.Read(b)
	if n >= paceBulk {
		p.busy = time.Time{}
	} else {
		now := time.Now()
		if p.busy.Before(now) {
			p.busy = now
		}
		p.busy = p.busy.Add(paceEvery)
	}
	return n, err
}

// wait waits for the next of the moments at which busy streams are read, if this is one.
func (p *pacedReader) wait() {
	select {
	case <-p.urgent:
		p.busy = time.Time{}
		return
	default:
	}
	now := time.Now()
	if p.busy.Sub(now) <= paceSpare*paceEvery {
		return
	}
	moment := time.NewTimer(now.Truncate(paceEvery).Add(paceEvery).Sub(now))
	defer moment.Stop()
	select {
	case <-moment.C:
	case <-p.urgent:
		p.busy = time.Time{}
	}
}
