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

// liveTurn is one turn of a thread. It implements shared.AgentTurn. Only the goroutine of Turn uses it, except for the
// methods Decide and steer.
type liveTurn struct {
	*shared.Turn[news]
	s         *thread
	parser    *liveParser
	approvals *turn.Approvals[*inquiry]
	held      []news // messages that arrived before the response to the prompt, when the turn's ID was unknown

	name  atomic.Pointer[string] // Codex's ID of the turn; nil if it is not known yet
	added turn.Added
}

// startWait is the maximum time for Codex's response to turn/start.
const startWait = time.Minute

func (s *thread) Check(*shared.Turn[news]) error { return nil }

// Begin implements shared.AgentSession. It sends nothing, because the prompt contains all settings of the turn.
func (s *thread) Begin(_ context.Context, t *shared.Turn[news]) (shared.AgentTurn[news], error) {
	parser := newLiveParser(t.Out, t.Req)
	parser.network.patience, parser.limit.model = s.opts().Patience, cmp.Or(string(t.Req.Model), s.model)
	return &liveTurn{Turn: t, s: s, parser: parser, approvals: turn.NewApprovals[*inquiry](t.Out, nil)}, nil
}

func (t *liveTurn) Start() {
	t.Out.Session(t.s.id, cli.ModelID(cmp.Or(string(t.Req.Model), t.s.model)))
}

func (t *liveTurn) Approvals() shared.Approvals { return t.approvals }

func (t *liveTurn) Hopeless() bool { return t.parser.verdict.hopeless != nil }

func (t *liveTurn) Over() bool { return t.parser.verdict.over() }

// Prompt implements shared.AgentTurn. It drops messages that arrived before the call, because they belong to earlier
// turns.
func (t *liveTurn) Prompt(ctx context.Context) (p rpc.Prompt, err error) {
	t.held = nil
	ctx, cancel := context.WithTimeout(ctx, helloWait)
	defer cancel()
	defaults, err := t.s.server.configured(ctx)
	if err != nil {
		return p, err
	}
	mark := cli.Mark{Turn: t.Req.Turn, Note: t.s.note()}
	p.Mark = func(int) cli.Mark { return mark }
	if t.Req.Task == cli.TaskCompact {
		p.Method, p.Params = "thread/compact/start", map[string]any{"threadId": t.s.id}
		return p, nil
	}
	terms := t.s.termsOf(t.Req, defaults)
	if !t.s.server.needsTerms(t.s.id, t.PromptID(), terms) {
		terms = nil
	}
	p.Method, p.Params = "turn/start", t.s.turnParams(t.Req, terms)
	return p, nil
}

func (t *liveTurn) Handle(n news) {
	switch {
	case n.denied != nil:
		t.parser.denied(t.approvalOf(n.denied), cli.ShortLine(n.reason))
	case n.method == "" && n.ask == nil: // an empty message: the caller then checks whether the turn is over
	case t.PromptState() != shared.PromptAccepted:
		t.held = append(t.held, n)
	case n.ask != nil:
		t.ask(n.ask)
	case n.method == serversLate:
		t.nameServers()
	case n.method == "serverRequest/resolved":
		t.resolved(n.notice)
	case n.notice.helper:
		t.parser.subAgentItem(n.method, n.notice.Item)
	default:
		if it := n.notice.Item; it != nil && it.Type == "userMessage" {
			if it.ClientID != "" { // ductor sent this message, possibly before a restart
				t.added.Adopt(it.ClientID, cli.TurnID(it.ClientID))
			}
			t.added.Read(it.ClientID)
			t.nameServers()
		}
		t.parser.notification(n.method, n.notice)
	}
}

// nameServers warns the user about MCP servers that do not work.
func (t *liveTurn) nameServers() {
	for _, what := range t.s.server.missingServers(t.s.id) {
		t.Out.Pass(cli.Status{Kind: cli.StatusWarning, Detail: what})
	}
}

// Replied implements shared.AgentTurn. It also handles the messages that arrived before the response to the prompt.
func (t *liveTurn) Replied(m rpc.Message) error {
	var reply struct {
		Turn struct {
			ID string `json:"id"`
		} `json:"turn"`
	}
	err := m.Read(Agent, "turn/start", &reply)
	if err == nil && reply.Turn.ID == "" && t.Req.Task != cli.TaskCompact {
		err = cli.Failf(cli.BadOutput, Agent, "it started a turn without a name")
	}
	if err != nil {
		return err
	}
	t.s.server.accepted(t.s.id, t.PromptID())
	t.parser.turn = reply.Turn.ID
	t.Accepted()
	if reply.Turn.ID != "" { // users can only add messages to a turn with an ID
		t.name.Store(&reply.Turn.ID)
	}
	held := t.held
	t.held = nil
	for _, n := range held {
		if !t.Over() {
			t.Handle(n)
		}
	}
	return nil
}

// Interrupt implements shared.AgentTurn. Codex responds by ending the turn.
func (t *liveTurn) Interrupt() error {
	params := map[string]any{"threadId": t.s.id, "turnId": t.parser.turn}
	return t.s.server.Peer().Send("turn/interrupt", params)
}

func (t *liveTurn) steer(ctx context.Context, req cli.Request) error {
	id := t.name.Load()
	if id == nil {
		return cli.ErrNoTurn
	}
	name := string(req.Turn)
	m, isNew := t.added.Add(name, req.Turn)
	switch {
	case m == nil:
		return cli.ErrNoTurn
	case !isNew:
		return nil
	}
	params := map[string]any{"threadId": t.s.id, "expectedTurnId": *id, "input": inputOf(req)}
	if name != "" { // Codex sends this ID back when its model reads the message
		params["clientUserMessageId"] = name
	}
	err := t.s.server.Peer().Call(ctx, "turn/steer", params, nil)
	var rejected *rpc.Error
	switch {
	case errors.As(err, &rejected):
		return m.Rejected()
	case err != nil:
		return m.Lost(ctx, err)
	}
	return m.Accepted(name)
}

// Result implements shared.AgentTurn. It returns Codex's own result, unless ductor interrupted the turn.
func (t *liveTurn) Result(end turn.End) (r cli.Result) {
	switch {
	case end == turn.EndTurn, t.parser.verdict.status == turnCompleted:
		r = t.parser.result()
	case end == turn.EndHopeless:
		r.Err = t.parser.verdict.hopeless
	case end == turn.EndStalled && t.PromptState() == shared.PromptSent && !t.Loop.Past():
		r.Err = cli.Failf(cli.BadOutput, Agent, "its app server did not answer for %s", startWait)
	default:
		r = t.Loop.Outcome(end, Agent, t.s.server.exit)
	}
	r.Consumed.Usage, r.Fill, r.Denials = t.parser.used(), t.parser.fill(), append(r.Denials, t.parser.denials...)
	r.Steered = t.added.Settle()
	return r
}

// End implements shared.AgentTurn. Codex's model reads every message before a turn completes. When a turn ends in
// another way, Codex drops the messages that its model has not read.
func (t *liveTurn) End(end turn.End) (shared.Phase, shared.TurnEnd) {
	if end == turn.EndExit || t.Loop.Cut() || t.parser.verdict.status != turnCompleted {
		t.added.DropAll()
	}
	t.added.Expire()
	if !t.Loop.Cut() {
		return shared.PhaseIdle, shared.EndOver
	}
	if t.sessionGoesOn() {
		return shared.PhaseIdle, shared.EndOver
	}
	return shared.PhaseSpent, shared.EndOver
}

// Late implements shared.AgentTurn. It declines a late request, because no user can answer after the end of the turn.
func (t *liveTurn) Late(n news) {
	if n.ask != nil && !t.Loop.Past() {
		t.s.server.decline(n.ask)
	}
}

// sessionGoesOn reports whether the session can continue after an interrupt. For this, the user must have replaced the
// turn by another prompt, and Codex must have ended the turn. If a command of the turn is still running, sessionGoesOn
// ends it.
func (t *liveTurn) sessionGoesOn() bool {
	if !cli.Replaced(t.Context()) || !t.parser.verdict.over() {
		return false
	}
	if t.Out.OpenTools() == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), t.s.opts().Grace+stopWait)
	defer cancel()
	err := t.s.endTools(ctx)
	if err != nil {
		t.s.opts().Logger.Warn("end what an interrupted turn runs", "agent", string(Agent), "thread", string(t.s.id), "err", err)
	}
	return err == nil
}

// note is the state that ductor needs to resume a turn of the thread after a restart. It is stored with the start of
// the turn.
type note struct {
	Thread cli.AgentSessionID `json:"thread"`
	Marker string             `json:"marker"`
	binding
	Model string `json:"model,omitempty"`
}

func (s *thread) note() string {
	raw, err := json.Marshal(note{s.id, s.marker, s.bound, s.model})
	if err != nil { // cannot happen: strings can always be encoded
		return ""
	}
	return string(raw)
}
