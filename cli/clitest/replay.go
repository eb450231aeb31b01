package clitest

import (
	"context"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/frames"
)

// player is a Launcher whose processes replay a tape, which is a recording of real processes. Before a process prints
// something, it waits for all messages from ductor that precede this output on the tape. A player works only within
// synctest.Test, where time.Sleep returns after ductor has handled all output.
type player struct {
	t       testing.TB
	tape    tape
	framing frames.Framing

	mu   sync.Mutex
	next int
	ids  [][2]string // pairs of an ID in the recording and ductor's current ID
}

// learn adds pairs of an ID in the recording and ductor's current ID.
func (l *player) learn(taped, current []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, id := range taped {
		if i < len(current) && id != "" && id != current[i] {
			l.ids = append(l.ids, [2]string{id, current[i]})
		}
	}
}

// toCurrent replaces the IDs from the recording by ductor's current IDs.
func (l *player) toCurrent(text string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range l.ids {
		text = strings.ReplaceAll(text, id[0], id[1])
	}
	return text
}

// toTaped replaces ductor's current IDs by those from the recording.
func (l *player) toTaped(text string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range slices.Backward(l.ids) {
		text = strings.ReplaceAll(text, id[1], id[0])
	}
	return text
}

func (l *player) Start(_ context.Context, cmd cli.Command) (cli.Process, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	part := l.tape.of(l.next)
	if len(part) == 0 || part[0].text != filepath.Base(cmd.Path) {
		return nil, fs.ErrNotExist
	}
	in, input := io.Pipe()
	output, out := io.Pipe()
	p := &replayed{player: l, number: l.next, in: input, out: output, done: make(chan struct{}),
		stop: make(chan struct{}), heard: make(chan string, 1000)}
	go p.listen(in)
	go p.play(part[1:], out)
	return p, nil
}

func (l *player) LookPath(name string) (string, error)        { return "/bin/" + filepath.Base(name), nil }
func (l *player) Left(context.Context) ([]cli.LeftRun, error) { return nil, nil }
func (l *player) Discard(context.Context, cli.RunID) error    { return nil }
func (l *player) Settled(cli.TurnID)                          {}
func (l *player) Attach(context.Context, cli.LeftRun, int64) (cli.Process, error) {
	return nil, fs.ErrNotExist
}

// replayed is a process that a player started.
type replayed struct {
	player *player
	number int
	in     *io.PipeWriter
	out    *io.PipeReader
	heard  chan string // receives the name and the IDs of each message from ductor

	once sync.Once
	stop chan struct{} // closed by Stop
	done chan struct{} // closed when the process has ended
	code int
}

func (p *replayed) listen(in *io.PipeReader) {
	var buffer []byte
	chunk := make([]byte, 64<<10)
	for {
		n, err := in.Read(chunk)
		buffer = append(buffer, chunk[:n]...)
		for {
			message, rest, ok := cutMessage(p.player.framing, buffer)
			if !ok {
				break
			}
			name, ids := nameOf(message)
			p.heard <- name + " " + strings.Join(ids, " ")
			buffer = rest
		}
		if err != nil {
			return
		}
	}
}

// play prints the output in a recording. The process ends at the end of the recording, or when Stop is called.
func (p *replayed) play(part tape, out *io.PipeWriter) {
	defer close(p.done)
	defer out.Close()
	var early []string
	for _, e := range part {
		switch e.mark {
		case '>':
			name, ids, _ := strings.Cut(e.text, " ")
			said, ok := p.await(name, &early)
			if !ok {
				return
			}
			p.player.learn(strings.Split(ids, " "), strings.Split(said, " "))
		case '~':
			pause, err := time.ParseDuration(e.text)
			if err != nil {
				p.player.t.Errorf("a pause of %q: %v", e.text, err)
			}
			time.Sleep(pause)
		case '<':
			time.Sleep(time.Millisecond) // within synctest.Test, this returns when ductor waits for output
			if _, err := out.Write(p.player.framing.Frame([]byte(p.player.toCurrent(e.text)))); err != nil {
				return
			}
		case '.':
			p.code, _ = strconv.Atoi(e.text)
			return
		}
	}
	<-p.stop
}

// await waits until ductor sends a message with this name, and returns the IDs in the message. If messages with other
// names arrive first, await stores them in early. Later calls of await search early before they wait.
func (p *replayed) await(name string, early *[]string) (ids string, ok bool) {
	is := func(said string) bool { return strings.HasPrefix(said, name+" ") }
	if i := slices.IndexFunc(*early, is); i >= 0 {
		said := (*early)[i]
		*early = slices.Delete(*early, i, i+1)
		return strings.TrimPrefix(said, name+" "), true
	}
	late := time.After(time.Hour)
	for {
		select {
		case said := <-p.heard:
			if is(said) {
				return strings.TrimPrefix(said, name+" "), true
			}
			*early = append(*early, said)
		case <-p.stop:
			return "", false
		case <-late:
			p.player.t.Errorf("ductor never said %s to process %d, but %q", name, p.number, *early)
			return "", false
		}
	}
}

func (p *replayed) Run() cli.RunID                        { return cli.RunID(strconv.Itoa(p.number)) }
func (p *replayed) PID() int                              { return p.number }
func (p *replayed) Stdin() io.WriteCloser                 { return p.in }
func (p *replayed) Stdout() io.Reader                     { return p.out }
func (p *replayed) When(int64) time.Time                  { return time.Time{} }
func (p *replayed) StderrTail() string                    { return "" }
func (p *replayed) Begin(context.Context, cli.Mark) error { return nil }
func (p *replayed) Ended(int64)                           {}
func (p *replayed) Interrupt() error                      { return nil }
func (p *replayed) Done() <-chan struct{}                 { return p.done }
func (p *replayed) Exit() cli.ExitStatus                  { return cli.ExitStatus{Code: p.code, Signal: p.code < 0} }
func (p *replayed) Detach()                               { _ = p.out.CloseWithError(cli.ErrDetached) }
func (p *replayed) Stop(context.Context, time.Duration) error {
	p.once.Do(func() { close(p.stop); _ = p.in.Close(); _ = p.out.Close() })
	<-p.done
	return nil
}
