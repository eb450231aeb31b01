package claude

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"ductor/cli"
	"ductor/cli/turn"
)

// turn is one turn of a live session while it runs.
type liveTurn struct {
	session *live
	ctx     context.Context // of Turn, which does not return before the turn is over
	run     *liveRun
	req     cli.Request
	id      string // of the prompt
	prompt  []byte // the line that asks; nil until it may have to be sent
	p       *parser
	open    opening
	left    *leftTurn // what is known of a turn that is resumed; nil for one that begins now

	asked     chan struct{} // closed when the prompt is on its way: what is sent now comes after it
	gone      chan struct{} // closed at the end
	switching chan<- error  // of a change of the permission mode that Claude has not answered; guarded by session.mu
	notes     sync.Mutex    // held while something is sent of which a note is made
	note      note
}

// promptSpace makes the ids of prompts out of those of turns: Claude drops a message whose id it had before, so
// a prompt that is sent again after a restart runs once.
var promptSpace = uuid.MustParse("5b0b0c5e-6f0f-4bd6-9c27-2f6d2a1c8a57")

func promptID(turn cli.TurnID) string {
	if turn == "" {
		return uuid.NewString()
	}
	return uuid.NewSHA1(promptSpace, []byte(turn)).String()
}

// Turn runs one prompt, or goes on with the one that the session was adopted for; see cli.Session.
func (s *live) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	var t *liveTurn
	em := turn.NewEmitter(agent, s.provider.opts.Now, s.watch(func(ev cli.Event) {
		emit(ev)
		if _, ok := ev.(cli.CaughtUp); ok && t != nil {
			t.caughtUp()
		}
	}))
	left := s.takeLeft(req)
	t, err := s.newTurn(ctx, em, req, left)
	if err != nil {
		em.Finish(cli.StartResult(ctx, agent, err))
		return
	}
	t.finish(t.loop())
}

func (s *live) takeLeft(req cli.Request) *leftTurn {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.left
	s.left = nil
	if left != nil && left.mark.Turn != req.Turn {
		return nil
	}
	return left
}

// newTurn makes ready what the turn needs. Errors are *cli.Failure or of ctx.
func (s *live) newTurn(ctx context.Context, em *turn.Emitter, req cli.Request, left *leftTurn) (t *liveTurn, err error) {
	t = &liveTurn{session: s, ctx: ctx, req: req, left: left, id: promptID(req.Turn), asked: make(chan struct{}), gone: make(chan struct{})}
	if left == nil {
		if err := t.writePrompt(); err != nil {
			return nil, err
		}
		if t.run, err = s.ready(ctx, req); err != nil {
			return nil, err
		}
	} else {
		t.run = left.run
	}
	t.run.idle.mu.Lock() // the note is of what it knows
	defer t.run.idle.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns++
	s.dirty = true // until the turn ended as it should
	want := turnSettingsOf(formatLive, req)
	t.open = opening{turn: t, want: want, changes: s.turnSettings.changes(want), past: left != nil}
	if left == nil {
		t.note = noteOf(s.id, t.run.mem, s.turnSettings, t.open.want)
	} else {
		t.note = left.note
	}
	t.p = t.newParser(em)
	s.turn = t
	return t, nil
}

// writePrompt makes the line that asks.
func (t *liveTurn) writePrompt() (err error) {
	if err := checkPrompt(t.req); err != nil {
		return err
	}
	if t.prompt, err = userLine(t.req, t.id); err != nil {
		return cli.Failf(cli.Refused, agent, "%v", err)
	}
	return nil
}

func (t *liveTurn) newParser(em *turn.Emitter) *parser {
	p := newParser(em, t.run.mem, t.req.Dir)
	p.echo, p.garbage, p.background = t.id, t.run.stream.Garbage, t.session.background()
	p.onTaken = t.takenUp
	p.onForeign = t.open.due
	p.steers = newSteers(t.note.Steers)
	p.replied = t.replied
	if t.req.Attended {
		p.asks = newAsks(t.note.Answered)
	}
	if t.left != nil {
		p.past = true
		em.Past(t.run.stream.Clock(t.session.provider.opts.Now))
		if t.left.unsent() {
			p.steers.unsent(t.note.Sending)
		}
	}
	return p
}

// isAsked says that what is sent now comes after the prompt.
func (t *liveTurn) isAsked() {
	select {
	case <-t.asked:
	default:
		close(t.asked)
	}
}

// takenUp is called when Claude took the prompt up: it works as was asked for.
func (t *liveTurn) takenUp() {
	t.isAsked()
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	t.session.turnSettings = t.open.want
}

// caughtUp is called once the turn has read all that Claude said while ductor did not listen.
func (t *liveTurn) caughtUp() {
	if t.left == nil {
		return
	}
	t.p.past = false
	t.p.tellAsks()
	t.open.past = false
	if t.p.foreign && t.left.sent(t.open.changes) { // Claude has begun, and tells later of what it was asked
		t.isAsked()
	}
	t.open.due()
}

// loop takes the turn to its end.
func (t *liveTurn) loop() turn.End {
	stream, idle := t.run.stream, t.run.idle
	waits := false // for a turn that Claude began, into which a message would be mixed
	mark := cli.Mark{Turn: t.req.Turn, Note: t.note.String()}
	if t.left != nil {
		mark = cli.Mark{} // it is there
	}
	end := stream.Turn(t.ctx, turn.Loop[[]byte]{
		Begin: func() {
			if waits = idle.busy(); !waits {
				t.open.due()
			}
		},
		Handle: func(raw []byte) bool {
			if waits {
				if idle.line(raw); !idle.busy() {
					waits = false
					t.open.due()
					return t.ctx.Err() != nil
				}
				return false
			}
			reply, over := t.p.line(raw)
			if reply != nil {
				t.send(reply)
			}
			return over
		},
		Interrupt: t.interrupt,
		Waiting:   t.waiting,
		Out:       t.p.em,
		Mark:      mark,
	})
	return end
}

func (t *liveTurn) send(line []byte) {
	if err := t.run.stream.Send(line); err != nil {
		t.session.provider.opts.Logger.Warn("claude did not take its input", "err", err)
	}
}

// finish ends the turn for everybody and emits its result.
func (t *liveTurn) finish(end turn.End) {
	s := t.session
	detached := end == turn.EndDetached
	s.mu.Lock()
	s.turn = nil
	s.dirty = end != turn.EndTurn
	if mode := t.run.mem.mode; mode != "" { // such as after a plan was approved
		s.turnSettings.Permission, t.run.mem.mode = mode, ""
	}
	s.mu.Unlock()
	if t.p.steers.close() { // Claude would go on with what was sent
		t.p.mustStop = true
	}
	close(t.gone)
	if t.p.mustStop && !detached {
		if err := t.run.stream.Close(context.WithoutCancel(t.ctx)); err != nil {
			s.provider.opts.Logger.Error("claude did not end", "err", err)
		}
	}
	if t.p.asks != nil {
		if left := t.p.asks.close(); !detached {
			t.p.tellWithdrawn(left)
		}
	}
	t.p.em.Finish(t.result(end))
	if end == turn.EndTurn && !t.p.mustStop && t.req.Turn != "" {
		s.markBackground(t.run)
	}
}

func (t *liveTurn) result(end turn.End) cli.Result {
	if end == turn.EndExit && !t.p.ended && t.ctx.Err() != nil { // cancelled before it began
		return cli.Cut(t.ctx, agent)
	}
	r := turnResult(t.ctx, t.run.stream, end, t.p)
	if t.open.failure != nil && r.Err != nil {
		r.Err = t.open.failure
	}
	return r
}

// turnResult is how a turn ended: by Claude's own result, unless it is that of a turn we cut short.
func turnResult(ctx context.Context, stream *turn.Stream, end turn.End, p *parser) cli.Result {
	if p.ended && (end == turn.EndTurn || end == turn.EndExit || p.outcome.Err == nil && !p.cut) {
		return p.outcome
	}
	r := stream.Outcome(end)
	r.Usage, r.ByModel, r.CostUSD, r.Turns = p.outcome.Usage, p.outcome.ByModel, p.outcome.CostUSD, p.outcome.Turns
	r.Denials = p.told()
	if r.Err != nil && end == turn.EndExit {
		exitFailure(r.Err)
	}
	return r
}

// waiting is what turn.Loop asks for.
func (t *liveTurn) waiting() bool { return t.p.asks != nil && t.p.asks.waiting() }
