package turn

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"ductor/cli"
	"ductor/cli/frames"
)

const (
	queuedLines = 8 << 20                // limit of the lines that wait for a turn, in bytes
	exitWait    = 500 * time.Millisecond // time for a program to exit after the end of its output
	garbageKept = 1 << 10
	stderrShown = 2 << 10
)

// StreamOptions configures a Stream. Zero values mean the defaults.
type StreamOptions struct {
	Agent cli.Agent
	// Idle receives the lines between turns, one at a time and in order. It never runs at the same time as Handle. It
	// is nil if the program serves a single turn. Lines before the turn then wait for the turn, and lines after the
	// turn are dropped.
	Idle func(line []byte)

	Limits
	MaxLine int // maximum length of a line in bytes

	// Past is set if ductor attached to a running process.
	Past *Past
	// Held is set if the lines before the first turn belong to that turn. The Stream then queues these lines for the
	// turn instead of passing them to Idle.
	Held bool
}

// StreamOptionsOf returns the options for a Stream that follow from a provider's options. The caller sets Idle, Past
// and Held.
func StreamOptionsOf(o cli.ProviderOptions, agent cli.Agent) StreamOptions {
	return StreamOptions{Agent: agent, Limits: LimitsOf(o)}
}

// Stream connects turns to a program that prints its messages as lines. One goroutine reads the program's lines,
// another writes its input. Lines go to the running turn, or to Idle between turns. The Stream does not interpret them.
//
// Only one goroutine at a time may call Turn, Send and Failure. Close may be called at any time.
type Stream struct {
	process cli.Process
	opts    StreamOptions
	lines   *router // passes lines from the program to the turn
	in      *Writer // passes input from ductor to the program
	end     programEnd

	garbage Garbage
	last    *Turn[queued] // the running turn, or else the last one
	markErr error         // why the start of the turn could not be stored
}

type programEnd struct {
	pumped   chan struct{} // closed when the output has ended
	readErr  error         // error at the end of the output; valid when pumped is closed
	detached context.Context
	detach   context.CancelFunc
	gone     chan struct{} // closed when the program has ended, or ductor has detached from it
}

func newProgramEnd() programEnd {
	e := programEnd{pumped: make(chan struct{}), gone: make(chan struct{})}
	e.detached, e.detach = context.WithCancel(context.Background())
	return e
}

// reap waits for the end of the output, and stops the program if it does not exit soon after that.
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

// NewStream starts reading p's lines. The caller must call Close, which also stops p, or Detach.
func NewStream(p cli.Process, opts StreamOptions) *Stream {
	opts.Limits = opts.orDefault()
	s := &Stream{process: p, opts: opts, lines: newRouter(opts), in: NewWriter(p.Stdin()), end: newProgramEnd()}
	go s.pump()
	go s.end.reap(p, opts.Grace)
	return s
}

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

// Send queues data for the program's standard input. It returns at once. It returns an error if too much data is
// queued, or after CloseInput. It returns no error if the program has ended, because callers notice this at the end of
// the output.
func (s *Stream) Send(data []byte) error { return s.SendTold(data, nil) }

// SendTold is like Send. Unless SendTold itself returns an error, the Stream later calls sent with the result of the
// write.
func (s *Stream) SendTold(data []byte, sent func(error)) error {
	if err := s.in.Put(Parcel{Data: data, Sent: sent}); err != nil {
		return fmt.Errorf("send to %s: %w", s.opts.Agent, err)
	}
	return nil
}

// SendOnly sends the complete input to a program with a single turn, and closes the input. left is nil for a new
// program. Otherwise it describes a program that the previous process of ductor started, and SendOnly sends only the
// missing part.
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

// Hurry makes the next output readable at once, without buffering. Callers need it if they wait for a reply to their
// last input. Turn does this itself.
func (s *Stream) Hurry() { Hurry(s.process.Stdout()) }

// Wake makes the running turn check Loop.Waiting again.
func (s *Stream) Wake() { s.lines.queue.Wake() }

// CloseInput closes the program's standard input after all queued data is written.
func (s *Stream) CloseInput() { s.in.Close() }

// Garbage records a line that could not be parsed, or its beginning. The method Failure reports it.
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
	in = frames.NewReader(yielding{stdout}, o)
	line, err := in.Next()
	for ; err == nil; line, err = in.Next() {
		put(line, false)
	}
	if !errors.Is(err, io.EOF) {
		s.end.readErr = fmt.Errorf("read lines: %w", err)
	}
}

// yielding is a reader that yields the processor before each read. The turn then handles the lines that were read so
// far, before the reader blocks.
type yielding struct{ io.Reader }

func (y yielding) Read(p []byte) (int, error) {
	runtime.Gosched()
	return y.Reader.Read(p)
}

// Turn runs one turn over the program's lines; see Turn.Run. It sets the Source of the loop.
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
			s.Hurry() // so that the loop sees the agent's reaction at once
			return loop.Interrupt()
		}
	}
	s.last = t
	end := t.Run(ctx)
	if end == EndDetached {
		s.Detach()
	}
	if loop.Ended != nil {
		loop.Ended(end)
	}
	s.lines.finish(t.Rest(), s.process.Ended)
	return end
}

func (s *Stream) handle(loop Loop[[]byte], q queued) (end bool) {
	s.lines.handledByTurn(q)
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

// stop ends the program, and waits a limited time until the queue contains its last lines.
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

// Linger waits at most Grace for a program that is about to exit.
func (s *Stream) Linger(ctx context.Context) {
	limit, cancel := context.WithTimeout(ctx, s.opts.Grace)
	defer cancel()
	select {
	case <-s.process.Done():
	case <-limit.Done():
	}
}

// Detach detaches from the program, and waits for the Stream's goroutines. It drops queued input. Idempotent.
func (s *Stream) Detach() {
	s.end.detach()
	s.process.Detach()
	s.in.Drop(cli.ErrDetached)
	s.lines.queue.Close()
	<-s.end.gone
	<-s.in.Done()
}

// Close stops the program and its descendants, and waits for the Stream's goroutines. Idempotent.
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
