package shared

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/turn"
)

// fakeAgent opens sessions in processes, and records openings and prompts.
type fakeAgent struct {
	dialect Dialect[string]
	opened  []cli.AgentSessionID                       // Request.Resume of each opening
	prompts int                                        // number of sent prompts
	refuses error                                      // result of Check
	begin   func(*fakeSession) error                   // called when a turn begins; may be nil
	left    func(*fakeTurn, turn.End) (Phase, TurnEnd) // AgentTurn.End; may be nil
}

// newFakeAgent returns an agent and a session of it that is open.
func newFakeAgent(t *testing.T, p *Pool[*dialect], req cli.Request) (*fakeAgent, *Session[string]) {
	t.Helper()
	a := &fakeAgent{}
	a.dialect.Join = func(ctx context.Context, _ *Session[string], _ cli.Request) (AgentSession[string], error) {
		d, err := p.Join(ctx, "key", cli.Command{})
		return &fakeSession{agent: a, host: d, id: "session"}, err
	}
	s := NewSession(p, &a.dialect)
	if err := s.Open(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	return a, s
}

type fakeSession struct {
	agent *fakeAgent
	host  *dialect
	id    cli.AgentSessionID
}

func (s *fakeSession) ID() cli.AgentSessionID { return s.id }
func (s *fakeSession) Host() *Process         { return s.host.Process }

func (s *fakeSession) Open(_ context.Context, req cli.Request) error {
	s.agent.opened = append(s.agent.opened, req.Resume)
	return nil
}

func (s *fakeSession) Fits(cli.Request) bool { return true }

func (s *fakeSession) Check(*Turn[string]) error { return s.agent.refuses }

func (s *fakeSession) Begin(_ context.Context, t *Turn[string]) (AgentTurn[string], error) {
	if s.agent.begin != nil {
		if err := s.agent.begin(s); err != nil {
			return nil, err
		}
	}
	return &fakeTurn{Turn: t, agent: s.agent, approvals: turn.NewApprovals[string](t.Out, nil)}, nil
}

func (s *fakeSession) Goodbye(context.Context, Phase) (Leaving, error) { return Unused, nil }

func (s *fakeSession) Stop(ctx context.Context, grace time.Duration) error {
	return s.host.StopAlone(ctx, grace)
}

func (s *fakeSession) Failure(err error) *cli.Failure { return cli.AsFailure("agent", err) }

// fakeTurn ends with the message "over".
type fakeTurn struct {
	*Turn[string]
	agent     *fakeAgent
	approvals *turn.Approvals[string]
	messages  []string
	late      []string
}

func (t *fakeTurn) Start()                      { t.Out.Session("session", "") }
func (t *fakeTurn) Approvals() Approvals        { return t.approvals }
func (t *fakeTurn) Replied(m rpc.Message) error { return m.Read("agent", "prompt", nil) }
func (t *fakeTurn) Handle(m string)             { t.messages = append(t.messages, m) }
func (t *fakeTurn) Over() bool                  { return slices.Contains(t.messages, "over") }
func (t *fakeTurn) Late(m string)               { t.late = append(t.late, m) }
func (t *fakeTurn) Result(e turn.End) cli.Result {
	if e == turn.EndTurn {
		return cli.Result{}
	}
	return t.Outcome(e)
}

func (t *fakeTurn) Prompt(context.Context) (rpc.Prompt, error) {
	t.agent.prompts++
	return rpc.Prompt{Method: "prompt", Mark: func(int) cli.Mark { return cli.Mark{} }}, nil
}

// Interrupt makes the agent end the turn.
func (t *fakeTurn) Interrupt() error {
	t.session.Deliver(Item[string]{Message: "over"}, 0)
	return nil
}

func (t *fakeTurn) End(e turn.End) (Phase, TurnEnd) {
	if t.agent.left != nil {
		return t.agent.left(t, e)
	}
	return PhaseIdle, EndOver
}

func (t *fakeTurn) Decide(context.Context, cli.ApprovalID, cli.Decision) error { return nil }

// plays runs a turn and returns its result.
func plays(ctx context.Context, s *Session[string], req cli.Request) <-chan cli.Result {
	results := make(chan cli.Result, 1)
	go s.Turn(ctx, req, func(ev cli.Event) {
		if r, ok := ev.(cli.Result); ok {
			results <- r
		}
	})
	synctest.Wait()
	return results
}

func ends(t *testing.T, s *Session[string], results <-chan cli.Result) {
	t.Helper()
	s.Deliver(Item[string]{Message: "over"}, 0)
	if r := <-results; r.Err != nil || r.Aborted {
		t.Errorf("%+v, %+v", r, r.Err)
	}
	synctest.Wait()
}

// If the process takes no more turns before the prompt was sent, the turn runs in another one. A session with a turn is
// resumed there; a new one is created again.
func TestATurnRunsInAnotherProcessIfItsOwnTakesNoMore(t *testing.T) {
	for name, drain := range map[string]func(*fakeSession) error{
		"draining":              func(s *fakeSession) error { s.host.Drain(); return nil },
		"draining, and failing": func(s *fakeSession) error { s.host.Drain(); return errors.New("no answer") },
	} {
		for _, resumes := range []cli.AgentSessionID{"", "session"} {
			t.Run(name+string(resumes), func(t *testing.T) {
				test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
					a, s := newFakeAgent(t, p, cli.Request{Resume: resumes})
					a.begin = func(s *fakeSession) error { a.begin = nil; return drain(s) }
					ends(t, s, plays(t.Context(), s, cli.Request{}))
					l.is(t, "stopped", "running")
					twice := []cli.AgentSessionID{resumes, resumes}
					if !slices.Equal(a.opened, twice) || a.prompts != 1 || s.Info().PID != 2 {
						t.Errorf("opened %q, sent %d prompts, and is %+v", a.opened, a.prompts, s.Info())
					}
					if err := s.Close(t.Context()); err != nil {
						t.Error(err)
					}
					l.is(t, "stopped", "stopped")
				})
			})
		}
	}
}

// A request that the dialect refuses needs no process, even if the session's own is dead.
func TestARefusedRequestStartsNoProcess(t *testing.T) {
	test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
		a, s := newFakeAgent(t, p, cli.Request{})
		l.programs[0].exit()
		synctest.Wait()
		a.refuses = cli.Failf(cli.Refused, "agent", "no")
		if r := <-plays(t.Context(), s, cli.Request{}); r.Err == nil || r.Err.Kind != cli.Refused {
			t.Errorf("%+v, %+v", r, r.Err)
		}
		a.refuses = nil
		ends(t, s, plays(t.Context(), s, cli.Request{}))
		l.is(t, "stopped", "running")
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// An agent may name a session only in its first turn. If it does not, the session serves no other request. An agent
// without commands lists none.
func TestTheFirstTurnNamesTheSession(t *testing.T) {
	for _, id := range []cli.AgentSessionID{"late", ""} {
		test(t, func(t *testing.T, p *Pool[*dialect], _ *launcher) {
			a := &fakeAgent{begin: func(s *fakeSession) error { s.id = id; return nil }}
			a.dialect.Join = func(ctx context.Context, _ *Session[string], _ cli.Request) (AgentSession[string], error) {
				d, err := p.Join(ctx, "key", cli.Command{})
				return &fakeSession{agent: a, host: d}, err
			}
			s := NewSession(p, &a.dialect)
			if err := s.Open(t.Context(), cli.Request{}); err != nil || s.Info().AgentSessionID != "" {
				t.Fatal(s.Info(), err)
			}
			if _, err := s.Commands(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("commands: %v", err)
			}
			ends(t, s, plays(t.Context(), s, cli.Request{}))
			if fits := s.Fits(cli.Request{Resume: id}); fits != (id != "") || s.Info().AgentSessionID != id {
				t.Errorf("fits %v, %+v", fits, s.Info())
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Closing a session ends its turn by the protocol. Another session of the process keeps it.
func TestClosingASessionEndsItsTurn(t *testing.T) {
	test(t, func(t *testing.T, p *Pool[*dialect], l *launcher) {
		beside := join(t, p)
		_, s := newFakeAgent(t, p, cli.Request{})
		over := plays(t.Context(), s, cli.Request{})
		if s.Running() == nil || s.Fits(cli.Request{}) {
			t.Error("no turn runs, or another would fit")
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if r := <-over; r.Err == nil || !errors.Is(r.Err, cli.ErrClosing) {
			t.Errorf("%+v, %+v", r, r.Err)
		}
		if r := <-plays(t.Context(), s, cli.Request{}); r.Err == nil {
			t.Errorf("a closed session took a turn: %+v", r)
		}
		l.is(t, "running")
		leave(t, beside, Unused)
		l.is(t, "stopped")
	})
}

// The messages of a session get to its turn, and those after its end to AgentTurn.Late. Between turns no turn gets them.
func TestMessagesGetToTheirTurn(t *testing.T) {
	test(t, func(t *testing.T, p *Pool[*dialect], _ *launcher) {
		a, s := newFakeAgent(t, p, cli.Request{})
		var ended *fakeTurn
		a.left = func(t *fakeTurn, _ turn.End) (Phase, TurnEnd) { ended = t; return PhaseSpent, EndOver }
		if s.Deliver(Item[string]{Message: "early"}, 0) {
			t.Error("a message came to a turn that there was not")
		}
		over := plays(t.Context(), s, cli.Request{})
		for _, m := range []string{"one", "over", "late"} {
			if !s.Deliver(Item[string]{Message: m}, 0) {
				t.Errorf("%q came to no turn", m)
			}
		}
		<-over
		synctest.Wait()
		if !slices.Equal(ended.messages, []string{"one", "over"}) || !slices.Equal(ended.late, []string{"late"}) {
			t.Errorf("it got %q, and afterwards %q", ended.messages, ended.late)
		}
		if s.Info().Alive || s.Running() != nil || s.Deliver(Item[string]{Message: "later"}, 0) {
			t.Error("a spent session is alive, or its turn runs on")
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The prompt of an adopted turn is sent if the previous process did not send it, once the past is over, and not at all
// if the turn is aborted before.
func TestThePromptOfAnAdoptedTurn(t *testing.T) {
	for _, c := range []struct {
		name    string
		sent    bool
		aborted bool
		prompts int
	}{{"sent", true, false, 0}, {"unsent", false, false, 1}, {"unsent and aborted", false, true, 0}} {
		t.Run(c.name, func(t *testing.T) {
			test(t, func(t *testing.T, p *Pool[*dialect], _ *launcher) {
				// With a limit for the start, an interrupt waits until the agent has accepted the prompt.
				a := &fakeAgent{dialect: Dialect[string]{Start: time.Minute, Interrupt: cli.DefaultGrace}}
				host := join(t, p)
				host.TurnStarted()
				s := Adopt(&a.dialect, &fakeSession{agent: a, host: host, id: "session"}, cli.Mark{Turn: "T"}, c.sent)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				over := plays(ctx, s, cli.Request{Turn: "T"})
				if c.aborted {
					cancel(cli.ErrAborted)
					synctest.Wait()
				}
				if a.prompts != 0 || (s.Running() != nil) != c.sent && !c.aborted {
					t.Errorf("%d prompts were sent in the past; a turn runs: %v", a.prompts, s.Running() != nil)
				}
				s.Changed(turn.Change{CaughtUp: true})
				synctest.Wait()
				if c.aborted {
					if r := <-over; !r.Aborted {
						t.Errorf("%+v, %+v", r, r.Err)
					}
				} else {
					ends(t, s, over)
				}
				if a.prompts != c.prompts {
					t.Errorf("%d prompts were sent, want %d", a.prompts, c.prompts)
				}
				synctest.Wait()
				if err := s.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
