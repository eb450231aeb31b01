package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"ductor/cli"
)

// DefaultInterruptWait is the default of StreamOptions.InterruptWait.
const DefaultInterruptWait = 30 * time.Millisecond

const (
	queuedLines = 8 << 20   // bytes of lines that may wait for a turn to take them
	queuedInput = 256 << 20 // bytes that may wait for the program to read them
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

	Stall         time.Duration // silence that ends a turn
	ToolStall     time.Duration // the same while a tool is open
	InterruptWait time.Duration // how soon an interrupt must show any reaction
	Grace         time.Duration // from the cancelling of a turn to SIGKILL, at most
	MaxLine       int           // bytes

	// Past is set for a process that was attached to.
	Past *Past
	// Held keeps the lines for the first turn, although there is an Idle: they are of that turn.
	Held bool
}

// StreamOptionsOf are the options of a stream to agent by a dialect made with o. Idle, Past and Held are the caller's to set.
func StreamOptionsOf(o cli.ProviderOptions, agent cli.Agent) StreamOptions {
	return StreamOptions{Agent: agent, Stall: o.Stall, ToolStall: o.ToolStall, Grace: o.Grace}
}

// Loop is how a dialect takes part in one turn.
type Loop struct {
	// Begin is called first, when lines already go to this turn: what it sends cannot be answered before
	// anybody listens. Nil does nothing.
	Begin func()
	// Handle takes one line and says whether it ended the turn. Lines come in order, on the goroutine
	// that called Turn. It may keep the slice.
	Handle func(line []byte) (end bool)
	// Interrupt asks the agent to end the turn, without waiting. Nil if the protocol has no such thing.
	Interrupt func() error
	// Busy says whether a tool is open. Nil asks Out.
	Busy func() bool
	// Waited is until when the agent waited for people, who may take any time: now, while it does; zero if it never
	// did. Nil is never.
	Waited func(now time.Time) time.Time
	// Out gets CaughtUp and warnings about lost output. Nil gets none.
	Out *Emitter
	// Mark is recorded with the process before Begin is called; Output and Input are filled in. A Mark
	// without a Turn is not recorded: the process was started for this turn, or the turn was adopted.
	Mark cli.Mark
}

// End is how a turn's loop ended.
type End string

// The ways a loop ends.
const (
	EndTurn      End = "turn"      // Handle said so, and ctx was not cancelled
	EndExit      End = "exit"      // the program ended; every line it printed was handled
	EndCancelled End = "cancelled" // ctx was; the program was stopped unless it had ended the turn before
	EndStalled   End = "stalled"   // too long a silence; likewise
	EndDetached  End = "detached"  // ctx was cancelled with ErrDetached: the program goes on with the turn
)

// Stream is a program that is talked with line by line: one goroutine reads its lines, one writes to
// it. A turn gets the lines while it runs, Idle gets the others. It knows no protocol.
//
// Turn, Send and Failure are for one goroutine at a time; Close may be called at any time.
type Stream struct {
	process cli.Process
	opts    StreamOptions
	stdout  io.Reader
	out     *lineQueue // program to turn
	in      *lineQueue // us to program
	pumped  chan struct{}
	written chan struct{}

	dispatch sync.Mutex // held while Idle is called, and to begin or end a turn
	active   bool       // under dispatch
	began    bool       // under dispatch: a turn has been run
	handled  int64      // under dispatch: the offset after the last line that Idle or a turn has had

	past   atomic.Bool   // what is dealt with was said before Until
	spoken atomic.Int64  // the offset of the last of it
	caught chan struct{} // closed when past is over
	told   bool          // a turn has passed CaughtUp on

	readErr error // valid once pumped is closed
	stopErr error // of the Stop that a turn began
	markErr error // why the last turn was not begun
	garbage Garbage
	silence time.Duration // that ended the last turn
}

// NewStream begins to read p's lines. The caller must Close the Stream, which also stops p.
func NewStream(p cli.Process, opts StreamOptions) *Stream {
	opts.Stall = cmp.Or(opts.Stall, cli.DefaultStall)
	opts.ToolStall = cmp.Or(opts.ToolStall, cli.DefaultToolStall)
	opts.InterruptWait = cmp.Or(opts.InterruptWait, DefaultInterruptWait)
	opts.Grace = cmp.Or(opts.Grace, cli.DefaultGrace)
	s := &Stream{
		process: p, opts: opts, stdout: p.Stdout(), out: newLineQueue(queuedLines), in: newLineQueue(queuedInput),
		pumped: make(chan struct{}), written: make(chan struct{}), caught: make(chan struct{}),
	}
	if opts.Past != nil {
		s.handled = opts.Past.From
		s.past.Store(true)
		s.spoken.Store(opts.Past.From)
	}
	go s.pump()
	go s.write()
	return s
}

// Process is the program.
func (s *Stream) Process() cli.Process { return s.process }

// Ended is closed when the program will print nothing any more.
func (s *Stream) Ended() <-chan struct{} { return s.pumped }

// Send queues data for the program's standard input as it is and returns at once. It fails when too
// much waits already, or after CloseInput; that the program is dead is shown by the end of its output.
func (s *Stream) Send(data []byte) error {
	if !s.in.offer(queued{line: data}) {
		return fmt.Errorf("send to %s: %w", s.opts.Agent, errInputFull)
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

var errInputFull = errors.New("its input is closed, or it does not read it")

// Hurry has what comes next read at once, however busy the program was: somebody waits for the answer to what
// was just sent. Turn does so itself.
func (s *Stream) Hurry() { Hurry(s.stdout) }

// CloseInput gives the program end of file once all that was sent is written.
func (s *Stream) CloseInput() { s.in.close() }

// Garbage notes a line that cannot be read, or a part of one, for Failure.
func (s *Stream) Garbage(line []byte) { s.garbage.Add(line) }

func (s *Stream) pump() {
	defer close(s.pumped)
	defer s.out.close()
	r := s.stdout
	from := int64(0)
	if past := s.opts.Past; past != nil {
		from = past.From
		r = &catchingReader{r: r, at: from, until: past.Until, reached: func() {
			s.deliver(queued{caughtUp: true})
			Gather(s.stdout)
		}}
	} else {
		Gather(s.stdout)
	}
	s.readErr = readLines(r, s.opts.MaxLine, from, lineSink{
		line: func(line []byte, end int64) { s.deliver(queued{line: append([]byte(nil), line...), end: end}) },
		oversized: func(head []byte, size, end int64) {
			s.deliver(queued{line: head, oversized: size, end: end})
		},
		lost: func(l *cli.LostOutput) { s.deliver(queued{lost: l, end: l.To}) },
	})
}

// deliver hands q to Idle or to the turn. It blocks while the turn has too much to do already.
func (s *Stream) deliver(q queued) {
	s.dispatch.Lock()
	if !s.active && (s.began || s.opts.Idle != nil && !s.opts.Held) {
		s.idle(q)
		s.dispatch.Unlock()
		return
	}
	roomy := s.out.put(q)
	s.dispatch.Unlock()
	if !roomy {
		s.out.awaitRoom()
	}
}

// idle takes a line that belongs to no turn.
func (s *Stream) idle(q queued) {
	s.note(q)
	switch {
	case q.caughtUp && s.opts.Past.Reached != nil:
		s.opts.Past.Reached()
	case q.oversized == 0 && !q.news() && s.opts.Idle != nil:
		s.opts.Idle(q.line)
	}
}

// note remembers how far the output was dealt with. dispatch is held.
func (s *Stream) note(q queued) {
	if q.caughtUp {
		s.past.Store(false)
		close(s.caught)
		return
	}
	s.handled = q.end
	s.spoken.Store(q.end - 1)
}

func (s *Stream) write() {
	defer close(s.written)
	in := s.process.Stdin()
	defer in.Close()
	for {
		batch, open := s.in.take()
		for _, q := range batch {
			if q.flushed != nil {
				close(q.flushed)
				continue
			}
			if _, err := in.Write(q.line); err != nil {
				s.in.close() // the program is gone or closed its input: its output will end the turn
				return
			}
		}
		if len(batch) == 0 && !open {
			return
		}
		if len(batch) == 0 {
			<-s.in.ready
		}
	}
}

// Detach detaches from the program and waits for the Stream's goroutines. What was sent and not written yet is
// let go as well. Idempotent.
func (s *Stream) Detach() {
	s.process.Detach()
	s.in.drop()
	s.out.drop()
	<-s.pumped
	<-s.written
}

// Close stops the program with all it started and waits for the Stream's goroutines. Idempotent.
func (s *Stream) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Grace+cli.StopSlack)
	defer cancel()
	err := s.process.Stop(ctx, s.opts.Grace)
	s.in.close()
	_ = s.process.Stdin().Close() // frees a writer; a second Close has no error worth telling
	s.out.drop()
	for _, ended := range []chan struct{}{s.pumped, s.written} {
		select {
		case <-ended:
		case <-ctx.Done():
			return errors.Join(err, fmt.Errorf("close %s: %w", s.opts.Agent, context.Cause(ctx)))
		}
	}
	return err
}
