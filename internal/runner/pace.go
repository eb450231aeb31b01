package runner

import (
	"sync/atomic"
	"time"
)

const (
	// paceEvery is how far apart the reads of a busy stream are. It is far below the rhythm in which people
	// are shown anything, and the moments are the same for all streams, so that many wake the machine once.
	paceEvery = 50 * time.Millisecond
	// paceFull is how many reads in a row of paceBig are no talk word by word, but a file that somebody waits
	// for. For paceBulk after it reads come at full speed.
	paceBig  = 32 << 10
	paceFull = 2
	paceBulk = time.Second
	// paceSpare is how many reads may come as fast as there is something to read.
	paceSpare = 16
)

// pace lets a stream of many small pieces gather a little before it is read: an agent that writes word by word would
// otherwise wake us for each word. What comes after a silence is read at once, and so are what comes in bulk and what
// somebody waits for. It begins to do so when it is told to.
type pace struct {
	on     atomic.Bool
	urgent chan struct{}
	busy   time.Time // every read that was not big moves it by paceEvery
	full   int       // big reads in a row
	bulk   time.Time // until then nothing is waited for
}

// read notes a read of n bytes.
func (p *pace) read(n int) {
	if !p.on.Load() {
		return
	}
	now := time.Now()
	if n >= paceBig {
		if p.full++; p.full >= paceFull {
			p.bulk = now.Add(paceBulk)
		}
		return
	}
	p.full = 0
	if p.busy.Before(now) {
		p.busy = now
	}
	p.busy = p.busy.Add(paceEvery)
}

// wait waits for the next of the moments at which busy streams are read, if this is one.
func (p *pace) wait(gone <-chan struct{}) {
	if !p.on.Load() {
		return
	}
	select {
	case <-p.urgent:
		p.busy = time.Time{}
		return
	default:
	}
	now := time.Now()
	if p.full > 0 || now.Before(p.bulk) || p.busy.Sub(now) <= paceSpare*paceEvery {
		return
	}
	moment := time.NewTimer(now.Truncate(paceEvery).Add(paceEvery).Sub(now))
	defer moment.Stop()
	select {
	case <-moment.C:
	case <-gone:
	case <-p.urgent:
		p.busy = time.Time{}
	}
}
