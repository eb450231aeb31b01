package claude

import (
	"encoding/json"
	"strings"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// parser turns the lines of one turn into events. It does no I/O: line returns what has to be written back. Once line says
// that the turn is over, outcome holds the result to finish the emitter with.
type parser struct {
	listener
	flow
	// steers are the messages that were sent in mid-turn. Claude takes them up between two tools or, if there is no such
	// moment any more, after its result, with another result then.
	steers turn.Added

	em  *turn.Emitter
	mem *memory

	phase   phase
	outcome cli.Result

	decoder decoder
	denials []deniedCall
	trouble trouble
}

// listener is what a parser knows of the one who runs the turn. Each field may be empty.
type listener struct {
	// echo is the id of our prompt, which Claude repeats when it has taken the prompt up, though not before the first whole
	// piece of its answer. Until then a turn may be one that Claude began.
	echo    string
	onTaken func() // is called when Claude took the prompt up
	onFreed func() // is called when a turn of Claude's own ended before ours
	// approvals is what Claude asks the user; nil in a turn that no user attends.
	approvals *turn.Approvals[asked]
	// replied gets Claude's answers to our requests.
	replied func(*controlReply)
	// background gets the result of a turn that Claude began. Without it that is part of this turn.
	background func(cli.BackgroundResult)
	task       string       // what ended in the background before the result
	garbage    func([]byte) // gets lines that are no protocol
}

func newParser(em *turn.Emitter, mem *memory, dir string) *parser {
	content := flow{tools: tools{em: em, plan: &mem.plan, dir: dir, calls: map[cli.ToolID]toolCall{}}, status: status{out: em}}
	return &parser{em: em, mem: mem, flow: content}
}

// line takes one line of output. reply is a line to write back, nil for none. Lines after the end change nothing.
func (p *parser) line(raw []byte) (reply []byte, over bool) {
	if p.phase.over() {
		return nil, true
	}
	l, err := p.decoder.decode(raw)
	if err != nil {
		if p.garbage != nil {
			p.garbage(raw)
		}
		return nil, false
	}
	return p.take(l)
}

// take takes a line of a turn that is not over.
func (p *parser) take(l *line) (reply []byte, over bool) {
	if p.phase == awaited && begins(l) {
		p.phase = begun
	}
	reply = p.dispatch(l)
	return reply, p.phase.over()
}

// begins says whether a line is of a turn, as opposed to news between turns.
func begins(l *line) bool {
	return l.Type == "system" && l.Subtype == "init" || l.Type == "assistant" || l.Type == "stream_event"
}

func (p *parser) dispatch(l *line) (reply []byte) {
	p.mem.tasks.line(l)
	p.mem.measure(l)
	switch l.Type {
	case "system":
		p.system(l)
	case "stream_event":
		p.name(l)
		p.stream(l)
	case "assistant":
		p.name(l)
		if l.Error != "" && l.Parent == "" {
			p.trouble.apiError = l.Error
		}
		p.assistant(l)
	case "user":
		p.user(l)
	case "rate_limit_event":
		p.rateLimit(l.RateLimit)
	case "control_request":
		return p.control(l)
	case "control_cancel_request":
		p.approvals.Withdraw(func(a asked) bool { return a.id == l.RequestID })
	case "control_response":
		if l.Response != nil && p.replied != nil {
			p.replied(l.Response)
		}
	case "result":
		p.result(l)
	}
	return nil
}

// abandon ends the turn, though Claude goes on with it.
func (p *parser) abandon(outcome cli.Result) { p.phase, p.outcome = abandoned, outcome }

// echoed takes the sign that Claude took up a message.
func (p *parser) echoed(id string) {
	p.steers.Taken(id)
	if p.phase == taken || p.echo == "" || id != p.echo {
		return
	}
	p.phase = taken
	if p.onTaken != nil {
		p.onTaken()
	}
}

// name names the session from a line other than init, for streams that begin without one.
func (p *parser) name(l *line) {
	if p.em.Named() || l.SessionID == "" {
		return
	}
	model := lineModel(l)
	if model == "" {
		model = p.mem.model
	}
	p.em.Session(cli.AgentSessionID(l.SessionID), model)
}

// lineModel is the model a line speaks of: the one of its message, or the one a result used most.
func lineModel(l *line) cli.ModelID {
	if l.Message != nil && l.Message.Model != synthetic {
		return modelNamed(l.Message.Model)
	}
	var model string
	for name, used := range l.ModelUsage {
		if most := l.ModelUsage[model]; model == "" || used.Output > most.Output || used.Output == most.Output && name < model {
			model = name
		}
	}
	return modelNamed(model)
}

// modelNamed is a model without the mark of its context window, such as [1m]: Claude leaves it out in a session that is
// resumed, and in its messages.
func modelNamed(name string) cli.ModelID {
	name, _, _ = strings.Cut(name, "[")
	return cli.ModelID(name)
}

func (p *parser) system(l *line) {
	switch l.Subtype {
	case "init":
		p.trouble.keySource = l.APIKeySource
		p.mem.model = modelNamed(l.Model)
		p.em.Session(cli.AgentSessionID(l.SessionID), p.mem.model)
		if len(p.mem.tasks.list()) == 0 { // else the turn may be one that Claude began because a task ended
			p.em.Accepted()
		}
		p.warnServers(l.MCPServers)
	case "status":
		p.name(l)
		p.systemStatus(l)
	case "api_retry":
		p.name(l)
		p.retry(l)
	case "compact_boundary":
		p.compacted(l.Compact)
	case "model_fallback":
		p.em.Pass(cli.Status{Kind: cli.StatusWarning, Detail: oneLine(l.Content)})
	}
}

func (p *parser) systemStatus(l *line) {
	if l.Mode != "" {
		p.mem.mode = l.Mode
	}
	switch status := l.Status; {
	case status == nil:
		p.show(cli.StatusIdle, "")
	case *status == "requesting":
		p.show(cli.StatusWaiting, "")
	case *status == "compacting":
		p.show(cli.StatusCompacting, "")
	}
}

// retry shows that the API is asked again. Claude would try a log-in that is not accepted for minutes, so that ends the turn
// at once; an account that can refresh its log-in gets one try for that.
func (p *parser) retry(l *line) {
	p.trouble.network = l.ErrorStatus == nil
	refused := l.ErrorStatus != nil && *l.ErrorStatus == 401
	canRefresh := p.trouble.keySource == "none" || p.trouble.keySource == "oauth"
	if refused && (l.Attempt > 1 || !canRefresh) {
		p.abandon(cli.Result{Err: cli.Failf(cli.NotLoggedIn, agent, "the model's API did not accept the log-in (401)")})
		return
	}
	wait := time.Duration(l.RetryDelayMS * float64(time.Millisecond)).Round(time.Second)
	p.retrying(cli.Retry{Why: retryReason(l.ErrorStatus), Attempt: l.Attempt, Most: l.MaxRetries, In: wait})
}

// retryReason is why Claude asks its API again, by the status of the last answer; nil for none.
func retryReason(status *int) cli.FailureKind {
	if status == nil {
		return cli.NetworkDown
	}
	return cli.APIError{Status: *status}.Kind()
}

// warnServers names the servers that do not work. Claude waits before it begins without the tools of those that are pending: two seconds, and
// since 2.1.332 at the latest as long as MCP_TIMEOUT says.
func (p *parser) warnServers(servers []mcpServer) {
	for _, s := range servers {
		if what := map[string]string{"failed": "could not be started", "pending": "does not answer yet; its tools are missing until it does"}[s.Status]; what != "" && !p.mem.warned[s.Name] {
			p.mem.warned[s.Name] = true
			p.em.Pass(cli.Status{Kind: cli.StatusWarning, Detail: oneLine("MCP server " + s.Name + " " + what)})
		}
	}
}

func (p *parser) rateLimit(r *rateLimit) {
	if r == nil || r.Status != "allowed_warning" && r.Status != "rejected" {
		return
	}
	var reset time.Time
	if r.ResetsAt > 0 {
		reset = time.Unix(r.ResetsAt, 0)
	}
	if r.Status == "rejected" {
		p.trouble.resetAt = reset
	}
	p.em.Pass(cli.RateLimited{ResetAt: reset})
}

// user takes tool results. A replay of a message is only the sign that it was taken up.
func (p *parser) user(l *line) {
	if l.IsReplay {
		p.echoed(l.UUID)
		return
	}
	if l.RefusalRetry && l.RefusedID == p.id {
		p.open = true
	}
	if l.Message == nil {
		return
	}
	for _, b := range l.Message.blocks() {
		if b.Type == "tool_result" {
			p.approvals.Withdraw(func(a asked) bool { return a.call == cli.ToolID(b.ToolUseID) })
			p.tools.end(b, l.ToolResult)
		}
	}
}

// control takes a request of Claude's. What it asks becomes an event in a turn that a user attends, and is denied else,
// with a word on what to do instead. reply is nil for what is answered later.
func (p *parser) control(l *line) (reply []byte) {
	if l.Request == nil || l.RequestID == "" {
		return nil
	}
	if l.Request.Subtype != "can_use_tool" {
		return unsupportedLine(l.RequestID, l.Request.Subtype)
	}
	if p.approvals != nil {
		p.approvals.Add(p.pending(l.RequestID, l.Request))
		return nil
	}
	message, reason := denial(l.Request.Tool)
	id := cli.ToolID(l.Request.ToolUseID)
	if call, known := p.calls[id]; known {
		call.denied = true
		p.calls[id] = call
	}
	p.deny(id, l.Request.Tool, l.Request.Input, reason)
	return denyLine(l.RequestID, message)
}

type deniedCall struct {
	id cli.ToolID
	cli.Denial
}

// deny notes a call that was not allowed, once per call and process.
func (p *parser) deny(id cli.ToolID, tool string, input json.RawMessage, reason string) {
	if !p.mem.deny(callDigest(id)) && id != "" {
		return
	}
	p.denials = append(p.denials, deniedCall{id, cli.Denial{
		Tool: tool, Title: toolTitle(tool, input, p.dir), Reason: reason,
	}})
}

// told are the denials of this turn so far.
func (p *parser) told() []cli.Denial {
	var told []cli.Denial
	for _, d := range p.denials {
		told = append(told, d.Denial)
	}
	return told
}

// callDigest stands for the id of a call where a short word has to do.
func callDigest(id cli.ToolID) string { return cli.Digest(id)[:12] }

// result takes the line that ends a turn. It is not the end of ours when Claude began that turn, as it does when a
// background task is done, or while messages wait that the user sent in mid-turn.
func (p *parser) result(l *line) {
	if !l.IsError || l.NumTurns > 0 { // a session that could not be resumed has another's id here
		p.name(l)
	}
	r := p.outcomeOf(l)
	if !p.ours(l) {
		p.handOver(r)
		p.phase = awaited
		if p.onFreed != nil {
			p.onFreed()
		}
		return
	}
	p.task = p.mem.tasks.take()
	p.outcome = sum(p.outcome, r)
	switch {
	case l.cut():
		p.phase = interrupted
	case p.steers.End():
		p.phase = finished
	}
}

// ours says whether a result ends the turn we asked for: Claude names an origin for one that no user
// asked for, unless our message joined it on the way.
func (p *parser) ours(l *line) bool {
	if l.Origin == nil || l.Origin.Kind == "" || l.Origin.Kind == "human" {
		return true
	}
	return p.phase == taken
}

// handOver gives what a turn said that no user asked for to where it belongs, and takes it out of this one.
func (p *parser) handOver(r cli.Result) {
	if p.background == nil {
		return
	}
	r.Text = p.em.Answer()
	p.em.TakeBack()
	p.background(cli.BackgroundResult{Result: r, Task: p.mem.tasks.take()})
	p.denials = nil
}

func (p *parser) outcomeOf(l *line) cli.Result {
	if !l.IsError && l.Result != "" && p.em.Answer() == "" {
		p.em.Text("result", l.Result) // an answer that came as no message: structured output
	}
	for _, d := range l.Denials {
		id := cli.ToolID(d.ID)
		switch why := p.calls[id].err; why {
		case cli.ToolCutShort: // an interrupt ended it
		case cli.ToolDenied:
			p.deny(id, d.Tool, d.Input, "")
		default:
			p.deny(id, d.Tool, d.Input, why)
		}
	}
	r := cli.Result{Told: cli.Told{Turns: l.NumTurns}, Err: resultFailure(l.resultFields, l.Subtype, p.trouble)}
	r.CostUSD, r.ByModel = p.mem.spent(l.resultFields)
	r.Usage = totalUsage(r.ByModel, l.Usage)
	r.Denials, r.Fill = p.told(), p.mem.fill
	return r
}
