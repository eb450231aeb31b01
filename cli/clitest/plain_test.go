package clitest

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
	"ductor/cli/turn"
	sim "ductor/internal/sim/agent"
)

// This file is a complete dialect of the scripted agent's own protocol (sim.PlainLine), and an example of a new one:
// shared.Session runs its live sessions, turn.OneShot its processes of one turn. TestADialectIsSmall limits its size.

const plain cli.Agent = "plain"

// plainProvider speaks sim.PlainLines.
type plainProvider struct {
	opts cli.ProviderOptions
	pool *shared.Pool[*plainServer]
	live shared.Dialect[sim.PlainLine]
}

var _ cli.Provider = (*plainProvider)(nil)

func newPlain(o cli.ProviderOptions) *plainProvider {
	p := &plainProvider{opts: o.OrDefault("plain")}
	p.pool = shared.NewPool(shared.Options{ProviderOptions: p.opts, Agent: plain, Codec: plainCodec{}},
		func(process *shared.Process) *plainServer { return &plainServer{Process: process, provider: p} })
	p.live = shared.Dialect[sim.PlainLine]{Join: p.join}
	return p
}

func (*plainProvider) Agent() cli.Agent  { return plain }
func (*plainProvider) Modes() []cli.Mode { return []cli.Mode{cli.Live, cli.OneShot} }

func (p *plainProvider) Auth(context.Context) cli.Auth {
	path, err := p.opts.Launcher.LookPath(p.opts.Path)
	if err != nil {
		return cli.Auth{State: cli.NotFound, Fix: "Install the scripted agent"}
	}
	return cli.Auth{State: cli.Authenticated, Path: path}
}

func (*plainProvider) Models(context.Context) ([]cli.Model, error) {
	return []cli.Model{{Agent: plain, ID: "script", Default: true}}, nil
}

func (p *plainProvider) Open(ctx context.Context, mode cli.Mode, req cli.Request) (cli.Session, error) {
	if mode == cli.OneShot {
		return p.once().Session(req), nil
	}
	s := shared.NewSession(p.pool, &p.live)
	if err := s.Open(ctx, req); err != nil {
		return nil, err
	}
	return s, nil
}

func (p *plainProvider) Adopt(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if left.Mode == cli.OneShot {
		return p.once().Adopt(ctx, left, req)
	}
	kept, err := p.pool.Resume(ctx, left, req.Turn)
	if err != nil {
		return nil, err
	}
	return kept.(*shared.Session[sim.PlainLine]), nil
}

// plainCodec makes a notification of each line, with the line as its parameters.
type plainCodec struct{}

func (plainCodec) Encode(m rpc.Outgoing) ([]byte, error) {
	l, _ := m.Params.(sim.PlainLine)
	l.Kind = m.Method
	return json.Marshal(l)
}

func (plainCodec) Decode(raw []byte) (rpc.Message, error) {
	l, err := plainLine(raw)
	return rpc.Message{Method: l.Kind, Params: slices.Clone(raw)}, err
}

func plainLine(raw []byte) (l sim.PlainLine, err error) {
	err = json.Unmarshal(raw, &l)
	return l, err
}

// plainServer is one process. It serves one session, so its only member has no name.
type plainServer struct {
	*shared.Process
	shared.Members[*shared.Session[sim.PlainLine]]
	provider *plainProvider
}

func (*plainServer) Greet(context.Context) error { return nil }
func (*plainServer) Requested(rpc.Message) bool  { return false }

func (h *plainServer) Notified(m rpc.Message) {
	l, _ := plainLine(m.Params) // plainCodec has decoded it
	if s, ok := h.Of(""); ok {
		s.Deliver(shared.Item[sim.PlainLine]{Message: l, End: m.End}, len(m.Params))
	}
}

// Await needs only the session's name: the output after the mark contains the whole turn.
func (h *plainServer) Await(m cli.Mark, left cli.LeftRun) (kept any, drop func()) {
	live := shared.Adopt(&h.provider.live, &plainSession{server: h, id: cli.AgentSessionID(m.Note)}, m, left.Reached(m))
	h.Set("", live)
	return live, func() { h.Remove("", live) }
}

// plainSession is the session of a process.
type plainSession struct {
	server *plainServer
	id     cli.AgentSessionID // empty until the agent names it in its first turn
}

// join starts a process of its own for each session: the protocol has no way to tell two of them apart.
func (p *plainProvider) join(ctx context.Context, s *shared.Session[sim.PlainLine], req cli.Request) (
	shared.AgentSession[sim.PlainLine], error) {
	h, err := p.pool.Private(ctx, cli.Command{
		Path: p.opts.Path, Dir: req.Dir, Env: p.opts.ChildEnv(req, nil, nil),
		For: cli.Purpose{Agent: plain, Mode: cli.Live, Conversation: req.Conversation},
	})
	if err != nil {
		return nil, err
	}
	h.Set("", s)
	return &plainSession{server: h, id: req.Resume}, nil
}

func (s *plainSession) ID() cli.AgentSessionID                  { return s.id }
func (s *plainSession) Host() *shared.Process                   { return s.server.Process }
func (s *plainSession) Open(context.Context, cli.Request) error { return nil }
func (s *plainSession) Fits(cli.Request) bool                   { return true }
func (s *plainSession) Check(*shared.Turn[sim.PlainLine]) error { return nil }
func (s *plainSession) Failure(err error) *cli.Failure          { return cli.AsFailure(plain, err) }

func (s *plainSession) Stop(ctx context.Context, grace time.Duration) error {
	return s.server.Stop(ctx, grace)
}

func (s *plainSession) Goodbye(context.Context, shared.Phase) (shared.Leaving, error) {
	return shared.Closed, nil
}

func (s *plainSession) Begin(_ context.Context, t *shared.Turn[sim.PlainLine]) (
	shared.AgentTurn[sim.PlainLine], error) {
	return &plainTurn{Turn: t, s: s, reader: plainReader{out: t.Out},
		approvals: turn.NewApprovals[sim.PlainLine](t.Out, nil)}, nil
}

// plainTurn is a turn of a live session.
type plainTurn struct {
	*shared.Turn[sim.PlainLine]
	s         *plainSession
	reader    plainReader
	approvals *turn.Approvals[sim.PlainLine]
}

func (t *plainTurn) Start() {} // the agent's first line names the session

func (t *plainTurn) Prompt(context.Context) (rpc.Prompt, error) {
	mark := cli.Mark{Turn: t.Req.Turn, Note: string(t.s.id)}
	return rpc.Prompt{Method: "prompt", Params: plainPrompt(t.Req, t.s.id),
		Mark: func(int) cli.Mark { return mark }}, nil
}

func plainPrompt(req cli.Request, session cli.AgentSessionID) sim.PlainLine {
	return sim.PlainLine{Kind: "prompt", ID: string(session), Text: req.Prompt, Allow: req.Permission == cli.Bypass}
}

func (t *plainTurn) Replied(rpc.Message) error { return nil } // the protocol has no replies

func (t *plainTurn) Handle(l sim.PlainLine) {
	t.reader.line(l)
	switch l.Kind {
	case "session":
		t.s.id = cli.AgentSessionID(l.ID)
		t.Accepted()
	case "ask":
		t.ask(l)
	}
}

// ask asks the user, or denies the request if no user can be asked.
func (t *plainTurn) ask(l sim.PlainLine) {
	if !t.Req.Attended {
		t.answer(l, false)
		return
	}
	id := cli.ApprovalID(l.ID)
	t.approvals.Add(turn.Pending[sim.PlainLine]{ID: id, About: l, Ask: func() cli.Event {
		return cli.ApprovalAsked{ID: id, Tool: "shell", Title: l.Text, Deaf: true}
	}})
}

// answer answers a request of the agent. If the agent is gone, that shows elsewhere.
func (t *plainTurn) answer(l sim.PlainLine, allow bool) {
	_ = t.s.server.Peer().Notify("answer", sim.PlainLine{ID: l.ID, Allow: allow})
}

func (t *plainTurn) Decide(_ context.Context, id cli.ApprovalID, d cli.Decision) error {
	l, ok := t.approvals.Take(id)
	if !ok {
		return cli.ErrNotAsked
	}
	t.answer(l, d.Allow)
	t.Check()
	return nil
}

func (t *plainTurn) Approvals() shared.Approvals    { return t.approvals }
func (t *plainTurn) Over() bool                     { return t.reader.done }
func (t *plainTurn) Interrupt() error               { return t.s.server.Peer().Notify("interrupt", nil) }
func (t *plainTurn) Late(sim.PlainLine)             {}
func (t *plainTurn) Result(end turn.End) cli.Result { return t.reader.result(end, t.Outcome) }

// End gives up the process of an agent that has not ended its turn.
func (t *plainTurn) End(turn.End) (shared.Phase, shared.TurnEnd) {
	if !t.reader.done {
		return shared.PhaseSpent, shared.EndOver
	}
	return shared.PhaseIdle, shared.EndOver
}

// plainReader converts the lines of a turn to events.
type plainReader struct {
	out    *turn.Emitter
	done   bool
	failed string // the agent's reason
}

func (r *plainReader) line(l sim.PlainLine) {
	switch l.Kind {
	case "session":
		r.out.Session(cli.AgentSessionID(l.ID), "script")
	case "text":
		r.out.Text(l.ID, l.Text)
	case "think":
		r.out.Thinking(l.Text)
	case "tool":
		r.out.ToolStart(cli.ToolStarted{ID: cli.ToolID(l.ID), Name: "shell", Title: l.Text})
	case "result":
		r.out.ToolEnd(cli.ToolEnded{ID: cli.ToolID(l.ID), Output: l.Text, Err: l.Error})
	case "done":
		r.done, r.failed = true, l.Error
	}
}

// result returns the result of a turn. outcome returns that of a turn without the agent's own.
func (r *plainReader) result(end turn.End, outcome func(turn.End) cli.Result) cli.Result {
	switch {
	case end != turn.EndTurn:
		return outcome(end)
	case r.failed != "":
		return cli.Result{Err: cli.Failf(cli.Refused, plain, "%s", r.failed)}
	}
	return cli.Result{}
}

// once returns how to run turns with a process for each. No user can be asked there, because the input ends with the
// prompt.
func (p *plainProvider) once() *turn.OneShot {
	return &turn.OneShot{
		Agent: plain, Options: p.opts,
		Input: func(req cli.Request, _ *cli.LeftRun) ([]byte, error) {
			raw, err := json.Marshal(plainPrompt(req, req.Resume))
			return append(raw, '\n'), err
		},
		Start: func(ctx context.Context, req cli.Request) (cli.Process, string, error) {
			process, err := p.opts.StartOnce(ctx, plain, req, cli.Command{Env: p.opts.ChildEnv(req, nil, nil)})
			return process, "", err
		},
		Read: func(t turn.Once) turn.Reading {
			r := &plainReader{out: t.Out}
			return turn.Reading{
				Handle: func(raw []byte) bool {
					l, err := plainLine(raw)
					if err != nil {
						t.Stream.Garbage(raw)
					}
					r.line(l)
					return r.done
				},
				Result: func(end turn.End) cli.Result { return r.result(end, t.Stream.Outcome) },
			}
		},
	}
}
