package supervisor

import (
	"io"
	"sync/atomic"
	"time"
)

const (
	// paceEvery is how far apart the reads of a busy stream are. It is far below the rhythm in which people
	// are shown anything, and the moments are the same for all streams, so that many wake the machine once.
	paceEvery = 50 * time.Millisecond
	// paceFull is how many reads in a row of paceBig are no talk word by word, but a file that somebody waits
	// for. For paceBulk after it reads come at full speed.
	paceBig  = readBuffer
	paceFull = 2
	paceBulk = time.Second
	// paceSpare is how many reads may come as fast as there is something to read.
	paceSpare = 16
)

// pacedReader lets a stream of many small pieces gather a little before it is read: an agent that writes
// word by word would otherwise wake us for each word. What comes after a silence is read at once, and so are
// what comes in bulk and what somebody waits for. It begins to do so when it is told to. One goroutine reads;
// gather and hurry may be called at any time.
type pacedReader struct {
	r       io.Reader
	awaited func() bool // whether somebody waits for what is read; nil is never
	on      atomic.Bool
	busy    time.Time // every read that was not big moves it by paceEvery
	full    int       // big reads in a row
	bulk    time.Time // until then nothing is waited for
	urgent  chan struct{}
}

func newPacedReader(r io.Reader, awaited func() bool) *pacedReader {
	return &pacedReader{r: r, awaited: awaited, urgent: make(chan struct{}, 1)}
}

// gather has a busy stream read in gulps from now on.
func (p *pacedReader) gather() { p.on.Store(true) }

// hurry makes the next reads come at once, also the one that waits.
func (p *pacedReader) hurry() {
	select {
	case p.urgent <- struct{}{}:
	default:
	}
}

func (p *pacedReader) Read(b []byte) (int, error) {
	if !p.on.Load() {
		return p.r.Read(b)
	}
	p.wait()
	n, err := p.r.Read(b)
	now := time.Now()
	if n >= paceBig {
		if p.full++; p.full >= paceFull {
			p.bulk = now.Add(paceBulk)
		}
	} else {
		p.full = 0
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
	if p.full > 0 || now.Before(p.bulk) || p.busy.Sub(now) <= paceSpare*paceEvery || p.awaited != nil && p.awaited() {
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
