package codex

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/rpc"
)

// oddServer is an app server inside the test with unusual behaviour. It answers like any server unless say handles the
// message.
type oddServer struct {
	say    func(s *oddServer, m rpc.Message) (handled bool)
	stdin  *io.PipeWriter
	stdout *io.PipeReader
	out    *io.PipeWriter
	done   chan struct{}
	once   sync.Once
	code   int
	dying  func() // called while it is being stopped; may be nil

	mu    sync.Mutex
	heard []rpc.Message
}

const oddThread = "11111111-2222-3333-4444-555555555555"

func newOddServer(say func(*oddServer, rpc.Message) bool) *oddServer {
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	s := &oddServer{say: say, stdin: stdin, stdout: stdout, out: out, done: make(chan struct{})}
	go s.serve(in)
	return s
}

func (s *oddServer) serve(in io.Reader) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			s.exit()
			return
		}
		var m rpc.Message
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		s.mu.Lock()
		s.heard = append(s.heard, m)
		s.mu.Unlock()
		if s.say == nil || !s.say(s, m) {
			s.asUsual(m)
		}
	}
}

func (s *oddServer) asUsual(m rpc.Message) {
	switch m.Method {
	case "thread/start", "thread/resume":
		s.print(`{"id":` + string(m.ID) + `,"result":{"thread":{"id":"` + oddThread + `"},"model":"m"}}`)
	case "turn/start":
		s.print(`{"id":`+string(m.ID)+`,"result":{"turn":{"id":"T"}}}`, notify("turn/started", `"turn":{"id":"T"}`))
	case "turn/interrupt":
		s.print(`{"id":`+string(m.ID)+`,"result":{}}`, endsAs("interrupted"))
	case "":
	default:
		if len(m.ID) > 0 {
			s.print(`{"id":` + string(m.ID) + `,"result":{}}`)
		}
	}
}

// notify returns a notification of the odd thread's turn.
func notify(method, params string) string {
	return `{"method":"` + method + `","params":{"threadId":"` + oddThread + `","turnId":"T",` + params + `}}`
}

func endsAs(status string) string {
	return notify("turn/completed", `"turn":{"id":"T","status":"`+status+`"}`)
}

func delta(text string) string {
	return notify("item/agentMessage/delta", `"itemId":"i","delta":"`+text+`"`)
}

func approval(id string) string {
	return `{"id":` + id + `,"method":"` + askCommand + `","params":{"threadId":"` + oddThread + `","turnId":"T","itemId":"c","command":"touch x"}}`
}

func (s *oddServer) print(lines ...string) {
	_, _ = io.WriteString(s.out, strings.Join(lines, "\n")+"\n") // after the end there is no reader
}

func (s *oddServer) exit() {
	s.once.Do(func() {
		_ = s.out.Close()
		close(s.done)
	})
}

// answersTo returns the answers to a request of the server.
func (s *oddServer) answersTo(id string) (answers []rpc.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.heard {
		if m.Method == "" && string(m.ID) == id {
			answers = append(answers, m)
		}
	}
	return answers
}

func (s *oddServer) Run() cli.RunID                        { return "run" }
func (s *oddServer) PID() int                              { return 1 }
func (s *oddServer) Stdin() io.WriteCloser                 { return s.stdin }
func (s *oddServer) Stdout() io.Reader                     { return s.stdout }
func (s *oddServer) When(int64) time.Time                  { return time.Time{} }
func (s *oddServer) StderrTail() string                    { return "odd last words" }
func (s *oddServer) Begin(context.Context, cli.Mark) error { return nil }
func (s *oddServer) Ended(int64)                           {}
func (s *oddServer) Interrupt() error                      { return nil }
func (s *oddServer) Done() <-chan struct{}                 { return s.done }
func (s *oddServer) Exit() cli.ExitStatus                  { return cli.ExitStatus{Code: s.code} }
func (s *oddServer) Detach()                               {}
func (s *oddServer) Stop(context.Context, time.Duration) error {
	if s.dying != nil {
		s.dying()
	}
	_ = s.stdin.Close()
	s.exit()
	return nil
}

// oddLauncher starts odd servers, all of one kind.
type oddLauncher struct {
	say     func(*oddServer, rpc.Message) bool
	version string // the output of --version, if not empty

	mu      sync.Mutex
	servers []*oddServer
}

// saying is a process whose output is complete.
type saying struct {
	*oddServer
	words io.Reader
}

func (s saying) Stdout() io.Reader { return s.words }

func (l *oddLauncher) Start(_ context.Context, cmd cli.Command) (cli.Process, error) {
	if len(cmd.Args) == 1 && cmd.Args[0] == "--version" && l.version != "" {
		s := newOddServer(nil)
		s.exit()
		return saying{s, strings.NewReader(l.version + "\n")}, nil
	}
	if len(cmd.Args) == 0 || cmd.Args[0] != "app-server" {
		return nil, fs.ErrNotExist
	}
	s := newOddServer(l.say)
	s.code = 9
	l.mu.Lock()
	defer l.mu.Unlock()
	l.servers = append(l.servers, s)
	return s, nil
}

func (l *oddLauncher) LookPath(name string) (string, error)        { return name, nil }
func (l *oddLauncher) Left(context.Context) ([]cli.LeftRun, error) { return nil, nil }
func (l *oddLauncher) Discard(context.Context, cli.RunID) error    { return nil }
func (l *oddLauncher) Settled(cli.TurnID)                          {}
func (l *oddLauncher) Attach(context.Context, cli.LeftRun, int64) (cli.Process, error) {
	return nil, fs.ErrNotExist
}

// odd runs f with an odd server, on a clock of its own.
func odd(t *testing.T, say func(*oddServer, rpc.Message) bool, f func(t *testing.T, p *Provider, l *oddLauncher)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &oddLauncher{say: say}
		f(t, New(Options{ProviderOptions: cli.ProviderOptions{Launcher: l, Env: func() []string { return nil }}}), l)
	})
}

// onStart prints lines after the turn has started as usual.
func onStart(lines ...string) func(*oddServer, rpc.Message) bool {
	return func(s *oddServer, m rpc.Message) bool {
		if m.Method != "turn/start" {
			return false
		}
		s.asUsual(m)
		s.print(lines...)
		return true
	}
}

func oddTurn(t *testing.T, p *Provider) (cli.Result, []cli.Event) {
	t.Helper()
	req := inDir("/", "a", "hello")
	return clitest.Play(t.Context(), openLive(t, p, req), req)
}

func TestOddServers(t *testing.T) {
	never := func(method string) func(*oddServer, rpc.Message) bool {
		return func(_ *oddServer, m rpc.Message) bool { return m.Method == method }
	}
	cases := []struct {
		name string
		say  func(*oddServer, rpc.Message) bool
		kind cli.FailureKind
		text string
	}{
		{"as usual", onStart(delta("hi"), endsAs("completed")), "", "hi"},
		{"the answer comes after what it is about", func(s *oddServer, m rpc.Message) bool {
			if m.Method != "turn/start" {
				return false
			}
			s.print(delta("hi"), endsAs("completed"))
			s.asUsual(m)
			return true
		}, "", "hi"},
		{"everything is answered twice", func(s *oddServer, m rpc.Message) bool {
			if m.Method != "turn/start" {
				s.asUsual(m)
				return false
			}
			s.asUsual(m)
			s.asUsual(m)
			s.print(delta("hi"), endsAs("completed"), endsAs("completed"))
			return true
		}, "", "hi"},
		{"garbage and answers to no request", onStart("no json", `{"id":"x","result":7}`, `{"id":1}`, "[]", delta("hi"), `{"id":`, endsAs("completed")), "", "hi"},
		{"another turn's words", onStart(strings.ReplaceAll(delta("no"), `"T"`, `"S"`), strings.ReplaceAll(endsAs("failed"), `"T"`, `"S"`), delta("hi"), endsAs("completed")), "", "hi"},
		{"unknown methods", onStart(notify("item/unheard/of", `"x":1`), `{"id":5,"method":"do/what","params":{"threadId":"`+oddThread+`"}}`, delta("hi"), endsAs("completed")), "", "hi"},
		{"the turn is never answered", never("turn/start"), cli.BadOutput, ""},
		{"the turn has no name", func(s *oddServer, m rpc.Message) bool {
			if m.Method == "turn/start" {
				s.print(`{"id":` + string(m.ID) + `,"result":{}}`)
			}
			return m.Method == "turn/start"
		}, cli.BadOutput, ""},
		{"the turn is refused", func(s *oddServer, m rpc.Message) bool {
			if m.Method == "turn/start" {
				s.print(`{"id":` + string(m.ID) + `,"error":{"code":-32600,"message":"thread not found: x"}}`)
			}
			return m.Method == "turn/start"
		}, cli.ResumeFailed, ""},
		{"silence in the middle", onStart(delta("hi")), cli.TimedOut, "hi"},
		{"silence, and deaf", func(s *oddServer, m rpc.Message) bool {
			return onStart(delta("hi"))(s, m) || m.Method == "turn/interrupt"
		}, cli.TimedOut, "hi"},
		{"half a line, then death", func(s *oddServer, m rpc.Message) bool {
			if m.Method == "turn/start" {
				s.asUsual(m)
				s.print(delta("hi"))
				_, _ = io.WriteString(s.out, `{"method":"turn/comp`)
				s.exit()
			}
			return m.Method == "turn/start"
		}, cli.Crashed, "hi"},
		{"an end of its own making", onStart(endsAs("interrupted")), cli.UnknownFailure, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			odd(t, c.say, func(t *testing.T, p *Provider, _ *oddLauncher) {
				r, _ := oddTurn(t, p)
				kind := cli.FailureKind("")
				if r.Err != nil {
					kind = r.Err.Kind
				}
				if kind != c.kind && !(c.kind == cli.Crashed && kind == cli.BadOutput) || r.Text != c.text {
					t.Errorf("%q, %+v", r.Text, r.Err)
				}
			})
		})
	}
}

func TestServersThatCannotBeOpened(t *testing.T) {
	refusing := func(method string) func(*oddServer, rpc.Message) bool {
		return func(s *oddServer, m rpc.Message) bool {
			if m.Method == method {
				s.print(`{"id":` + string(m.ID) + `,"error":{"code":-32601,"message":"unknown variant"}}`)
			}
			return m.Method == method
		}
	}
	for name, say := range map[string]func(*oddServer, rpc.Message) bool{
		"never says hello":         func(*oddServer, rpc.Message) bool { return true },
		"knows no hello":           refusing("initialize"),
		"knows no threads":         refusing("thread/start"),
		"dies at once":             func(s *oddServer, _ rpc.Message) bool { s.exit(); return true },
		"gives a thread no name":   func(s *oddServer, m rpc.Message) bool { return m.Method == "thread/start" && nameless(s, m) },
		"never gives it a thread":  func(_ *oddServer, m rpc.Message) bool { return m.Method == "thread/start" },
		"never tells its settings": func(_ *oddServer, m rpc.Message) bool { return m.Method == "config/read" },
	} {
		t.Run(name, func(t *testing.T) {
			odd(t, say, func(t *testing.T, p *Provider, l *oddLauncher) {
				s, err := p.Open(t.Context(), cli.Live, inDir("/", "a", "hello"))
				if s != nil || err == nil {
					t.Fatalf("opened: %+v, %v", s, err)
				}
				// After these kinds the service uses one-shot mode.
				if f := cli.AsFailure(Agent, err); f.Kind != cli.BadOutput && f.Kind != cli.Crashed {
					t.Errorf("%+v", f)
				}
				if p.Shares(inDir("/", "a", "hello")) != 0 {
					t.Error("what cannot be used is kept")
				}
				<-l.servers[0].done
			})
		})
	}
}

func nameless(s *oddServer, m rpc.Message) bool {
	s.print(`{"id":` + string(m.ID) + `,"result":{}}`)
	return true
}

func TestAnAgentThatWaitsForPeopleIsNotSilent(t *testing.T) {
	odd(t, func(s *oddServer, m rpc.Message) bool {
		if m.Method == "" && string(m.ID) == "7" {
			s.print(delta("thanks"), endsAs("completed"))
			return true
		}
		return onStart(approval("7"), approval("7"))(s, m)
	}, func(t *testing.T, p *Provider, l *oddLauncher) {
		req := inDir("/", "a", "hello")
		req.Permission, req.Attended = cli.Ask, true
		s := openLive(t, p, req)
		var asked []cli.ApprovalAsked
		var result cli.Result
		over := make(chan struct{})
		go func() {
			defer close(over)
			s.Turn(t.Context(), req, func(ev cli.Event) {
				switch ev := ev.(type) {
				case cli.ApprovalAsked:
					asked = append(asked, ev)
				case cli.Result:
					result = ev
				}
			})
		}()
		time.Sleep(5 * time.Hour)
		synctest.Wait()
		if len(asked) != 1 {
			t.Fatalf("asked %+v", asked)
		}
		if err := s.(cli.Decider).Decide(t.Context(), "7", cli.Decision{Allow: true}); err != nil {
			t.Fatal(err)
		}
		<-over
		if result.Err != nil || result.Text != "thanks" || len(l.servers[0].answersTo("7")) != 1 {
			t.Errorf("%+v, %v; answered %+v", result, result.Err, l.servers[0].answersTo("7"))
		}
	})
}

// A conversation that starts while a hanging app server is being stopped does not use that server.
func TestNobodyJoinsAServerThatIsBeingEnded(t *testing.T) {
	deaf := func(_ *oddServer, m rpc.Message) bool { return m.Method == "turn/interrupt" }
	odd(t, deaf, func(t *testing.T, p *Provider, l *oddLauncher) {
		s, err := p.Open(t.Context(), cli.Live, cli.Request{})
		if err != nil {
			t.Fatal(err)
		}
		turn := begin(t, s, cli.Request{Prompt: "hello"})
		synctest.Wait()
		var other cli.Session
		l.servers[0].dying = func() {
			l.servers[0].dying = nil
			if other, err = p.Open(t.Context(), cli.Live, cli.Request{}); err != nil {
				t.Error(err)
			}
		}
		turn.cancel(cli.ErrAborted)
		if r := turn.end(); !r.Aborted {
			t.Errorf("%+v", r)
		}
		if other == nil || !other.Info().Alive || len(l.servers) != 2 {
			t.Errorf("%+v was opened in one of %d servers", other, len(l.servers))
		}
		clitest.Close(t, s)
		clitest.Close(t, other)
	})
}

func TestDeathWithAnApprovalOpen(t *testing.T) {
	odd(t, func(s *oddServer, m rpc.Message) bool {
		if !onStart(approval("7"))(s, m) {
			return false
		}
		time.AfterFunc(time.Second, s.exit)
		return true
	}, func(t *testing.T, p *Provider, _ *oddLauncher) {
		req := inDir("/", "a", "hello")
		req.Permission, req.Attended = cli.Ask, true
		s := openLive(t, p, req)
		r, events := clitest.Play(t.Context(), s, req)
		if r.Err == nil || r.Err.Kind != cli.Crashed || len(clitest.Of[cli.ApprovalWithdrawn](events)) != 1 {
			t.Errorf("%+v, %v", events, r.Err)
		}
		if err := s.(cli.Decider).Decide(t.Context(), "7", cli.Decision{Allow: true}); err == nil {
			t.Error("a dead agent took an answer")
		}
	})
}

func TestWhatNoTurnWaitsForIsDeclined(t *testing.T) {
	odd(t, func(s *oddServer, m rpc.Message) bool {
		return onStart(endsAs("completed"), approval("8"), `{"id":9,"method":"`+askQuestions+`","params":{"threadId":"other","questions":[{"id":"q"}]}}`)(s, m)
	}, func(t *testing.T, p *Provider, l *oddLauncher) {
		if r, _ := oddTurn(t, p); r.Err != nil {
			t.Fatal(r.Err)
		}
		synctest.Wait()
		s := l.servers[0]
		declined, answered := s.answersTo("8"), s.answersTo("9")
		if len(declined) != 1 || string(declined[0].Result) != `{"decision":"decline"}` {
			t.Errorf("the command was answered %+v", declined)
		}
		if len(answered) != 1 || !strings.Contains(string(answered[0].Result), "Decide yourself") {
			t.Errorf("the question was answered %+v", answered)
		}
	})
}

func TestWhichModesAVersionHas(t *testing.T) {
	for version, want := range map[string]cli.Mode{
		"codex-cli 0.169.0": cli.Live, "codex-cli 0.42.0": cli.OneShot, "something else": cli.Live, "": cli.Live,
	} {
		l := &oddLauncher{version: version}
		p := New(Options{ProviderOptions: cli.ProviderOptions{Launcher: l, Env: func() []string { return nil }}})
		if modes := p.Modes(); modes[0] != want || modes[len(modes)-1] != cli.OneShot {
			t.Errorf("%q: %v", version, modes)
		}
	}
}

func TestFormsAreDeclined(t *testing.T) {
	form := `{"id":3,"method":"` + askServer + `","params":{"threadId":"` + oddThread + `","turnId":null,"serverName":"demo","mode":"form",` +
		`"message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}`
	odd(t, func(s *oddServer, m rpc.Message) bool {
		if m.Method == "" && string(m.ID) == "3" {
			s.print(endsAs("completed"))
			return true
		}
		return onStart(form)(s, m)
	}, func(t *testing.T, p *Provider, l *oddLauncher) {
		req := inDir("/", "a", "hello")
		req.Permission, req.Attended = cli.Ask, true
		r, events := clitest.Play(t.Context(), openLive(t, p, req), req)
		if r.Err != nil || len(r.Denials) != 1 || len(clitest.Of[cli.ApprovalAsked](events)) != 0 {
			t.Errorf("%+v, %v", r, r.Err)
		}
		if a := l.servers[0].answersTo("3"); len(a) != 1 || !strings.Contains(string(a[0].Result), `"decline"`) {
			t.Errorf("answered %+v", a)
		}
	})
}
