package codex

import (
	"encoding/json"
	"strings"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// liveParser converts the app server's notifications in one turn to events. It does no I/O. The same notifications
// always result in the same events.
type liveParser struct {
	out      *turn.Emitter
	dir      string
	turn     string // Codex's ID of the turn; the parser ignores notifications of other turns
	verdict  verdict
	network  network
	limit    turnLimit
	messages messages
	helper   cli.ToolID      // ID of the tool call that most recently started a sub-agent
	tools    map[string]bool // IDs of the tools whose start was emitted
	changes  map[string]patch
	usage    *tokenUsage // token totals before the turn and now; nil until Codex reports them
	denials  []cli.Denial
}

// network detects that Codex waits too long for the network.
type network struct {
	now      func() time.Time
	patience time.Duration
	offline  time.Time // when Codex began to wait for the network; zero if Codex is not waiting
}

// down examines the text of an error. It returns true if Codex has waited for the network for longer than n.patience.
func (n *network) down(message string) bool {
	if !strings.Contains(message, "waiting for network") {
		return false
	}
	if n.offline.IsZero() {
		n.offline = n.now()
		return false
	}
	return n.now().Sub(n.offline) >= n.patience
}

// verdict is Codex's report about the end of the turn.
type verdict struct {
	status   string // empty while the turn is running
	failure  *cli.Failure
	hopeless *cli.Failure // why Codex's retries cannot succeed; nil if they can
}

// over reports whether Codex has ended the turn.
func (v *verdict) over() bool { return v.status != "" }

func (v *verdict) complete(turn *turnInfo) {
	v.status = turn.Status
	if turn.Error != nil && turn.Status == turnFailed {
		v.failure = turn.Error.failure()
	}
}

// result returns the Result of a turn that Codex has ended. resetAt is the time at which a reached usage limit resets;
// it may be zero.
func (v *verdict) result(resetAt time.Time) cli.Result {
	switch {
	case v.status == turnCompleted:
		return cli.Result{}
	case v.failure == nil && v.status == turnInterrupted:
		return cli.Result{Err: cli.Failf(cli.UnknownFailure, Agent, "it interrupted itself")}
	case v.failure == nil:
		return cli.Result{Err: cli.Failf(cli.UnknownFailure, Agent, "it does not say why")}
	}
	if v.failure.Kind == cli.LimitReached {
		v.failure.ResetAt = resetAt
	}
	return cli.Result{Err: v.failure}
}

// messages tracks the model's messages in a turn.
type messages struct {
	streaming string          // ID of the message that is streaming
	torn      string          // ID of a message whose stream broke; a retry will repeat it
	thought   map[string]bool // IDs of the reasoning that was already streamed
	comments  map[string]bool // for each message ID, whether the message is commentary and not part of the answer
}

// start records the start of a message. It returns the ID of a broken message that the new one replaces, or "".
func (m *messages) start(it *liveItem) (replaced string) {
	if m.torn != it.ID {
		replaced = m.torn
	}
	m.torn, m.streaming = "", it.ID
	m.comments[it.ID] = it.Phase == "commentary"
	return replaced
}

// end records the end of a message. It reports whether the message is part of the answer, and whether its text was
// streamed.
func (m *messages) end(it *liveItem) (answer, streamed bool) {
	comment, streamed := m.comments[it.ID]
	delete(m.comments, it.ID)
	m.streaming = ""
	if m.torn == it.ID { // Codex sent the whole message, so no other message will replace it
		m.torn = ""
	}
	return !comment && (streamed || it.Phase != "commentary"), streamed
}

func newLiveParser(out *turn.Emitter, req cli.Request) *liveParser {
	return &liveParser{
		out: out, dir: req.Dir, network: network{now: out.Now, patience: time.Minute},
		messages: messages{thought: map[string]bool{}, comments: map[string]bool{}},
		tools:    map[string]bool{}, changes: map[string]patch{},
	}
}

// notification handles a notification. It returns true if the turn has ended.
func (p *liveParser) notification(method string, n *notice) (over bool) {
	if p.turn == "" && method == "turn/started" && n.Turn != nil { // the response to the prompt did not contain the ID
		p.turn = n.Turn.ID
	}
	if n.Turn != nil && n.Turn.ID != p.turn || n.Turn == nil && n.TurnID != "" && n.TurnID != p.turn {
		return false // a notification of an earlier turn
	}
	if method != "error" {
		p.network.offline = time.Time{}
	}
	switch method {
	case "turn/started":
		p.out.Pass(cli.Status{Kind: cli.StatusWaiting})
	case "turn/completed":
		if n.Turn != nil {
			p.verdict.complete(n.Turn)
		}
		return n.Turn != nil
	case "error":
		p.trouble(n)
	case "thread/tokenUsage/updated":
		p.count(n.TokenUsage)
	case limitsUpdated:
		p.rateLimits(n.RateLimits)
	case "warning":
		p.out.Pass(cli.Status{Kind: cli.StatusWarning, Detail: cli.ShortLine(n.Message)})
	case "model/rerouted":
		p.out.Pass(cli.Status{Kind: cli.StatusWarning, Detail: cli.ShortLine("another model answers: " + n.ToModel)})
	case "turn/plan/updated":
		p.plan(n)
	default:
		p.itemNotice(method, n)
	}
	return false
}

// itemNotice handles a notification about one item: a message, a tool call or reasoning.
func (p *liveParser) itemNotice(method string, n *notice) {
	switch method {
	case "item/started":
		p.itemStarted(n.Item)
	case "item/completed":
		p.itemCompleted(n.Item)
	case "item/agentMessage/delta":
		p.text(n.ItemID, n.Delta)
	case "item/plan/delta":
		p.out.Text(n.ItemID, n.Delta)
	case "item/reasoning/summaryTextDelta", "item/reasoning/textDelta":
		p.messages.thought[n.ItemID] = true
		p.out.Thinking(n.Delta)
	case "item/reasoning/summaryPartAdded":
		if p.messages.thought[n.ItemID] {
			p.out.Thinking("\n\n")
		}
	case "item/fileChange/patchUpdated":
		p.changes[n.ItemID] = n.Changes
	}
}

func (p *liveParser) text(item, delta string) {
	if p.messages.comments[item] {
		p.out.Thinking(delta)
		return
	}
	p.out.Text(item, delta)
}

func (p *liveParser) itemStarted(it *liveItem) {
	if it == nil {
		return
	}
	switch it.Type {
	case itemMessage:
		if torn := p.messages.start(it); torn != "" {
			p.out.GiveUp(torn)
		}
		return
	case "contextCompaction":
		p.out.Pass(cli.Status{Kind: cli.StatusCompacting})
		return
	case itemFiles:
		p.changes[it.ID] = it.Changes
	case itemCollab:
		p.helper = cli.ToolID(it.ID)
	}
	if t, ok := started(it, p.dir); ok {
		p.tools[it.ID] = true
		p.out.ToolStartOrChange(t)
	}
}

// subAgentItem handles an item of a sub-agent. The sub-agent's tool calls become children of the tool call that started
// the last sub-agent. The sub-agent's text is not part of the answer.
func (p *liveParser) subAgentItem(method string, it *liveItem) {
	t, ok := started(it, p.dir)
	if !ok || it.Type == itemCollab {
		return
	}
	p.tools[it.ID], t.Parent = true, p.helper
	p.out.ToolStartOrChange(t)
	if method == "item/completed" {
		p.endTool(it)
	}
}

// tool returns the ID of the item's tool call, or "" if users do not see the call yet.
func (p *liveParser) tool(item string) cli.ToolID {
	if !p.tools[item] {
		return ""
	}
	return cli.ToolID(item)
}

func (p *liveParser) itemCompleted(it *liveItem) {
	if it == nil {
		return
	}
	switch it.Type {
	case itemMessage:
		p.wholeMessage(it)
		return
	case "plan":
		p.out.FullText(it.ID, it.Text)
		return
	case itemReasoning:
		if !p.messages.thought[it.ID] {
			p.out.Thinking(thoughtOf(it))
		}
		return
	case "contextCompaction":
		p.out.Pass(cli.CompactBoundary{})
		p.out.Pass(cli.Status{Kind: cli.StatusIdle})
		return
	}
	if _, tool := started(it, p.dir); !tool {
		return
	}
	p.itemStarted(it) // some items have no item/started notification, and a search has its query only now
	p.endTool(it)
}

func (p *liveParser) endTool(it *liveItem) {
	p.out.ToolEnd(ended(it))
	if it.Type == itemFiles && it.Status == turnCompleted {
		for _, c := range changesOf(it.Changes.files, cli.FileAdded) {
			p.out.Pass(c)
		}
	}
}

// wholeMessage replaces the streamed text of a message by the complete text.
func (p *liveParser) wholeMessage(it *liveItem) {
	switch answer, streamed := p.messages.end(it); {
	case answer:
		p.out.FullText(it.ID, it.Text)
	case !streamed:
		p.out.Thinking(it.Text)
	}
}

// thoughtOf returns the complete text of the reasoning in an item.
func thoughtOf(it *liveItem) string {
	if len(it.Summary) > 0 {
		return strings.Join(it.Summary, "\n\n")
	}
	var content []string
	if json.Unmarshal(it.Content, &content) != nil {
		return ""
	}
	return strings.Join(content, "\n\n")
}

// plan emits Codex's list of steps.
func (p *liveParser) plan(n *notice) {
	var ev cli.PlanChanged
	for _, s := range n.Plan {
		ev.Steps = append(ev.Steps, cli.PlanStep{Text: cli.ShortLine(s.Step), State: cli.PlanStateOf(s.Status)})
	}
	p.out.Pass(ev)
}

// count records the token usage of the thread. Codex reports it after each request to the model.
func (p *liveParser) count(u tokenUsage) {
	if p.usage == nil {
		// In a report, Last is the usage of the latest request. In p.usage, Last is the total before the turn.
		p.usage = &tokenUsage{Last: u.Total.minus(u.Last)}
	}
	p.usage.Total = u.Total
	p.usage.fill = cli.Fill{Used: u.Last.Sum, Limit: u.Window}
}

func (u liveUsage) minus(v liveUsage) liveUsage {
	return liveUsage{u.Input - v.Input, u.Cached - v.Cached, u.CacheNew - v.CacheNew, u.Output - v.Output, u.Reasoning - v.Reasoning, u.Sum - v.Sum}
}

func (p *liveParser) used() cli.Usage {
	if p.usage == nil {
		return cli.Usage{}
	}
	u := p.usage.Total.minus(p.usage.Last)
	return cli.Usage{
		Input: max(u.Input-u.Cached, 0), Output: max(u.Output, 0), CacheRead: max(u.Cached, 0),
		CacheWrite: max(u.CacheNew, 0), Reasoning: max(u.Reasoning, 0),
	}
}

// fill returns how full the thread's context is.
func (p *liveParser) fill() cli.Fill {
	if p.usage == nil {
		return cli.Fill{}
	}
	return p.usage.fill
}

// trouble handles a failed request to the model. It ends the turn if a retry would be useless. If the request failed
// before a restart of ductor, trouble does not end the turn, because a later retry may have succeeded.
func (p *liveParser) trouble(n *notice) {
	if n.Error == nil {
		return
	}
	f := n.Error.failure()
	if !n.WillRetry {
		p.verdict.failure = f
		return
	}
	p.messages.torn = p.messages.streaming
	past := p.out.Replaying()
	final := isPermanent(f.Kind) || f.Kind == cli.Refused || f.Kind == cli.ModelRefused || f.Kind == cli.AnswerCut
	if final && !past {
		p.verdict.hopeless = f
		return
	}
	if p.network.down(n.Error.Message+n.Error.Details) && !past {
		p.verdict.hopeless = f
		f.Kind = cli.NetworkDown
		return
	}
	p.out.Pass(cli.Status{Kind: cli.StatusRetrying, Detail: f.Reason})
}

// result returns the Result of a turn that Codex has ended.
func (p *liveParser) result() cli.Result { return p.verdict.result(p.limit.ends) }

// denied records a request that ductor denied. The turn's result lists these requests.
func (p *liveParser) denied(a cli.ApprovalAsked, reason string) {
	p.denials = append(p.denials, cli.Denial{Tool: a.Tool, Title: a.Title, Reason: reason})
}
