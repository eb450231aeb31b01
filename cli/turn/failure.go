package turn

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ductor/cli"
	"ductor/lang"
)

// Outcome returns the Result of the last turn if the agent itself sent no result. end is the End that Turn returned.
func (s *Stream) Outcome(end End) cli.Result {
	if limit := s.opts.Limits.First; end == EndStalled && limit > 0 && s.lines.offset() == 0 {
		why := lastLine(strings.TrimSpace(cli.WithoutCodes(s.process.StderrTail())))
		if why == "" {
			return cli.Result{Err: cli.Failf(cli.UnknownFailure, s.opts.Agent, "failure.start-timeout", limit)}
		}
		return cli.Result{Err: cli.Failf(cli.UnknownFailure, s.opts.Agent, "failure.start-timeout-but", limit, why)}
	}
	return s.last.Outcome(end, s.opts.Agent, s.Failure)
}

// Failure returns the failure of a process that exited during a turn. Call it only if Turn returned EndExit.
func (s *Stream) Failure() *cli.Failure {
	f := EndFailure(s.opts.Agent, s.process, cli.StopSlack, s.end.readErr, s.garbage)
	if s.markErr != nil && environmentFailure(s.end.readErr) == nil {
		f.Kind = cli.Crashed
		f.Because(lang.NewMessage("failure.not-recorded"))
	}
	f.Cause = errors.Join(f.Cause, s.last.StopErr(), s.markErr)
	return f
}

// Unnamed returns the failure of a turn that the agent completed without naming its session. Later prompts cannot
// continue such a session.
func Unnamed(agent cli.Agent) *cli.Failure {
	return cli.Failf(cli.BadOutput, agent, "failure.no-session-name")
}

// Garbage counts those lines or messages of a program that ductor could not parse, and stores the first one.
type Garbage struct {
	count int
	first []byte
}

// Add records a line or message that could not be parsed. raw may be only its beginning.
func (g *Garbage) Add(raw []byte) {
	g.count++
	if g.first == nil {
		g.first = append([]byte{}, raw[:min(len(raw), garbageKept)]...)
	}
}

// Begin returns the beginning of the first recorded line or message, in one line.
func (g Garbage) Begin() string { return cli.OneLine(string(g.first), beginShown) }

const beginShown = 100

// EndFailure returns the failure of a turn whose process ended. The reason may be a crash, a kill, or output that could
// not be parsed. readErr is the error at the end of the output. EndFailure waits at most the given time for the process
// to exit.
func EndFailure(agent cli.Agent, p cli.Process, wait time.Duration, readErr error, garbage Garbage) *cli.Failure {
	if lost := environmentFailure(readErr); lost != nil {
		f := *lost
		f.Agent, f.Cause = agent, readErr
		return &f
	}
	exit := exitOf(p, wait)
	stderr := lastBytes(strings.TrimSpace(cli.WithoutCodes(p.StderrTail())), stderrShown)
	f := &cli.Failure{Kind: cli.Crashed, Agent: agent, Code: exit.Code, Detail: stderr, Cause: readErr}
	kind, reason := outsideCause(exit)
	if fromOutside(exit) {
		f.Cause = errors.Join(f.Cause, cli.ErrFromOutside)
	}
	switch {
	case kind != "":
		f.Kind, f.Own = kind, reason
	case garbage.count > 0 && (exit.Code == 0 || stderr == ""):
		f = cli.Failf(cli.BadOutput, agent, "failure.garbage", garbage.count)
		f.Detail, f.Code, f.Cause = cli.Shorten(string(garbage.first), garbageKept), exit.Code, readErr
	case killed(exit): // the last output does not explain why the program was killed
	default:
		if f.Reason = lastLine(stderr); f.Reason == "" {
			f.Own = lang.NewMessage("failure.no-words")
		}
	}
	return f
}

func environmentFailure(readErr error) *cli.Failure {
	var place *cli.Failure
	errors.As(readErr, &place)
	return place
}

// fromOutside reports whether something outside of ductor ended the program, such as a shutdown of the machine. Besides
// EndedByTerminated, it recognizes two cases:
//   - The program exited with the usual code for SIGTERM. At a shutdown, the program may receive SIGTERM before its
//     runner.
//   - No runner saw the end, and memory had not run out. If the machine or sandbox stops, the runner may be killed
//     before it can report the end.
func fromOutside(e cli.ExitStatus) bool {
	const terminated = 15
	return e.By == cli.EndedByTerminated || e.By == cli.EndedUnseen && !e.OOM || e.By == cli.EndedByItself &&
		(e.Code == 128+terminated || e.Code == -terminated)
}

// killed reports whether the program was ended by a signal that usually comes from outside. Other signals, such as
// SIGSEGV, come from failures of the program itself.
func killed(e cli.ExitStatus) bool {
	const hangup, interrupt, kill, terminated = 1, 2, 9, 15
	return slices.Contains([]int{-hangup, -interrupt, -kill, -terminated}, e.Code)
}

// warningLine matches a warning. A warning does not explain why a program ended.
var warningLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^\W*(?:warn(?:ing)?\b|\S+ +warn\b)`) })

// outsideCause returns the kind and the reason of a failure if something other than the program caused its end.
// Otherwise it returns "".
func outsideCause(e cli.ExitStatus) (cli.FailureKind, lang.Message) {
	switch {
	case e.By == cli.EndedByKill:
		return cli.Killed, lang.Message{}
	case e.By == cli.EndedByAge:
		return cli.TimedOut, lang.NewMessage("failure.ran-too-long")
	case e.By == cli.EndedOrphaned:
		return cli.TimedOut, lang.NewMessage("failure.orphaned")
	case e.By == cli.EndedByTerminated:
		return cli.Crashed, lang.NewMessage("failure.ended-outside")
	case e.OOM:
		return cli.Crashed, lang.NewMessage("failure.no-memory")
	case e.By == cli.EndedUnseen:
		return cli.Crashed, lang.NewMessage("failure.watcher-killed")
	default:
		return "", lang.Message{}
	}
}

// exitOf waits at most limit for the program to end, and returns its exit status.
func exitOf(p cli.Process, limit time.Duration) cli.ExitStatus {
	wait := time.NewTimer(limit)
	defer wait.Stop()
	select {
	case <-p.Done():
		return p.Exit()
	case <-wait.C:
		return cli.ExitStatus{Code: cli.CodeUnknown}
	}
}

// lastLine returns the last line of s that is neither empty nor a warning. It returns "" if there is none.
func lastLine(s string) string {
	lines := strings.Split(s, "\n")
	for _, line := range slices.Backward(lines) {
		if line = strings.TrimSpace(line); line != "" && !warningLine().MatchString(line) {
			return cli.Shorten(line, 300)
		}
	}
	return ""
}

// lastBytes returns at most the last limit bytes of s. It cuts at a character boundary.
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
