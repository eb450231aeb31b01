package turn

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"ductor/cli"
	"ductor/cli/frames"
)

const (
	queuedLines = 8 << 20                // bytes of lines that may wait for a turn
	exitWait    = 500 * time.Millisecond // how long a program may run after the end of its output
	garbageKept = 1 << 10
	stderrShown = 2 << 10
)

// StreamOptions configure a Stream. Zero values mean the defaults.
type StreamOptions struct {
	Agent cli.Agent
	// Idle receives the lines between turns, serially and in order, and never during a call of Handle. It is nil for a
	// program with a single turn: earlier lines then wait for the turn, and later lines are dropped.
	Idle func(line []byte)

	Limits
	MaxLine int // maximum length of a line in bytes

	// Past is set if ductor attached to the process.
	Past *Past
	// Held keeps all lines for the first turn even if Idle is set, because they belong to that turn.
	Held bool
}

// StreamOptionsOf returns the options for a Stream to an agent. o are the options of the dialect. The caller sets Idle,
// Past and Held.
func StreamOptionsOf(o cli.ProviderOptions, agent cli.Agent) StreamOptions {
	return StreamOptions{Agent: agent, Limits: LimitsOf(o)}
}

// Stream connects to a program with a line-based protocol. One goroutine reads the program's lines, another writes its
// input. The running turn gets the lines; between turns, Idle gets them. The Stream knows no specific protocol.
//
// Only one goroutine at a time may call Turn, Send and Failure. Close may be called at any time.
type Stream struct {
	process cli.Process
	opts    StreamOptions
	lines   *router // from the program to the turn
	in      *Writer // from ductor to the program
	end     programEnd

	garbage Garbage
	last    *Turn[queued] // the last or current turn
	markErr error         // why the turn was not started
}

// programEnd describes the end of a program and of the goroutine that waits for the end.
type programEnd struct {
	pumped   chan struct{} // closed when the output has ended
	readErr  error         // error at the end of the output; valid once pumped is closed
	detached context.Context
	detach   context.CancelFunc
	gone     chan struct{} // closed when the program has ended, or ductor detached from it
}

func newProgramEnd() programEnd {
	e := programEnd{pumped: make(chan struct{}), gone: make(chan struct{})}
	e.detached, e.detach = context.WithCancel(context.Background())
	return e
}

// reap stops a program after its output has ended.
func (e *programEnd) reap(process cli.Process, grace time.Duration) {
	defer close(e.gone)
	<-e.pumped
	wait := time.NewTimer(exitWait)
	defer wait.Stop()
	select {
	case <-process.Done():
	case <-e.detached.Done():
	case <-wait.C:
		ctx, cancel := context.WithTimeout(e.detached, grace+cli.StopSlack)
		defer cancel()
		_ = process.Stop(ctx, grace) // Close tries again and returns its error
	}
}

// NewStream starts reading p's lines. The caller must Close the Stream, which also stops p.
func NewStream(p cli.Process, opts StreamOptions) *Stream {
	opts.Limits = opts.orDefault()
	s := &Stream{process: p, opts: opts, lines: newRouter(opts), in: NewWriter(p.Stdin()), end: newProgramEnd()}
	go s.pump()
	go s.end.reap(p, opts.Grace)
	return s
}

// Process returns the program.
func (s *Stream) Process() cli.Process { return s.process }

// Ended returns a channel that is closed when the program's output has ended.
func (s *Stream) Ended() <-chan struct{} { return s.end.pumped }

// Alive reports whether the program is running and may print more.
func (s *Stream) Alive() bool {
	select {
	case <-s.process.Done():
		return false
	case <-s.end.pumped:
		return false
	default:
		return true
	}
}

// Send queues data for the program's standard input and returns at once. It returns an error if too much data is
// queued, or after CloseInput. It returns nil if the program has ended; the end of the output shows that.
func (s *Stream) Send(data []byte) error { return s.SendTold(data, nil) }

// SendTold is like Send. sent receives the result of the write, unless SendTold returns an error.
func (s *Stream) SendTold(data []byte, sent func(error)) error {
	if err := s.in.Put(Parcel{Data: data, Sent: sent}); err != nil {
		return fmt.Errorf("send to %s: %w", s.opts.Agent, err)
	}
	return nil
}

// SendOnly sends the complete input to a program with a single turn, and closes the input. If the previous process of
// ductor started the program, SendOnly sends only the missing part. left is nil for a new program.
func (s *Stream) SendOnly(input []byte, left *cli.LeftRun) error {
	defer s.CloseInput()
	if left != nil {
		input = left.Input.Missing(input)
	}
	if len(input) == 0 {
		return nil
	}
	return s.Send(input)
}

// Hurry makes the next output readable at once, because the caller waits for an answer to its last input. Turn calls
// Hurry itself.
func (s *Stream) Hurry() { Hurry(s.process.Stdout()) }

// Wake makes the running turn check Loop.Waiting again.
func (s *Stream) Wake() { s.lines.queue.Wake() }

// CloseInput sends end of file to the program once all input is written.
func (s *Stream) CloseInput() { s.in.Close() }

// Garbage records an unreadable line or its beginning, for Failure.
func (s *Stream) Garbage(line []byte) { s.garbage.Add(line) }

func (s *Stream) pump() {
	defer close(s.end.pumped)
	stdout := s.process.Stdout()
	var in *frames.Reader
	put := func(line []byte, waste bool) {
		s.lines.deliver(queued{line: bytes.Clone(line), waste: waste, end: in.At()})
	}
	o := frames.Options{
		Limit: s.opts.MaxLine, Garbage: func(head []byte) { put(head, true) },
		Lost: func(l *cli.LostOutput) { s.lines.deliver(queued{end: l.To, Change: Change{Lost: l}}) },
	}
	if past := s.opts.Past; past != nil {
		o.From, o.Until = past.From, past.Until
		o.CaughtUp = func() {
			s.lines.deliver(queued{Change: Change{CaughtUp: true}})
			Gather(stdout)
		}
	} else {
		Gather(stdout)
	}
	in = frames.NewReader(stdout, o)
	line, err := in.Next()
	for ; err == nil; line, err = in.Next() {
		put(line, false)
	}
	if !errors.Is(err, io.EOF) {
		s.end.readErr = fmt.Errorf("read lines: %w", err)
	}
}

// Turn runs the loop of one turn with its own Source; see Turn.Run.
func (s *Stream) Turn(ctx context.Context, loop Loop[[]byte]) End {
	if loop.Mark.Turn != "" {
		s.lines.awaitPast(ctx, s.end.pumped)
	}
	source := Source[queued]{In: s.lines.queue, Gone: s.end.gone, Stop: s.stop, Limits: s.opts.Limits}
	s.Hurry()
	past := s.lines.begin()
	s.garbage, s.markErr = Garbage{}, nil
	if s.lines.offset() > 0 {
		source.Limits.First = 0
	}
	if past {
		from, when := s.opts.Past.From, s.process.When
		source.Resumed, source.End = &Resumed{From: from, Began: cmp.Or(when(from), time.Now()), When: when},
			func(q queued) int64 { return q.end }
	}
	t := New(Loop[queued]{
		Source: source,
		Begin:  loop.Begin, Waiting: loop.Waiting, Hopeless: loop.Hopeless, Busy: loop.Busy, Out: loop.Out,
		Handle: func(q queued) bool { return s.handle(loop, q) },
		record: func() error {
			err := s.Mark(ctx, loop.Mark)
			if ctx.Err() == nil {
				s.markErr = err
			}
			return err
		},
	})
	if loop.Interrupt != nil {
		t.loop.Interrupt = func() error {
			s.Hurry() // to see the reaction at once
			return loop.Interrupt()
		}
	}
	s.last = t
	end := t.Run(ctx)
	if end == EndDetached {
		s.Detach()
	}
	s.lines.finish(t.Rest(), s.process.Ended)
	return end
}

// handle passes one line to the turn.
func (s *Stream) handle(loop Loop[[]byte], q queued) (end bool) {
	s.lines.taken(q)
	switch {
	case q.Any():
		s.last.Changed(q.Change)
	case q.waste:
		s.Garbage(q.line)
	default:
		return loop.Handle(q.line)
	}
	return false
}

// stop ends the program, and waits until the queue contains the program's last lines. It waits at most for the drain
// time of Process.Stdout.
func (s *Stream) stop(ctx context.Context, grace time.Duration) error {
	err := s.process.Stop(ctx, grace)
	wait := time.NewTimer(cli.StopSlack)
	defer wait.Stop()
	select {
	case <-s.end.pumped:
	case <-wait.C:
	}
	return err
}

// Linger waits for a program that is about to end, at most for Grace.
func (s *Stream) Linger(ctx context.Context) {
	limit, cancel := context.WithTimeout(ctx, s.opts.Grace)
	defer cancel()
	select {
	case <-s.process.Done():
	case <-limit.Done():
	}
}

// Detach detaches from the program and waits for the Stream's goroutines. It drops input that was not written.
// Idempotent.
func (s *Stream) Detach() {
	s.end.detach()
	s.process.Detach()
	s.in.Drop(cli.ErrDetached)
	s.lines.queue.Close()
	<-s.end.gone
	<-s.in.Done()
}

// Close stops the program with its descendants, and waits for the Stream's goroutines. Idempotent.
func (s *Stream) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Grace+cli.StopSlack)
	defer cancel()
	err := s.process.Stop(ctx, s.opts.Grace)
	s.in.Close()
	_ = s.process.Stdin().Close() // unblocks a writer; the error of a second Close does not matter
	s.lines.queue.Close()
	for _, ended := range []<-chan struct{}{s.end.gone, s.in.Done()} {
		select {
		case <-ended:
		case <-ctx.Done():
			return errors.Join(err, fmt.Errorf("close %s: %w", s.opts.Agent, context.Cause(ctx)))
		}
	}
	return err
}
