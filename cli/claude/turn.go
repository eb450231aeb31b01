package claude

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"ductor/cli"
	"ductor/cli/turn"
)

type liveTurn struct {
	session *live
	ctx     context.Context // context of the call of Turn; lasts as long as the turn
	run     *liveRun
	req     cli.Request
	p       *parser
	open    opening
	left    *leftTurn // state of a turn that is resumed after a restart of ductor; nil for a new turn

	gone  chan struct{} // closed when the turn has ended
	notes sync.Mutex    // locked while a message is sent and its ID is stored; guards note.sent except note.sent.Prompt
	note  note
}

// idSpace is the UUID namespace of message IDs that are computed from turn IDs.
var idSpace = uuid.MustParse("5b0b0c5e-6f0f-4bd6-9c27-2f6d2a1c8a57")

// idOf computes a message ID from a turn ID. It always returns the same ID for a turn.
func idOf(turn cli.TurnID) string { return uuid.NewSHA1(idSpace, []byte(turn)).String() }

// Turn implements cli.Session.
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

// newTurn prepares a turn. Errors are *cli.Failure or the error of ctx.
func (s *live) newTurn(ctx context.Context, em *turn.Emitter, req cli.Request, left *leftTurn) (t *liveTurn, err error) {
	t = &liveTurn{session: s, ctx: ctx, req: req, left: left, gone: make(chan struct{})}
	want := turnSettingsOf(req)
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
		t.run, t.open.id = left.run, left.note.sent.promptOf(req.Turn)
	}
	t.run.idle.mu.Lock() // guards run.mem, which noteOf reads
	defer t.run.idle.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	t.run.hasRest.Store(false)
	if s.phase != shut {
		s.phase = running
	}
	t.open.changes = s.turnSettings.changes(want)
	if left == nil {
		t.note = noteOf(s.id, t.run.mem, s.turnSettings, want)
		t.note.sent.Prompt = t.open.id
	} else {
		t.note = left.note
	}
	t.p = t.newParser(em)
	s.turn = t
	return t, nil
}

func (t *liveTurn) newParser(em *turn.Emitter) *parser {
	p := newParser(em, t.run.mem, t.req.Dir)
	p.echo = t.open.id
	p.observer = observer{
		taken: t.takenUp, freed: t.open.startIfReady, replied: t.replied, garbage: t.run.stream.Garbage,
		background: t.session.background(),
	}
	for _, sent := range t.note.sent.Steers { // messages that ductor sent before a restart
		if id, steered, _ := strings.Cut(sent, " "); id != t.note.sent.Sending || !t.left.unsent() {
			p.steers.Adopt(id, cli.TurnID(steered))
		}
	}
	if t.req.Attended {
		p.approvals = turn.NewApprovals[asked](em, t.note.sent.Answered)
	}
	if t.left != nil {
		p.approvals.Hold()
	}
	return p
}

// takenUp is called when Claude has accepted the prompt. From then on, the requested turn settings apply.
func (t *liveTurn) takenUp() {
	t.p.flow.em.Accepted()
	t.open.markAsked()
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	t.session.turnSettings = t.open.want
}

// caughtUp is called when the turn has read all output from before ductor attached. It does nothing for a new turn.
func (t *liveTurn) caughtUp() {
	if t.left == nil {
		return
	}
	t.p.approvals.Release()
	if t.open.step == catchingUp {
		t.open.step = waiting
	}
	if t.p.phase == begun && t.left.sent(t.open.changes) { // Claude has received the prompt, but not confirmed it
		t.open.markAsked()
	}
	t.open.startIfReady()
}

func (t *liveTurn) loop() turn.End {
	stream, idle := t.run.stream, t.run.idle
	mark := cli.Mark{Turn: t.req.Turn, Note: t.note.String()}
	if t.left != nil {
		mark = cli.Mark{} // the start of the turn is already stored
	}
	return stream.Turn(t.ctx, turn.Loop[[]byte]{
		Begin: t.open.startIfReady,
		Handle: func(raw []byte) bool {
			if t.open.step == waiting && idle.busy() {
				idle.line(raw)
				t.open.startIfReady()
				return !idle.busy() && t.ctx.Err() != nil
			}
			reply, over := t.p.line(raw)
			t.send(reply)
			return over
		},
		Interrupt: t.interrupt,
		Ended:     func(turn.End) { t.run.hasRest.Store(t.mustStop() || !t.p.phase.over()) },
		Waiting:   t.p.approvals.Waiting,
		Out:       t.p.flow.em,
		Mark:      mark,
	})
}

func (t *liveTurn) send(line []byte) { t.session.send(t.run, line) }

func (t *liveTurn) finish(end turn.End) {
	s := t.session
	detached := end == turn.EndDetached
	mustStop := t.mustStop()
	s.mu.Lock()
	s.turn = nil
	if s.phase == running {
		s.phase = ready
		if end != turn.EndTurn {
			s.phase = cutShort
		}
	}
	if mode := t.run.mem.mode; mode != "" { // Claude has changed the mode, for example after an approved plan
		s.turnSettings.Permission, t.run.mem.mode = mode, ""
	}
	s.mu.Unlock()
	close(t.gone)
	result := t.result(end)
	exited := end == turn.EndExit
	if mustStop && !detached {
		err := t.run.stream.Close(context.WithoutCancel(t.ctx))
		if err != nil {
			s.provider.opts.Logger.Error("claude did not end", "err", err)
		}
		exited = exited || err == nil
	}
	if exited {
		t.p.steers.DropAll()
	}
	result.Steered = t.p.steers.Settle()
	t.p.approvals.Close(detached)
	t.p.flow.em.Finish(result)
	if end == turn.EndTurn && !mustStop && t.req.Turn != "" {
		s.markBackground(t.run)
	}
}

// mustStop makes the turn accept no more messages. It reports whether ductor must stop the process, because Claude may
// still work on the turn.
func (t *liveTurn) mustStop() bool { return t.p.steers.Close() || t.p.phase == abandoned }

func (t *liveTurn) result(end turn.End) cli.Result {
	if end == turn.EndExit && !t.p.phase.over() && t.ctx.Err() != nil { // cancelled before Claude printed a result
		return cli.Cut(t.ctx, agent)
	}
	r := turnResult(t.run.stream, end, t.p)
	if t.open.failure != nil && r.Err != nil {
		r.Err = t.open.failure
	}
	return r
}

// turnResult returns Claude's own result of the turn. If ductor interrupted the turn, it returns a result with the
// reason.
func turnResult(stream *turn.Stream, end turn.End, p *parser) cli.Result {
	if p.phase.over() && (end == turn.EndTurn || end == turn.EndExit || p.outcome.Err == nil && p.phase != interrupted) {
		return p.outcome
	}
	r := stream.Outcome(end)
	r.Consumed, r.Fill = p.outcome.Consumed, p.mem.fill
	r.Denials = p.turnDenials()
	if r.Err != nil && end == turn.EndExit {
		exitFailure(r.Err)
	}
	return r
}

// step is the progress of sending the turn's first messages.
type step int

const (
	catchingUp step = iota // after a restart: ductor does not know yet what its previous process sent
	waiting                // ductor has sent nothing yet, because Claude may still work on another turn
	changing               // Claude has not yet confirmed the new settings
	sent                   // ductor has passed the prompt to the stream, or failed to encode it
)

// opening is the start of a turn. It changes Claude's settings, waits for the confirmation and sends the prompt. Only
// the goroutine of the turn uses it.
type opening struct {
	turn    *liveTurn
	id      string // message ID of the prompt, which is new for each attempt: Claude ignores an ID that it knows
	prompt  []byte // line with the prompt; in a resumed turn, nil until it is needed
	want    turnSettings
	changes []change // changes of settings that Claude has not confirmed
	step    step
	asked   chan struct{} // closed after the prompt was sent; users can then add messages
	failure *cli.Failure
}

// writePrompt encodes the prompt as a line.
func (o *opening) writePrompt() (err error) {
	if f := o.turn.req.Unsendable(agent); f != nil {
		return f
	}
	if o.prompt, err = userLine(o.turn.req, o.id); err != nil {
		return cli.Failf(cli.Refused, agent, "%v", err)
	}
	return nil
}

// startIfReady sends the first messages of the turn if nothing prevents that. The caller calls it again whenever
// something has changed. startIfReady sends nothing while a turn that Claude started itself is running, because the
// prompt would become a part of that turn.
func (o *opening) startIfReady() {
	t := o.turn
	if o.step != waiting || t.run.idle.busy() || t.p.phase != awaited || t.ctx.Err() != nil {
		return
	}
	o.step = changing
	if o.prompt == nil {
		if err := o.writePrompt(); err != nil {
			o.step, o.failure = sent, cli.AsFailure(agent, err)
			t.run.stream.CloseInput() // makes the process end
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
	o.markAsked()
}

// markAsked records that the prompt was sent. Users can then add messages to the turn.
func (o *opening) markAsked() {
	select {
	case <-o.asked:
	default:
		close(o.asked)
	}
}

// reply handles Claude's answer to a change of settings. After all changes, it sends the prompt. If Claude rejects a
// change, reply ends the turn without sending the prompt. The process then ends too, because its settings are unknown.
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

// leftTurn is a turn that started before ductor was restarted.
type leftTurn struct {
	run      *liveRun
	mark     cli.Mark
	note     note
	inputEnd int64 // bytes of input that were written to the process
}

// unsent reports whether the previous process of ductor ended before it wrote the message with the ID in
// note.sent.Sending.
func (l *leftTurn) unsent() bool { return l.note.sent.Sending != "" && l.inputEnd <= l.mark.Input }

// sent reports whether the previous process of ductor wrote at least a part of the prompt. In the input, the changes of
// settings precede the prompt.
func (l *leftTurn) sent(changes []change) bool {
	before := l.mark.Input
	for _, c := range changes {
		before += int64(len(c.line))
	}
	return l.inputEnd > before
}

// atOnce is the maximum length of a line that ductor writes completely or not at all.
const atOnce = 1 << 20

// cutOff returns the missing part of a prompt that the previous process of ductor wrote only in part. It returns nil if
// the previous process wrote the whole prompt or nothing. The caller may then send the whole prompt, because Claude
// ignores a prompt whose ID it knows.
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
