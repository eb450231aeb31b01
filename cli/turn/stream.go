package turn

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/frames"
)

const (
	queuedLines = 8 << 20 // bytes of lines that may wait for a turn to take them
	garbageKept = 1 << 10
	stderrShown = 2 << 10
)

// StreamOptions sets up a Stream. Zero values take the defaults.
type StreamOptions struct {
	Agent cli.Agent
	// Idle gets the lines that come while no turn runs. It is called from one goroutine at a time, in
	// order, and never at the same time as a Handle. Nil is for programs that take one turn: lines wait
	// for that turn to begin, and what comes after it is thrown away.
	Idle func(line []byte)

	Limits
	MaxLine int // bytes

	// Past is set for a process that was attached to.
	Past *Past
	// Held keeps the lines for the first turn, although there is an Idle: they are of that turn.
	Held bool
}

// StreamOptionsOf are the options of a stream to agent by a dialect made with o. Idle, Past and Held are the caller's to set.
func StreamOptionsOf(o cli.ProviderOptions, agent cli.Agent) StreamOptions {
	return StreamOptions{Agent: agent, Limits: LimitsOf(o)}
}

// Stream is a program that is talked with line by line: one goroutine reads its lines, one writes to
// it. A turn gets the lines while it runs, Idle gets the others. It knows no protocol.
//
// Turn, Send and Failure are for one goroutine at a time; Close may be called at any time.
type Stream struct {
	process cli.Process
	opts    StreamOptions
	out     *Queue[queued] // program to turn
	in      *Writer        // us to program
	ends
	dispatch

	garbage Garbage
	last    *Turn[queued] // that ran last, or runs
	markErr error         // why it was not begun
}

// ends are how a program ends.
type ends struct {
	pumped   chan struct{} // closed when it prints nothing any more
	readErr  error         // why; valid once pumped is closed
	detached context.Context
	detach   context.CancelFunc
	gone     chan struct{} // closed when it has ended, or was detached from
}

// dispatch says where lines go. Its lock is held while Idle is called, and to begin or end a turn.
type dispatch struct {
	mu      sync.Mutex
	to      recipient
	handled int64         // the offset after the last line that Idle or a turn has had
	past    bool          // what is dealt with was said before ductor listened
	caught  chan struct{} // closed when it is not
}

// recipient is what a line is of.
type recipient string

const (
	firstTurn   recipient = "the first turn" // which has not begun
	runningTurn recipient = "the turn"
	noTurn      recipient = "no turn"
)

// queued is one line on its way, or what happened to the output between two lines.
type queued struct {
	line  []byte
	waste bool  // it is too long, and only its beginning was kept
	end   int64 // the offset after it
	Change
}

// NewStream begins to read p's lines. The caller must Close the Stream, which also stops p.
func NewStream(p cli.Process, opts StreamOptions) *Stream {
	opts.Limits = opts.orDefault()
	s := &Stream{process: p, opts: opts, out: NewQueue[queued](queuedLines), in: NewWriter(p.Stdin())}
	s.pumped, s.gone, s.caught = make(chan struct{}), make(chan struct{}), make(chan struct{})
	s.detached, s.detach = context.WithCancel(context.Background())
	if s.to = firstTurn; opts.Idle != nil && !opts.Held {
		s.to = noTurn
	}
	if opts.Past != nil {
		s.handled, s.past = opts.Past.From, true
	} else {
		close(s.caught)
	}
	go s.pump()
	go s.reap()
	return s
}

// Process is the program.
func (s *Stream) Process() cli.Process { return s.process }

// Ended is closed when the program will print nothing any more.
func (s *Stream) Ended() <-chan struct{} { return s.pumped }

// Alive says whether the program runs and may print more.
func (s *Stream) Alive() bool {
	select {
	case <-s.process.Done():
		return false
	case <-s.pumped:
		return false
	default:
		return true
	}
}

// Send queues data for the program's standard input as it is and returns at once. It fails when too
// much waits already, or after CloseInput; that the program is dead is shown by the end of its output.
func (s *Stream) Send(data []byte) error { return s.SendTold(data, nil) }

// SendTold is Send; sent is told how writing went, unless SendTold failed.
func (s *Stream) SendTold(data []byte, sent func(error)) error {
	if err := s.in.Put(Parcel{Data: data, Sent: sent}); err != nil {
		return fmt.Errorf("send to %s: %w", s.opts.Agent, err)
	}
	return nil
}

// SendOnly sends a program of one turn all that it is to read, and the end of it. Of one that was left in its turn
// that is what it has not got yet; left is nil for one that was just started.
func (s *Stream) SendOnly(input []byte, left *cli.LeftRun) error {
	defer s.CloseInput()
	if left != nil && left.InputClosed {
		return nil
	}
	if left != nil {
		input = input[min(left.InputEnd, int64(len(input))):]
	}
	if len(input) == 0 {
		return nil
	}
	return s.Send(input)
}

// Hurry has what comes next read at once, however busy the program was: somebody waits for the answer to what
// was just sent. Turn does so itself.
func (s *Stream) Hurry() { Hurry(s.process.Stdout()) }

// Wake has the turn that runs ask Loop.Waiting again.
func (s *Stream) Wake() { s.out.Wake() }

// CloseInput gives the program end of file once all that was sent is written.
func (s *Stream) CloseInput() { s.in.Close() }

// Garbage notes a line that cannot be read, or a part of one, for Failure.
func (s *Stream) Garbage(line []byte) { s.garbage.Add(line) }

func (s *Stream) pump() {
	defer close(s.pumped)
	stdout := s.process.Stdout()
	var in *frames.Reader
	put := func(line []byte, waste bool) {
		s.deliver(queued{line: bytes.Clone(line), waste: waste, end: in.At()})
	}
	o := frames.Options{
		Limit: s.opts.MaxLine, Garbage: func(head []byte) { put(head, true) },
		Lost: func(l *cli.LostOutput) { s.deliver(queued{end: l.To, Change: Change{Lost: l}}) },
	}
	if past := s.opts.Past; past != nil {
		o.From, o.Until = past.From, past.Until
		o.CaughtUp = func() {
			s.deliver(queued{Change: Change{CaughtUp: true}})
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
		s.readErr = fmt.Errorf("read lines: %w", err)
	}
}

// exitWait is how long a program may run on whose output ended.
const exitWait = 500 * time.Millisecond

// reap sees to it that a program whose output ended is gone.
func (s *Stream) reap() {
	defer close(s.gone)
	<-s.pumped
	wait := time.NewTimer(exitWait)
	defer wait.Stop()
	select {
	case <-s.process.Done():
	case <-s.detached.Done():
	case <-wait.C:
		ctx, cancel := context.WithTimeout(s.detached, s.opts.Grace+cli.StopSlack)
		defer cancel()
		_ = s.process.Stop(ctx, s.opts.Grace) // Close tries again, and tells its caller
	}
}

// deliver hands q to Idle or to the turn. It blocks while the turn has too much to do already.
func (s *Stream) deliver(q queued) {
	s.out.AwaitRoom()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to == noTurn {
		s.idle(q)
		return
	}
	s.out.Put(q, len(q.line))
}

// idle takes a line that belongs to no turn.
func (s *Stream) idle(q queued) {
	s.note(q)
	if !q.waste && !q.Any() && s.opts.Idle != nil {
		s.opts.Idle(q.line)
	}
}

// note remembers how far the output was dealt with. mu is held.
func (s *Stream) note(q queued) {
	if q.CaughtUp {
		s.past = false
		close(s.caught)
		return
	}
	s.handled = q.end
}

// Turn runs the loop of one turn, whose Source it makes; see Turn.Run.
func (s *Stream) Turn(ctx context.Context, loop Loop[[]byte]) End {
	s.awaitPast(ctx, loop.Mark)
	source := Source[queued]{In: s.out, Gone: s.gone, Stop: s.stop, Limits: s.opts.Limits}
	past := s.begin()
	if s.spoke() {
		source.Limits.First = 0
	}
	if past {
		from, when := s.opts.Past.From, s.process.When
		source.Resumed, source.End = &Resumed{From: from, Began: cmp.Or(when(from), time.Now()), When: when}, func(q queued) int64 { return q.end }
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
			s.Hurry() // to see the reaction when it comes
			return loop.Interrupt()
		}
	}
	s.last = t
	end := t.Run(ctx)
	if end == EndDetached {
		s.Detach()
	}
	s.finish(t.Rest())
	return end
}

// handle takes one line for the turn.
func (s *Stream) handle(loop Loop[[]byte], q queued) (end bool) {
	s.mu.Lock()
	s.note(q)
	s.mu.Unlock()
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

// begin sends lines to the turn from now on, and says whether those are of the past.
func (s *Stream) begin() (past bool) {
	s.Hurry()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to, s.garbage, s.markErr = runningTurn, Garbage{}, nil
	return s.past
}

// spoke reports whether a word of the program was dealt with.
func (s *Stream) spoke() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handled > 0
}

// finish gives what the turn left to Idle, and every later line.
func (s *Stream) finish(rest []queued) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process.Ended(s.handled)
	s.to = noTurn
	waiting, _ := s.out.Take()
	for _, q := range append(rest, waiting...) {
		s.idle(q)
	}
}

// stop ends the program, and returns when its last lines are queued, which the drain time of Process.Stdout bounds.
func (s *Stream) stop(ctx context.Context, grace time.Duration) error {
	err := s.process.Stop(ctx, grace)
	wait := time.NewTimer(cli.StopSlack)
	defer wait.Stop()
	select {
	case <-s.pumped:
	case <-wait.C:
	}
	return err
}

// Linger lets a program that is about to end do so, for no longer than Grace.
func (s *Stream) Linger(ctx context.Context) {
	limit, cancel := context.WithTimeout(ctx, s.opts.Grace)
	defer cancel()
	select {
	case <-s.process.Done():
	case <-limit.Done():
	}
}

// Detach detaches from the program and waits for the Stream's goroutines. What was sent and not written yet is
// dropped as well. Idempotent.
func (s *Stream) Detach() {
	s.detach()
	s.process.Detach()
	s.in.Drop(cli.ErrDetached)
	s.out.Close()
	<-s.gone
	<-s.in.Done()
}

// Close stops the program with all it started and waits for the Stream's goroutines. Idempotent.
func (s *Stream) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Grace+cli.StopSlack)
	defer cancel()
	err := s.process.Stop(ctx, s.opts.Grace)
	s.in.Close()
	_ = s.process.Stdin().Close() // frees a writer; a second Close has no error worth telling
	s.out.Close()
	for _, ended := range []<-chan struct{}{s.gone, s.in.Done()} {
		select {
		case <-ended:
		case <-ctx.Done():
			return errors.Join(err, fmt.Errorf("close %s: %w", s.opts.Agent, context.Cause(ctx)))
		}
	}
	return err
}
