package codex

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

// liveTurn is one turn of a thread. Everything except decide, steer and stop belongs to the goroutine of Turn.
type liveTurn struct {
	s         *live
	req       cli.Request
	out       *turn.Emitter
	parser    *liveParser
	in        *inbox
	approvals *turn.Approvals[*inquiry]
	loop      *turn.Turn[news]
	ctx       context.Context
	stop      context.CancelCauseFunc
	done      chan struct{}
	prompt    prompt
	steering
}

// steering is the state of messages sent into the turn. Safe for concurrent use.
type steering struct {
	name  atomic.Pointer[string] // Codex's id of the turn, once it is known
	added turn.Added
}

// prompt is the request that starts a turn.
type prompt struct {
	id    string // the next process recognizes the answer by it
	state promptState
	held  []news // news before the answer: only the answer shows whose they are
}

// promptState is the state of a prompt.
type promptState string

const (
	promptUnsent    promptState = "unsent" // the previous process did not send it: send it when everything else is known
	promptSent      promptState = "sent"
	promptAccepted  promptState = "accepted"
	promptUnwritten promptState = "unwritten" // it did not reach Codex
)

// startWait is how long Codex may take to answer turn/start.
const startWait = time.Minute

// Turn runs one prompt in the thread, or resumes the adopted turn.
func (s *live) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	out := turn.NewEmitter(Agent, s.opts().Now, emit)
	left := s.takeLeft()
	if ctx.Err() != nil && left == nil {
		out.Finish(cli.Cut(ctx, Agent))
		return
	}
	t := s.newTurn(ctx, req, out, left)
	if left == nil {
		s.server.TurnStarted() // if the process is about to end, its end ends the turn
	}
	end := t.loop.Run(t.ctx)
	r := t.result(end)
	t.close(end, &r)
	out.Finish(r)
	t.end(end)
}

func (s *live) takeLeft() *awaitedTurn {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.left
	s.left = nil
	return left
}

// startName returns the id of the request that starts a turn.
func startName(turn cli.TurnID) string { return "turn." + string(turn) }

func (s *live) newTurn(ctx context.Context, req cli.Request, out *turn.Emitter, left *awaitedTurn) *liveTurn {
	t := &liveTurn{s: s, req: req, out: out, approvals: turn.NewApprovals[*inquiry](out, nil), in: turn.NewQueue[news](0), done: make(chan struct{})}
	t.ctx, t.stop = context.WithCancelCause(ctx)
	t.prompt = prompt{id: startName(req.Turn), state: promptSent}
	if req.Turn == "" {
		t.prompt.id = s.server.Peer().NextID()
	}
	source := turn.Source[news]{Gone: s.server.Gone(), Limits: turn.LimitsOf(s.opts().ProviderOptions), Stop: s.server.Stop}
	source.Limits.Start = startWait
	// an interrupt may take until the end of the turn, and others share the process
	source.Limits.Interrupt = source.Limits.Grace
	begin := t.begin
	if left != nil {
		t.in, begin = left.in, nil
		t.approvals.Hold()
		if left.unsent {
			t.prompt.state = promptUnsent
		}
		source.Resumed = &turn.Resumed{From: left.mark.Output, Began: req.Began, When: s.server.Program().When}
		source.End = func(n news) int64 { return n.end }
	}
	source.In = t.in
	t.parser = newLiveParser(out, req)
	t.parser.patience = s.opts().Patience
	t.loop = turn.New(turn.Loop[news]{
		Source: source, Begin: begin, Handle: t.take, Interrupt: t.interrupt, Waiting: t.approvals.Waiting, Out: out,
		Hopeless: func() bool { return t.parser.hopeless != nil },
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn = t
	out.Session(s.thread, cli.ModelID(cmp.Or(string(req.Model), s.model)))
	return t
}

// begin directs the thread's messages to this turn, and sends the prompt.
func (t *liveTurn) begin() {
	t.s.server.turns.Set(t.s.thread, t.in)
	t.send()
}

// send sends the prompt. It first records the start of the turn.
func (t *liveTurn) send() {
	t.prompt.state = promptSent
	ctx, cancel := context.WithTimeout(t.ctx, helloWait)
	defer cancel()
	unsent := func(err error) { t.in.Put(news{unsent: err}, 0) }
	defaults, err := t.s.server.configured(ctx)
	if err != nil {
		unsent(err)
		return
	}
	mark := cli.Mark{Turn: t.req.Turn, Note: t.s.note()}
	start := rpc.Prompt{
		ID: t.prompt.id, Method: "turn/start", Answered: replies(t.in), Unsent: unsent, Mark: func(int) cli.Mark { return mark },
	}
	if t.req.Task == cli.TaskCompact {
		start.Method, start.Params = "thread/compact/start", map[string]any{"threadId": t.s.thread}
	} else {
		terms := t.s.termsOf(t.req, defaults)
		if !t.s.server.agree(t.s.thread, t.prompt.id, terms) {
			terms = nil
		}
		start.Params = t.s.turnParams(t.req, terms)
	}
	t.s.server.Peer().Ask(t.ctx, start)
}

// take handles one piece of news. It reports whether the turn is over.
func (t *liveTurn) take(n news) (over bool) {
	switch {
	case n.CaughtUp:
		return t.caughtUp(n.Change)
	case n.Any():
		t.loop.Changed(n.Change)
		return false
	case n.unsent != nil:
		t.prompt.state, t.parser.refused = promptUnwritten, t.s.server.broken(n.unsent)
		return true
	case n.denied != nil:
		t.parser.denied(t.approvalOf(n.denied), cli.ShortLine(n.reason))
		return false
	case n.reply != nil:
		return t.started(*n.reply)
	case t.prompt.state != promptAccepted:
		t.prompt.held = append(t.prompt.held, n)
		return false
	case n.ask != nil:
		t.ask(n.ask)
		return false
	case n.method == serversLate:
		t.nameServers()
		return false
	case n.method == "serverRequest/resolved":
		t.resolved(n.notice)
		return false
	case n.notice.helper:
		t.parser.subAgentItem(n.method, n.notice.Item)
		return false
	}
	if it := n.notice.Item; it != nil && it.Type == "userMessage" {
		t.added.Taken(it.ClientID)
		t.nameServers()
	}
	return t.parser.notification(n.method, n.notice)
}

// nameServers warns about missing MCP servers.
func (t *liveTurn) nameServers() {
	for _, what := range t.s.server.missingServers(t.s.thread) {
		t.out.Pass(cli.Status{Kind: cli.StatusWarning, Detail: what})
	}
}

// started handles the answer to the request that starts the turn, and then the news before it.
func (t *liveTurn) started(m rpc.Message) (over bool) {
	var reply struct {
		Turn struct {
			ID string `json:"id"`
		} `json:"turn"`
	}
	err := m.Read(Agent, "turn/start", &reply)
	if err == nil && reply.Turn.ID == "" && t.req.Task != cli.TaskCompact {
		err = cli.Failf(cli.BadOutput, Agent, "it started a turn without a name")
	}
	if err != nil {
		t.parser.refused = t.s.server.broken(err)
		return true
	}
	t.s.server.accepted(t.s.thread, t.prompt.id)
	t.prompt.state, t.parser.turn = promptAccepted, reply.Turn.ID
	t.out.Accepted()
	if reply.Turn.ID != "" { // otherwise the turn accepts no messages
		t.name.Store(&reply.Turn.ID)
	}
	held := t.prompt.held
	t.prompt.held = nil
	for _, n := range held {
		if t.take(n) {
			return true
		}
	}
	t.loop.Accepted()
	return false
}

// caughtUp handles the end of the replay. It emits the requests that wait for users, and sends an unsent prompt.
func (t *liveTurn) caughtUp(c turn.Change) (over bool) {
	if t.prompt.state != promptAccepted { // no news are about this turn then
		t.prompt.held = nil
	}
	t.approvals.Release()
	t.loop.Changed(c)
	if t.prompt.state != promptUnsent {
		return false
	}
	if t.loop.Cut() {
		return true
	}
	t.send()
	return false
}

func (t *liveTurn) interrupt() error {
	params := map[string]any{"threadId": t.s.thread, "turnId": t.parser.turn}
	return t.s.server.Peer().Send("turn/interrupt", params) // the end of the turn answers it
}

// steer adds req's prompt to the turn.
func (t *liveTurn) steer(ctx context.Context, req cli.Request) error {
	id := t.name.Load()
	if id == nil {
		return cli.ErrNoTurn
	}
	params := map[string]any{"threadId": t.s.thread, "expectedTurnId": *id, "input": inputOf(req)}
	if req.Turn != "" { // Codex repeats it when its model gets the message
		params["clientUserMessageId"] = string(req.Turn)
		t.added.Add(string(req.Turn), req.Turn)
	}
	err := t.s.server.Peer().Call(ctx, "turn/steer", params, nil)
	if err != nil {
		t.added.Sent(string(req.Turn), "")
	}
	var refused *rpc.Error
	if errors.As(err, &refused) && refused.Code == rpc.CodeInvalidRequest {
		return cli.ErrNoTurn
	}
	return err
}

// result returns the result of the turn: Codex's own, unless the turn was interrupted before.
func (t *liveTurn) result(end turn.End) cli.Result {
	switch {
	case t.prompt.state == promptUnwritten && t.ctx.Err() != nil:
		return cli.Cut(t.ctx, Agent)
	case end == turn.EndTurn, t.parser.status == turnCompleted:
		return t.parser.result()
	case end == turn.EndHopeless:
		return cli.Result{Err: t.parser.hopeless}
	case end == turn.EndStalled && t.prompt.state == promptSent && !t.loop.Past():
		return cli.Result{Err: cli.Failf(cli.BadOutput, Agent, "its app server did not answer for %s", startWait)}
	}
	return t.loop.Outcome(end, Agent, t.s.server.exit)
}

// close withdraws open requests, completes the Result, and updates the session.
func (t *liveTurn) close(end turn.End, r *cli.Result) {
	if err := t.loop.StopErr(); err != nil {
		t.s.opts().Logger.Error("a codex that does not answer did not end", "pid", t.s.server.Program().PID(), "err", err)
	}
	r.Usage, r.Fill, r.Denials = t.parser.used(), t.parser.fill(), append(r.Denials, t.parser.denials...)
	t.approvals.Close(end == turn.EndDetached)
	if end == turn.EndDetached || !t.loop.Cut() {
		return
	}
	for _, id := range t.added.Waiting() { // Codex forgets them
		t.added.GiveBack(id)
	}
	if r.Unread = t.added.Unread(); !t.sessionGoesOn() {
		t.s.spend()
	}
}

// sessionGoesOn reports whether Codex ended the turn for the user's next message, and no process of the turn is left.
// Codex does not end a running command, so sessionGoesOn ends it.
func (t *liveTurn) sessionGoesOn() bool {
	if !cli.Replaced(t.ctx) || t.parser.status == "" {
		return false
	}
	if t.out.OpenTools() == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), t.s.opts().Grace+stopWait)
	defer cancel()
	err := t.s.endTools(ctx)
	if err != nil {
		t.s.opts().Logger.Warn("end what an interrupted turn runs", "agent", string(Agent), "thread", string(t.s.thread), "err", err)
	}
	return err == nil
}

// end detaches from the thread's messages, and removes the turn from its process's count.
func (t *liveTurn) end(end turn.End) {
	h := t.s.server
	detached := end == turn.EndDetached
	if detached { // from now on the next process answers Codex's requests
		h.TurnEnded(t.ctx, shared.EndDetached)
	}
	h.Peer().Forget(t.prompt.id)
	h.turns.Remove(t.s.thread, t.in)
	for _, n := range append(t.loop.Rest(), t.in.Close()...) {
		if n.ask != nil && !detached && !t.loop.Past() {
			h.decline(n.ask) // no turn is left to ask the user
		}
	}
	t.s.mu.Lock()
	t.s.turn = nil
	t.s.mu.Unlock()
	t.stop(nil)
	if !detached {
		h.TurnEnded(t.ctx, shared.EndOver)
	}
	close(t.done)
}

// note is stored for the next process, which needs it to resume a turn of this thread.
type note struct {
	Thread cli.AgentSessionID `json:"thread"`
	Marker string             `json:"marker"`
	binding
	Model string `json:"model,omitempty"`
}

func (s *live) note() string {
	raw, err := json.Marshal(note{s.thread, s.marker, s.bound, s.model})
	if err != nil { // strings can always be encoded
		return ""
	}
	return string(raw)
}
