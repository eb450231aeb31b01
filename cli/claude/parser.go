package claude

import (
	"encoding/json"
	"strings"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// parser converts the output lines of one turn to events. It does no I/O: the method line returns the replies that the
// caller must write. After the end of the turn, the field outcome contains the turn's result.
type parser struct {
	observer observer
	// echo is the ID of the prompt. Claude prints this ID after it has accepted the prompt, at the earliest with the
	// first complete block of its answer. Earlier output may belong to a turn that Claude started itself.
	echo string
	// approvals contains Claude's open requests to the user. It is nil if no user can answer.
	approvals *turn.Approvals[asked]
	// steers are the messages that users added to the running turn. Claude reads them between two tools, or after its
	// result if no tool follows. In the second case, Claude prints another result.
	steers turn.Added

	flow flow
	mem  *memory

	phase   phase
	outcome cli.Result
	task    string // summaries of the background tasks that have ended, in one line

	decoder decoder
	denials []deniedCall
	trouble trouble
}

// observer contains the parser's callbacks. newParser replaces callbacks that are nil by empty functions, except
// background.
type observer struct {
	taken   func()              // called after Claude has accepted the prompt
	freed   func()              // called at the end of a turn that Claude started itself; ductor's turn can then start
	replied func(*controlReply) // receives Claude's answers to ductor's requests
	garbage func([]byte)        // receives lines that are not part of the protocol
	// background receives the result of a turn that Claude started itself. If it is nil, such a turn counts as a part
	// of ductor's turn.
	background func(cli.BackgroundResult)
}

func newParser(em *turn.Emitter, mem *memory, dir string) *parser {
	content := flow{tools: tools{em: em, plan: &mem.plan, dir: dir, calls: map[cli.ToolID]toolCall{}}, status: status{out: em}}
	silent := observer{taken: func() {}, freed: func() {}, replied: func(*controlReply) {}, garbage: func([]byte) {}}
	return &parser{observer: silent, mem: mem, flow: content}
}

// line handles one line of output. It returns the line to write as a reply, or nil. After the end of the turn, it
// ignores all lines.
func (p *parser) line(raw []byte) (reply []byte, over bool) {
	if p.phase.over() {
		return nil, true
	}
	l, err := p.decoder.decode(raw)
	if err != nil {
		p.observer.garbage(raw)
		return nil, false
	}
	return p.take(l)
}

// take handles a decoded line, before the end of the turn.
func (p *parser) take(l *line) (reply []byte, over bool) {
	if p.phase == awaited && begins(l) {
		p.phase = begun
	}
	reply = p.dispatch(l)
	return reply, p.phase.over()
}

// begins reports whether a line shows that a turn is running. Claude prints lines of other kinds between turns, too.
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
		p.flow.stream(l)
	case "assistant":
		p.name(l)
		if l.Error != "" && l.Parent == "" {
			p.trouble.apiError = l.Error
		}
		p.flow.assistant(l)
	case "user":
		p.user(l)
	case "rate_limit_event":
		p.rateLimit(l.RateLimit)
	case "control_request":
		return p.control(l)
	case "control_cancel_request":
		p.approvals.Withdraw(func(a asked) bool { return a.id == l.RequestID })
	case "control_response":
		if l.Response != nil {
			p.observer.replied(l.Response)
		}
	case "result":
		p.result(l)
	}
	return nil
}

// abandon ends ductor's turn with the given outcome, although Claude continues to work.
func (p *parser) abandon(outcome cli.Result) { p.phase, p.outcome = abandoned, outcome }

// echoed handles Claude's confirmation that it has accepted the message with this ID.
func (p *parser) echoed(id string) {
	p.steers.Read(id)
	if p.phase == accepted || p.echo == "" || id != p.echo {
		return
	}
	p.phase = accepted
	p.observer.taken()
}

// name emits the session's ID, unless an earlier line contained the ID.
func (p *parser) name(l *line) {
	if p.flow.em.Named() || l.SessionID == "" {
		return
	}
	model := lineModel(l)
	if model == "" {
		model = p.mem.model
	}
	p.flow.em.Session(cli.AgentSessionID(l.SessionID), model)
}

// lineModel returns the model that a line names. For a result line, it returns the model that produced most output.
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

// modelNamed removes the suffix for the size of the context window, such as [1m], from a model's name. Claude omits the
// suffix in a resumed session and in its messages.
func modelNamed(name string) cli.ModelID {
	name, _, _ = strings.Cut(name, "[")
	return cli.ModelID(name)
}

func (p *parser) system(l *line) {
	switch l.Subtype {
	case "init":
		p.trouble.keySource = l.APIKeySource
		p.mem.model = modelNamed(l.Model)
		p.flow.em.Session(cli.AgentSessionID(l.SessionID), p.mem.model)
		if len(p.mem.tasks.list()) == 0 { // if a task is open, Claude may have started this turn itself
			p.flow.em.Accepted()
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
		p.flow.em.Pass(cli.Status{Kind: cli.StatusWarning, Detail: oneLine(l.Content)})
	}
}

func (p *parser) systemStatus(l *line) {
	if l.Mode != "" {
		p.mem.mode = l.Mode
	}
	switch status := l.Status; {
	case status == nil:
		p.flow.show(cli.StatusIdle, "")
	case *status == "requesting":
		p.flow.show(cli.StatusWaiting, "")
	case *status == "compacting":
		p.flow.show(cli.StatusCompacting, "")
	}
}

// retry handles a line in which Claude reports that it repeats a request to its API. If the API has rejected the
// log-in, Claude would repeat the request for minutes, so retry ends the turn. If Claude can refresh the log-in, retry
// ends the turn only after the second attempt.
//
// If Claude printed the line before a restart of ductor, retry does not end the turn, because a later attempt may have
// succeeded.
func (p *parser) retry(l *line) {
	p.trouble.network = l.ErrorStatus == nil
	refused := l.ErrorStatus != nil && *l.ErrorStatus == 401
	canRefresh := p.trouble.keySource == "none" || p.trouble.keySource == "oauth"
	if refused && !p.flow.em.Replaying() && (l.Attempt > 1 || !canRefresh) {
		p.abandon(cli.Result{Err: cli.Failf(cli.NotLoggedIn, agent, "the model's API did not accept the log-in (401)")})
		return
	}
	wait := time.Duration(l.RetryDelayMS * float64(time.Millisecond)).Round(time.Second)
	p.flow.retrying(cli.Retry{Why: retryReason(l.ErrorStatus), Attempt: l.Attempt, Most: l.MaxRetries, In: wait})
}

// retryReason returns the reason why Claude repeats a request, or "" if it is unknown. status is the HTTP status of the
// last response, or nil if there was no response.
func retryReason(status *int) cli.FailureKind {
	if status == nil {
		return cli.NetworkDown
	}
	return cli.APIError{Status: *status}.Kind()
}

// warnServers warns about MCP servers that do not work. Claude waits two seconds for servers that are still starting
// (since 2.1.332, at most for the time in MCP_TIMEOUT) and then continues without their tools.
func (p *parser) warnServers(servers []mcpServer) {
	for _, s := range servers {
		if what := map[string]string{"failed": "could not be started", "pending": "does not answer yet; its tools are missing until it does"}[s.Status]; what != "" && !p.mem.warned[s.Name] {
			p.mem.warned[s.Name] = true
			p.flow.em.Pass(cli.Status{Kind: cli.StatusWarning, Detail: oneLine("MCP server " + s.Name + " " + what)})
		}
	}
}

// user handles a line of type "user". It contains results of tools, or confirms that Claude has accepted a message.
func (p *parser) user(l *line) {
	if l.IsReplay {
		p.echoed(l.UUID)
		return
	}
	if l.RefusalRetry && l.RefusedID == p.flow.id {
		p.flow.open = true
	}
	if l.Message == nil {
		return
	}
	for _, b := range l.Message.blocks() {
		if b.Type == "tool_result" {
			p.approvals.Withdraw(func(a asked) bool { return a.call == cli.ToolID(b.ToolUseID) })
			p.flow.tools.end(b, l.ToolResult)
		}
	}
}

// control handles a request of Claude. If a user can answer, the request becomes an event, and control returns nil.
// Otherwise ductor denies the request, and tells the model how to proceed.
func (p *parser) control(l *line) (reply []byte) {
	if l.Request == nil || l.RequestID == "" {
		return nil
	}
	if l.Request.Subtype != "can_use_tool" {
		return unsupportedLine(l.RequestID, l.Request.Subtype)
	}
	if p.approvals != nil {
		p.approvals.Add(p.flow.pending(l.RequestID, l.Request))
		return nil
	}
	message, reason := denial(l.Request.Tool)
	id := cli.ToolID(l.Request.ToolUseID)
	if call, known := p.flow.calls[id]; known {
		call.denied = true
		p.flow.calls[id] = call
	}
	p.deny(id, l.Request.Tool, l.Request.Input, reason)
	return denyLine(l.RequestID, message)
}

type deniedCall struct {
	id cli.ToolID
	cli.Denial
}

// deny records a denied tool call for the turn's result. It records each call of a process only once.
func (p *parser) deny(id cli.ToolID, tool string, input json.RawMessage, reason string) {
	if !p.mem.deny(callDigest(id)) && id != "" {
		return
	}
	p.denials = append(p.denials, deniedCall{id, cli.Denial{
		Tool: tool, Title: toolTitle(tool, input, p.flow.dir), Reason: reason,
	}})
}

func (p *parser) turnDenials() []cli.Denial {
	var told []cli.Denial
	for _, d := range p.denials {
		told = append(told, d.Denial)
	}
	return told
}

func callDigest(id cli.ToolID) string { return cli.Digest(id)[:12] }

// result handles a result line. The line does not end ductor's turn if it belongs to a turn that Claude started itself,
// or if Claude has not read all messages that were added to the turn.
func (p *parser) result(l *line) {
	// If Claude could not resume the session, it prints an error without turns. The session ID in that line is wrong.
	if !l.IsError || l.NumTurns > 0 {
		p.name(l)
	}
	r := p.outcomeOf(l)
	if !p.ours(l) {
		p.handOver(r)
		p.phase = awaited
		p.observer.freed()
		return
	}
	p.task = p.mem.tasks.takeSummaries()
	p.outcome = sum(p.outcome, r)
	switch {
	case l.wasInterrupted():
		p.phase = interrupted
	case p.steers.End():
		p.phase = finished
	}
}

// ours reports whether a result line ends the turn that ductor started. If a prompt started Claude's turn, the field
// origin of the line is missing, or its kind is empty or "human". Other kinds mean that Claude started the turn itself.
// Such a line also ends ductor's turn if Claude accepted ductor's prompt meanwhile.
func (p *parser) ours(l *line) bool {
	if l.Origin == nil || l.Origin.Kind == "" || l.Origin.Kind == "human" {
		return true
	}
	return p.phase == accepted
}

// handOver calls the background callback with the output of a turn that Claude started itself. It removes this output
// from ductor's turn.
func (p *parser) handOver(r cli.Result) {
	if p.observer.background == nil {
		return
	}
	text := p.flow.em.Answer()
	p.flow.em.TakeBack()
	p.observer.background(cli.BackgroundResult{
		Text: text, Model: r.Model, Consumed: r.Consumed, Task: p.mem.tasks.takeSummaries(),
	})
	p.denials = nil
}

func (p *parser) outcomeOf(l *line) cli.Result {
	if !l.IsError && l.Result != "" && p.flow.em.Answer() == "" {
		p.flow.em.Text("result", l.Result) // Claude sends structured output only in the result line
	}
	for _, d := range l.Denials {
		id := cli.ToolID(d.ID)
		switch why := p.flow.calls[id].err; why {
		case cli.ToolCutShort:
		case cli.ToolDenied:
			p.deny(id, d.Tool, d.Input, "")
		default:
			p.deny(id, d.Tool, d.Input, why)
		}
	}
	r := cli.Result{Err: resultFailure(l.resultFields, l.Subtype, p.trouble)}
	if r.Err == nil && !p.flow.em.Named() {
		r.Err = turn.Unnamed(agent)
	}
	r.Consumed = p.mem.spent(l.resultFields)
	r.Denials, r.Fill = p.turnDenials(), p.mem.fill
	return r
}
