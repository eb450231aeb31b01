package claude

import (
	"context"
	"slices"
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
	p       *parser
	open    opening
	left    *leftTurn // what is known of a turn that is resumed; nil for one that begins now

	gone  chan struct{} // closed at the end
	notes sync.Mutex    // held while something is sent of which a note is made
	note  note
}

// idSpace makes ids of messages out of those of turns.
var idSpace = uuid.MustParse("5b0b0c5e-6f0f-4bd6-9c27-2f6d2a1c8a57")

// idOf returns the id of a message that is the same however often it is sent.
func idOf(turn cli.TurnID) string { return uuid.NewSHA1(idSpace, []byte(turn)).String() }

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
	t = &liveTurn{session: s, ctx: ctx, req: req, left: left, gone: make(chan struct{})}
	want := turnSettingsOf(formatLive, req)
	t.open = opening{turn: t, id: uuid.NewString(), want: want, asked: make(chan struct{})}
	if left == nil {
		t.open.step = waiting
		if err := t.open.writePrompt(); err != nil {
			return nil, err
		}
		if t.run, err = s.ready(ctx, req); err != nil {
			return nil, err
		}
	} else {
		t.run, t.open.id = left.run, left.note.promptOf(req.Turn)
	}
	t.run.idle.mu.Lock() // the note is of what it knows
	defer t.run.idle.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != shut {
		s.phase = running
	}
	t.open.changes = s.turnSettings.changes(want)
	if left == nil {
		t.note = noteOf(s.id, t.run.mem, s.turnSettings, want)
		t.note.Prompt = t.open.id
	} else {
		t.note = left.note
	}
	t.p = t.newParser(em)
	s.turn = t
	return t, nil
}

func (t *liveTurn) newParser(em *turn.Emitter) *parser {
	p := newParser(em, t.run.mem, t.req.Dir)
	p.listener = listener{
		echo: t.open.id, garbage: t.run.stream.Garbage, background: t.session.background(),
		onTaken: t.takenUp, onFreed: t.open.due, replied: t.replied,
	}
	for _, id := range t.note.Steers { // by the previous process of ductor
		p.steers.Add(id, "")
	}
	if t.req.Attended {
		p.approvals = turn.NewApprovals[asked](em, t.note.Answered)
	}
	if t.left != nil {
		p.approvals.Hold()
		if t.left.unsent() {
			p.steers.Sent(t.note.Sending, "")
		}
	}
	return p
}

// takenUp is called when Claude took the prompt up: it works as was asked for.
func (t *liveTurn) takenUp() {
	t.p.em.Accepted()
	t.open.isAsked()
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	t.session.turnSettings = t.open.want
}

// caughtUp is called once the turn has read all that Claude said while ductor did not listen.
func (t *liveTurn) caughtUp() {
	if t.left == nil {
		return
	}
	t.p.approvals.Release()
	if t.open.step == catchingUp {
		t.open.step = waiting
	}
	if t.p.phase == begun && t.left.sent(t.open.changes) { // Claude has begun, and tells later of what it was asked
		t.open.isAsked()
	}
	t.open.due()
}

// loop takes the turn to its end.
func (t *liveTurn) loop() turn.End {
	stream, idle := t.run.stream, t.run.idle
	mark := cli.Mark{Turn: t.req.Turn, Note: t.note.String()}
	if t.left != nil {
		mark = cli.Mark{} // it is there
	}
	return stream.Turn(t.ctx, turn.Loop[[]byte]{
		Begin: t.open.due,
		Handle: func(raw []byte) bool {
			if t.open.step == waiting && idle.busy() {
				idle.line(raw)
				t.open.due()
				return !idle.busy() && t.ctx.Err() != nil
			}
			reply, over := t.p.line(raw)
			t.send(reply)
			return over
		},
		Interrupt: t.interrupt,
		Waiting:   t.p.approvals.Waiting,
		Out:       t.p.em,
		Mark:      mark,
	})
}

func (t *liveTurn) send(line []byte) { t.session.send(t.run, line) }

// finish ends the turn for everybody and emits its result.
func (t *liveTurn) finish(end turn.End) {
	s := t.session
	detached := end == turn.EndDetached
	s.mu.Lock()
	s.turn = nil
	if s.phase == running {
		s.phase = ready
		if end != turn.EndTurn {
			s.phase = cutShort
		}
	}
	if mode := t.run.mem.mode; mode != "" { // such as after a plan was approved
		s.turnSettings.Permission, t.run.mem.mode = mode, ""
	}
	s.mu.Unlock()
	mustStop := t.p.steers.Close() || t.p.phase == abandoned // Claude would go on with what was sent
	close(t.gone)
	result := t.result(end)
	result.Unread = t.p.steers.Unread()
	if mustStop && !detached {
		if err := t.run.stream.Close(context.WithoutCancel(t.ctx)); err != nil {
			s.provider.opts.Logger.Error("claude did not end", "err", err)
		}
	}
	t.p.approvals.Close(detached)
	t.p.em.Finish(result)
	if end == turn.EndTurn && !mustStop && t.req.Turn != "" {
		s.markBackground(t.run)
	}
}

func (t *liveTurn) result(end turn.End) cli.Result {
	if end == turn.EndExit && !t.p.phase.over() && t.ctx.Err() != nil { // cancelled before it began
		return cli.Cut(t.ctx, agent)
	}
	r := turnResult(t.run.stream, end, t.p)
	if t.open.failure != nil && r.Err != nil {
		r.Err = t.open.failure
	}
	return r
}

// turnResult is how a turn ended: by Claude's own result, unless it is that of a turn we cut short.
func turnResult(stream *turn.Stream, end turn.End, p *parser) cli.Result {
	if p.phase.over() && (end == turn.EndTurn || end == turn.EndExit || p.outcome.Err == nil && p.phase != interrupted) {
		return p.outcome
	}
	r := stream.Outcome(end)
	r.Usage, r.ByModel, r.CostUSD, r.Turns = p.outcome.Usage, p.outcome.ByModel, p.outcome.CostUSD, p.outcome.Turns
	r.Fill = p.mem.fill
	r.Denials = p.told()
	if r.Err != nil && end == turn.EndExit {
		exitFailure(r.Err)
	}
	return r
}

// step is how far a live turn has come by what Claude was sent.
type step int

const (
	catchingUp step = iota // what the previous process of ductor sent is not known yet
	waiting                // for Claude to be free; nothing was sent
	changing               // Claude has not agreed yet to how it is to work
	sent                   // the prompt is on its way, or could not be written
)

// opening is the beginning of a turn: Claude is told how to work, and asked once it agreed. All of it is done on
// the goroutine of the turn.
type opening struct {
	turn    *liveTurn
	id      string // of the prompt: Claude drops a message whose id it had before, so each attempt of a turn has its own
	prompt  []byte // the line that asks; nil until it may have to be sent
	want    turnSettings
	changes []change // not agreed to yet
	step    step
	asked   chan struct{} // closed when the prompt is on its way: what is sent now comes after it
	failure *cli.Failure
}

// writePrompt makes the line that asks.
func (o *opening) writePrompt() (err error) {
	if f := o.turn.req.Unsendable(agent); f != nil {
		return f
	}
	if o.prompt, err = userLine(o.turn.req, o.id); err != nil {
		return cli.Failf(cli.Refused, agent, "%v", err)
	}
	return nil
}

// due begins as soon as that may be. It is called whenever one of the conditions changed. While a turn runs that Claude
// began, the message would be mixed into that.
func (o *opening) due() {
	t := o.turn
	if o.step != waiting || t.run.idle.busy() || t.p.phase != awaited || t.ctx.Err() != nil {
		return
	}
	o.step = changing
	if o.prompt == nil {
		if err := o.writePrompt(); err != nil {
			o.step, o.failure = sent, cli.AsFailure(agent, err)
			t.run.stream.CloseInput() // it has nothing to do, and ends
			return
		}
	}
	if rest := t.left.cutOff(o.changes, o.prompt); rest != nil {
		o.ask(rest)
		return
	}
	if len(o.changes) == 0 {
		o.ask(o.prompt)
		return
	}
	var all []byte
	for _, c := range o.changes {
		all = append(all, c.line...)
	}
	t.send(all)
}

func (o *opening) ask(line []byte) {
	o.step = sent
	o.turn.send(line)
	o.isAsked()
}

// isAsked says that what is sent now comes after the prompt.
func (o *opening) isAsked() {
	select {
	case <-o.asked:
	default:
		close(o.asked)
	}
}

// reply takes Claude's answer to one of the changes. A change that it refuses ends the turn before it asked
// anything, and the process, whose settings are unknown then.
func (o *opening) reply(r *controlReply) {
	t := o.turn
	i := slices.IndexFunc(o.changes, func(c change) bool { return c.id == r.RequestID })
	if i < 0 || o.step != changing {
		return
	}
	refused := o.changes[i]
	o.changes = slices.Delete(slices.Clone(o.changes), i, i+1)
	switch {
	case r.Subtype == "error":
		t.p.abandon(cli.Result{Err: cli.Failf(refused.kind, agent, "it does not take the %s: %s", refused.what, oneLine(r.Error))})
	case t.ctx.Err() != nil:
		t.p.abandon(cli.Cut(t.ctx, agent))
	case len(o.changes) == 0:
		o.ask(o.prompt)
	}
}

// leftTurn is a turn that the previous process of ductor left.
type leftTurn struct {
	run      *liveRun
	mark     cli.Mark
	note     note
	inputEnd int64 // bytes that reached the process
}

// unsent says whether the message that was noted last before ductor went was not sent.
func (l *leftTurn) unsent() bool { return l.note.Sending != "" && l.inputEnd <= l.mark.Input }

// sent says whether more was sent than the changes that come before the prompt.
func (l *leftTurn) sent(changes []change) bool {
	before := l.mark.Input
	for _, c := range changes {
		before += int64(len(c.line))
	}
	return l.inputEnd > before
}

// atOnce is how long a line may be to be written whole or not at all.
const atOnce = 1 << 20

// cutOff is what is missing of a prompt that was written in part; nil if it was written whole or not at all. A
// prompt that was written whole may be sent again: Claude knows it by its id.
func (l *leftTurn) cutOff(changes []change, prompt []byte) []byte {
	if l == nil || len(prompt) <= atOnce {
		return nil
	}
	written := l.inputEnd - l.mark.Input
	for _, c := range changes {
		written -= int64(len(c.line))
	}
	if written <= 0 || written >= int64(len(prompt)) {
		return nil
	}
	return prompt[written:]
}
