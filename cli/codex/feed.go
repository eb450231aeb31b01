package codex

import (
	"errors"
	"io"
	"sync/atomic"

	"ductor/cli"
)

// watchedProcess is a process whose output is counted while it is read.
type watchedProcess struct {
	cli.Process
	feed *feed
}

// Stdout is the process's own, counted.
func (w watchedProcess) Stdout() io.Reader { return w.feed }

// feed counts what is read, and says when all that was there before this ductor has been dealt with: at the
// read after it.
type feed struct {
	r     io.Reader
	at    atomic.Int64 // offset of the next byte
	until int64
	past  bool
	// reached is called when the past is over, lost where a part is gone; both between two lines.
	reached func()
	lost    func(*cli.LostOutput)
}

func (f *feed) Gather() { cli.Gather(f.r) }
func (f *feed) Hurry()  { cli.Hurry(f.r) }

func (f *feed) Read(p []byte) (int, error) {
	if f.past && f.at.Load() >= f.until {
		f.past = false
		f.reached()
	}
	n, err := f.r.Read(p)
	f.at.Add(int64(n))
	var lost *cli.LostOutput
	if errors.As(err, &lost) {
		f.at.Store(lost.To)
		f.lost(lost)
	}
	return n, err
}
