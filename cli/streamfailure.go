package cli

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Outcome is the Result of a turn that ended as end without a Result of the agent's own.
func (s *Stream) Outcome(ctx context.Context, end End) Result {
	switch end {
	case EndCancelled:
		return Cut(ctx, s.opts.Agent)
	case EndDetached:
		return Result{Detached: true}
	case EndStalled:
		return Stalled(s.opts.Agent, s.silence)
	default:
		return Result{Err: s.Failure()}
	}
}

// Failure says what an exit without the end of a turn means: the program crashed or was ended, or what it
// wrote could not be read. Use it after Turn returned EndExit.
func (s *Stream) Failure() *Failure {
	if f := s.lostPlace(); f != nil {
		return f
	}
	exit := s.exit()
	stderr := lastBytes(strings.TrimSpace(s.process.StderrTail()), stderrShown)
	f := &Failure{Kind: Crashed, Agent: s.opts.Agent, Code: exit.Code, Detail: stderr, Cause: errors.Join(s.readErr, s.stopErr, s.markErr)}
	kind, reason := exit.meaning()
	if exit.fromOutside() {
		f.Cause = errors.Join(f.Cause, errFromOutside)
	}
	switch {
	case s.markErr != nil:
		f.Reason = "the beginning of the turn could not be recorded, so it was not asked"
	case kind != "":
		f.Kind, f.Reason = kind, reason
	case s.garbages > 0 && (exit.Code == 0 || stderr == ""):
		f = Failf(BadOutput, s.opts.Agent, "%d lines cannot be read", s.garbages)
		f.Detail, f.Code, f.Cause = Shorten(string(s.garbage), garbageKept), exit.Code, s.readErr
	case stderr != "":
		f.Reason = lastLine(stderr)
	default:
		f.Reason = "it said nothing of why"
	}
	return f
}

// lostPlace is the failure of the place the program ran in, if it was lost; nil if not.
func (s *Stream) lostPlace() *Failure {
	var place *Failure
	if !errors.As(s.readErr, &place) {
		return nil
	}
	f := *place
	f.Agent, f.Cause = s.opts.Agent, s.readErr
	return &f
}

// errFromOutside is beneath the failure of a turn whose program was ended by nobody whom ductor knows.
var errFromOutside = errors.New("it was ended from outside")

// fromOutside says whether somebody ended the program whom ductor does not know. Who is told of a signal before its
// supervisor is may end by itself with the code that is usual then, and a machine or a sandbox that stops may kill the
// supervisor before it is done.
func (e ExitStatus) fromOutside() bool {
	const terminated = 15
	return e.By == EndedByTerminated || e.By == EndedUnseen && !e.OOM || e.By == EndedByItself && (e.Code == 128+terminated || e.Code == -terminated)
}

// meaning is what can be said of an end that was not the program's own doing; nothing of others.
func (e ExitStatus) meaning() (FailureKind, string) {
	switch {
	case e.By == EndedByAge:
		return TimedOut, "it had been running for longer than is allowed"
	case e.By == EndedOrphaned:
		return TimedOut, "ductor was not there for too long"
	case e.By == EndedByTerminated:
		return Crashed, "it was ended from outside, as when the machine or its sandbox is stopped"
	case e.OOM:
		return Crashed, "there was too little memory for it; free some, or give its sandbox more"
	case e.By == EndedUnseen:
		return Crashed, "the process that watched over it was killed"
	default:
		return "", ""
	}
}

// exit waits for the program's end, for which Turn has seen to already.
func (s *Stream) exit() ExitStatus {
	wait := time.NewTimer(stopSlack)
	defer wait.Stop()
	select {
	case <-s.process.Done():
		return s.process.Exit()
	case <-wait.C:
		return ExitStatus{Code: CodeUnknown}
	}
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return Shorten(strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:]), 300)
}

// lastBytes cuts s to its last limit bytes, at a character boundary.
func lastBytes(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := len(s) - limit
	for cut < len(s) && s[cut]&0xC0 == 0x80 {
		cut++
	}
	return "…" + s[cut:]
}
