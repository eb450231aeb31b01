package clitest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"ductor/cli"
	"ductor/internal/proctree"
)

// stage contains what one test case of Conformance needs, such as a provider and a template for requests. All processes
// of the stage's agents have the environment variable markVar, with mark as its value.
type stage struct {
	t        *testing.T
	h        Harness
	script   Script
	provider cli.Provider
	request  cli.Request
	mark     string
	runs     string // directory of runs that all simulated processes of ductor share; empty before the first process
}

const (
	markVar         = "CLITEST_MARK"
	defaultPatience = time.Minute
	patientGrace    = defaultPatience / 2    // for agents that end a turn on request, even on a slow machine
	shortGrace      = 500 * time.Millisecond // for agents that do not end a turn on request
	look            = 2 * time.Millisecond   // pause between two checks of a process or a file
)

func newStage(t *testing.T, h Harness) *stage {
	s := &stage{t: t, h: h, script: h.Script.withDefaults(), mark: uuid.NewString()}
	if s.h.Patience == 0 {
		s.h.Patience = defaultPatience
	}
	s.provider, s.request = h.New(t)
	s.setGrace(patientGrace)
	env := map[string]string{markVar: s.mark}
	for k, v := range s.request.Env {
		env[k] = v
	}
	s.request.Env = env
	return s
}

// setGrace changes how long the agent may take to end a turn before ductor kills the process.
func (s *stage) setGrace(grace time.Duration) {
	if s.h.Grace != nil {
		s.provider = s.h.Grace(s.provider, grace)
	}
}

func (s *stage) ask(parts ...string) cli.Request {
	req := s.request
	req.Turn = cli.TurnID(uuid.NewString())
	req.Prompt = strings.Join(parts, " ")
	return req
}

// open opens a session. At the end of the case, it closes the session and checks that no process is left.
func (s *stage) open(req cli.Request) cli.Session {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), s.h.Patience)
	defer cancel()
	session, err := s.provider.Open(ctx, s.h.Mode, req)
	if err != nil {
		s.t.Fatalf("open: %v", err)
	}
	info := session.Info()
	if info.Agent != s.provider.Agent() || info.Mode != s.h.Mode {
		s.t.Errorf("the session says it is %q in mode %q", info.Agent, info.Mode)
	}
	s.t.Cleanup(func() { s.close(session) })
	return session
}

// close closes a session, and fails the test if a process of the stage's agents is left.
func (s *stage) close(session cli.Session) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), s.h.Patience)
	defer cancel()
	if err := session.Close(ctx); err != nil {
		s.t.Errorf("close: %v", err)
	}
	if left := s.processes(); len(left) > 0 {
		s.t.Errorf("after Close these processes are still there: %v", left)
	}
	if info := session.Info(); info.PID != 0 && info.Alive {
		s.t.Errorf("after Close the session says it is alive: %+v", info)
	}
}

// played is a turn that has ended.
type played struct {
	events []cli.Event
	result cli.Result
}

func (s *stage) turn(session cli.Session, req cli.Request) played {
	s.t.Helper()
	return s.begin(session, req).end()
}

// begin starts a turn. The caller waits for the turn with playing.end.
func (s *stage) begin(session cli.Session, req cli.Request) *playing {
	ctx, cancel := context.WithCancelCause(s.t.Context())
	p := &playing{s: s, cancel: cancel, over: make(chan struct{}), news: make(chan struct{}, 1)}
	go func() {
		defer close(p.over)
		session.Turn(ctx, req, p.emit)
		p.returned.Store(true)
	}()
	return p
}

// playing is a turn that may still be running.
type playing struct {
	s        *stage
	cancel   context.CancelCauseFunc
	over     chan struct{}
	news     chan struct{} // receives a value after an event
	inside   atomic.Int32
	returned atomic.Bool

	mu     sync.Mutex
	events []cli.Event
	answer cli.Answer
}

func (p *playing) emit(ev cli.Event) {
	if p.inside.Add(1) != 1 {
		p.s.t.Error("emit is called from two goroutines at a time")
	}
	defer p.inside.Add(-1)
	if p.returned.Load() {
		p.s.t.Errorf("%T is emitted after Turn returned", ev)
	}
	p.mu.Lock()
	p.events = append(p.events, ev)
	p.answer.Add(ev)
	p.mu.Unlock()
	select {
	case p.news <- struct{}{}:
	default:
	}
}

func (p *playing) awaitText(text string) {
	p.s.t.Helper()
	deadline := time.After(p.s.h.Patience)
	for {
		p.mu.Lock()
		seen := strings.Contains(p.answer.String(), text)
		p.mu.Unlock()
		if seen {
			return
		}
		select {
		case <-p.news:
		case <-p.over:
			p.s.t.Fatalf("the turn ended before it said %q: %+v", text, p.end().result)
		case <-deadline:
			p.s.t.Fatalf("the turn never said %q", text)
		}
	}
}

func (p *playing) awaitEvent(match func(cli.Event) bool) {
	p.s.t.Helper()
	deadline := time.After(p.s.h.Patience)
	for {
		p.mu.Lock()
		seen := slices.ContainsFunc(p.events, match)
		p.mu.Unlock()
		if seen {
			return
		}
		select {
		case <-p.news:
		case <-p.over:
			p.s.t.Fatalf("the turn ended before the event that was waited for: %+v", p.end().events)
		case <-deadline:
			p.s.t.Fatal("the event that was waited for never came")
		}
	}
}

// end waits for the end of the turn, and checks its events against the contract.
func (p *playing) end() played {
	p.s.t.Helper()
	select {
	case <-p.over:
	case <-time.After(p.s.h.Patience):
		p.cancel(cli.ErrAborted)
		p.s.t.Fatalf("the turn did not end in %s", p.s.h.Patience)
	}
	p.cancel(nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, wrong := range Violations(p.events) {
		p.s.t.Errorf("contract: %s", wrong)
	}
	done := played{events: p.events}
	if n := len(p.events); n > 0 {
		done.result, _ = p.events[n-1].(cli.Result)
	}
	return done
}

// processes returns the running processes of this case. It finds them by a variable in their environment.
func (s *stage) processes() []proctree.ID {
	s.t.Helper()
	running, err := proctree.Marked(markVar + "=" + s.mark)
	if err != nil {
		s.t.Fatal(err)
	}
	return running
}

// Alive reports whether a process is running. Zombies are not.
func Alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	rest := stat[bytes.LastIndexByte(stat, ')')+1:]
	fields := strings.Fields(string(rest))
	return len(fields) > 0 && fields[0] != "Z" && fields[0] != "X"
}

// asleep reports whether the command "sleep 300" of a tool is running with this PID. It checks the command because a
// PID from a container may be that of another process here.
func asleep(pid int) bool {
	cmdline, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return err == nil && string(cmdline) == "sleep\x00300\x00" && Alive(pid)
}

// awaitFile waits until a tool has written a complete line to a file, and returns the content.
func (s *stage) awaitFile(path string) string {
	s.t.Helper()
	for deadline := time.Now().Add(s.h.Patience); ; {
		content, err := os.ReadFile(path)
		if err == nil && bytes.HasSuffix(content, []byte("\n")) {
			return strings.TrimSpace(string(content))
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the tool never wrote %s", filepath.Base(path))
		}
		time.Sleep(look)
	}
}
