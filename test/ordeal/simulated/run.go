package simulated

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"ductor/cli"
	directives "ductor/internal/sim/script"
	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/scenario"
)

// run is a program that runs or has run, with its output.
type run struct {
	machine *machine
	id      cli.RunID
	purpose cli.Purpose
	pid     int
	name    string
	signals chan os.Signal
	life    context.Context
	kill    context.CancelFunc
	done    chan struct{} // closed when the program has ended
	in      input
	stderr  tail

	mu      sync.Mutex
	deaf    bool // the program ignores SIGTERM
	by      cli.Terminator
	ended   bool
	exit    cli.ExitStatus
	out     []byte // output of the program, without the first bytes, which were deleted
	freed   int64  // number of deleted bytes of the output
	printed []stamp
	changed signal
	prompt  scenario.Token // token of the newest prompt that the agent has started
	owner   *process       // connection of the running ductor; nil if ductor is not attached
	orphan  *time.Timer
	age     *time.Timer
}

// stamp is the time at which the program printed the output that begins at an offset.
type stamp struct {
	offset int64
	at     time.Time
}

func (r *run) String() string { return fmt.Sprintf("%s %d", r.name, r.pid) }

// outputOf is the standard output of a program. Like a file, it never blocks the program.
type outputOf struct{ *run }

func (o outputOf) Write(p []byte) (int, error) {
	if !o.append(p) {
		return 0, os.ErrClosed
	}
	if o.purpose.Mode != "" {
		o.machine.printed()
	}
	return len(p), nil
}

// append adds output. It returns false if the program has ended.
func (r *run) append(p []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	r.printed = append(r.printed, stamp{r.freed + int64(len(r.out)), time.Now()})
	r.out = append(r.out, p...)
	r.changed.broadcast()
	return true
}

// note adds a line about this run to the log. If the run is not a turn but only checks an agent, the line does not
// count as activity.
func (r *run) note(kind, format string, args ...any) {
	note := r.machine.log.note
	if r.purpose.Mode == "" {
		note = r.machine.log.noteQuietly
	}
	note(kind, "%s: %s", r, fmt.Sprintf(format, args...))
}

// recordPrompts records which prompts the agent has got. ductor may have joined several prompts, and each of them
// begins with its token.
func (r *run) recordPrompts(prompt string) {
	for _, token := range tokensOf(prompt) {
		r.mu.Lock()
		r.prompt = token
		r.mu.Unlock()
		r.machine.event(r, token, judge.Got, "")
	}
}

// recordAnswer records that the agent has written the whole answer to a prompt, or to several prompts that ductor has
// joined.
func (r *run) recordAnswer(prompt string) {
	for _, token := range tokensOf(prompt) {
		r.machine.event(r, token, judge.Done, "")
	}
}

func tokensOf(prompt string) (all []scenario.Token) {
	for _, word := range strings.Fields(directives.Parse(prompt).Plain) {
		if tokenPattern.MatchString(word) {
			all = append(all, scenario.Token(word))
		}
	}
	return all
}

// recordWrite records an effect that consists of writing a file.
func (r *run) recordWrite(_, text string) { r.effect(text) }

func (r *run) asked(about string, allowed bool) {
	what := judge.Denied
	if allowed {
		what = judge.Allowed
	}
	if name := effectPattern.FindString(about); name != "" {
		token, _, _ := strings.Cut(name, ".")
		r.machine.event(r, scenario.Token(token), what, name)
	}
}

var effectPattern = regexp.MustCompile(`\bp\d+\.\d+\b`)

func (r *run) effect(name string) {
	name = strings.TrimSpace(name)
	if token, _, ok := strings.Cut(name, "."); ok && tokenPattern.MatchString(token) {
		r.machine.event(r, scenario.Token(token), judge.Effect, name)
	}
}

var tokenPattern = regexp.MustCompile(`^p\d+$`)

// end records how the program has ended, and ends its children.
func (r *run) end(how cli.ExitStatus) {
	r.mu.Lock()
	if !r.ended {
		r.ended = true
		r.exit = how
		if r.exit.By == "" {
			r.exit.By = r.by
		}
		if r.by == cli.EndedUnseen { // the runner was killed, so the exit status is unknown
			r.exit.Code, r.exit.Signal = cli.CodeUnknown, false
		}
		r.note("end", "%+v", r.exit)
		close(r.done)
		r.changed.broadcast()
		r.stopTimers()
	}
	r.mu.Unlock()
	r.in.close()
	r.kill()
	select {
	case r.signals <- os.Kill:
	default:
	}
}

func (r *run) stopTimers() {
	for _, t := range []*time.Timer{r.orphan, r.age} {
		if t != nil {
			t.Stop()
		}
	}
}

func (r *run) killBy(by cli.Terminator) {
	r.end(cli.ExitStatus{Code: -int(syscall.SIGKILL), Signal: true, By: by})
}

func (r *run) ignoreTerm() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deaf = true
}

// stop ends the program with SIGTERM. If the program still runs after the grace period, stop uses SIGKILL.
func (r *run) stop(ctx context.Context, grace time.Duration, by cli.Terminator) {
	r.mu.Lock()
	if r.by == "" {
		r.by = by
	}
	deaf := r.deaf
	r.mu.Unlock()
	if !deaf && ctx.Err() == nil && grace > 0 {
		r.signal(syscall.SIGTERM)
	}
	wait := time.NewTimer(grace)
	defer wait.Stop()
	select {
	case <-r.done:
	case <-ctx.Done():
	case <-wait.C:
	}
	r.killBy(by)
}

func (r *run) signal(s os.Signal) {
	select {
	case <-r.done:
	case r.signals <- s:
	default:
	}
}

// abandon ends the run if no ductor attaches to it within the time limit.
func (r *run) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owner = nil
	if r.ended {
		return
	}
	after := r.machine.orphan
	if r.purpose.Mode == "" {
		after = time.Second
	}
	r.orphan = time.AfterFunc(after, func() { r.killBy(cli.EndedOrphaned) })
}

// limit ends the run when it has become too old.
func (r *run) limit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.age != nil {
		r.age.Stop()
	}
	if !r.ended && r.machine.age > 0 {
		r.age = time.AfterFunc(r.machine.age, func() { r.killBy(cli.EndedByAge) })
	}
}

// left describes the run for the next ductor process.
func (r *run) left() cli.LeftRun {
	read, closed := r.in.state()
	r.mu.Lock()
	defer r.mu.Unlock()
	return cli.LeftRun{
		Run: r.id, Purpose: r.purpose, PID: r.pid, OutputEnd: r.freed + int64(len(r.out)),
		Input: cli.LeftInput{End: read, Closed: closed}, Alive: !r.ended,
	}
}

// trim deletes the output before a position.
func (r *run) trim(before int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := min(before-r.freed, int64(len(r.out))); n > 0 {
		r.out, r.freed = r.out[n:], r.freed+n
	}
}

// readAt reads output from a position. If there is no output yet, readAt waits for it until the channel gone is closed.
func (r *run) readAt(p []byte, at int64, gone <-chan struct{}) (int, error) {
	for {
		r.mu.Lock()
		n := 0
		if at >= r.freed && at-r.freed < int64(len(r.out)) {
			n = copy(p, r.out[at-r.freed:])
		}
		freed, ended, changed := r.freed, r.ended, r.changed.wait()
		r.mu.Unlock()
		select {
		case <-gone:
			return 0, cli.ErrDetached
		default:
		}
		switch {
		case at < freed:
			return 0, &cli.LostOutput{From: at, To: freed, Reason: "it was forgotten"}
		case n > 0:
			return n, nil
		case ended:
			return 0, io.EOF
		}
		select {
		case <-changed:
		case <-gone:
		}
	}
}

// printedAt returns the time at which the program printed the output at an offset.
func (r *run) printedAt(offset int64) (at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.printed {
		if s.offset > offset {
			break
		}
		at = s.at
	}
	return at
}

// input is the standard input of a program: a pipe that never blocks the writer.
type input struct {
	mu      sync.Mutex
	text    []byte
	sent    int64
	closed  bool
	changed signal
}

var errInputClosed = errors.New("standard input is closed")

func (i *input) write(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return 0, errInputClosed
	}
	i.text = append(i.text, p...)
	i.sent += int64(len(p))
	i.changed.broadcast()
	return len(p), nil
}

func (i *input) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	i.changed.broadcast()
}

func (i *input) state() (sent int64, closed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.sent, i.closed
}

func (i *input) Read(p []byte) (int, error) {
	for {
		i.mu.Lock()
		n := copy(p, i.text)
		i.text = i.text[n:]
		closed, changed := i.closed, i.changed.wait()
		i.mu.Unlock()
		switch {
		case n > 0:
			return n, nil
		case closed:
			return 0, io.EOF
		}
		<-changed
	}
}

// tail contains the end of the output on standard error.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-tailBytes):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
