package copilot

import (
	"slices"
	"strings"

	"ductor/cli"
	"ductor/cli/turn"
)

// phase is the progress of a turn, as Copilot's events show it.
type phase string

const (
	awaited     phase = "awaited" // the turn has not started; events may belong to the previous turn
	begun       phase = "begun"
	interrupted phase = "interrupted"
	ended       phase = "ended" // the answer has ended; a message that a user adds now would continue the turn
)

// parser converts Copilot's events in one turn to events of package cli, in both modes. Only one goroutine at a time
// may use it.
type parser struct {
	out  *turn.Emitter
	dir  string
	asks *asks // nil in one-shot mode

	session cli.SessionStarted
	phase   phase
	known   cli.Result // the failure, usage and denials of the turn so far
	message string     // ID of the message that is streaming
	finish  string     // Copilot's finishReason for the last text
	thought bool       // whether reasoning was emitted since the last request to the model
	waiting waiting
	tools   map[string]cli.ToolStarted // started tools by call ID; the end of a tool does not repeat this data
	added   turn.Added                 // messages that users added to the turn
}

func newParser(out *turn.Emitter, req cli.Request) *parser {
	phase := awaited
	if req.Task == cli.TaskCompact { // Copilot sends no user.message for a compaction
		phase = begun
	}
	return &parser{
		out: out, dir: req.Dir, session: cli.SessionStarted{Model: req.Model}, phase: phase, waiting: waiting{out: out},
		tools: map[string]cli.ToolStarted{},
	}
}

// name emits the ID and the model of the session, if they are known.
func (p *parser) name() { p.out.Session(p.session.AgentSessionID, p.session.Model) }

// eventType describes how the parser handles events of one type.
type eventType struct {
	take   func(p *parser, f fields)
	always bool // handle the event even before the turn has started
	nested bool // handle events of sub-agents, too; the tools of a sub-agent become children of another tool
}

// eventTypes contains the event types that the parser handles. Copilot has 130 types and adds more. The parser does not
// decode the data of other types.
var eventTypes = map[string]eventType{
	"session.start":                     {take: func(p *parser, f fields) { p.answeredBy(f.SelectedModel) }, always: true},
	"session.resume":                    {take: func(p *parser, f fields) { p.answeredBy(f.SelectedModel) }, always: true},
	"session.model_change":              {take: func(p *parser, f fields) { p.answeredBy(f.NewModel) }, always: true},
	"session.compaction_start":          {take: func(p *parser, _ fields) { p.waiting.show(cli.StatusCompacting, "") }},
	"session.compaction_complete":       {take: (*parser).compacted},
	"session.usage_info":                {take: (*parser).measure, always: true},
	"session.mcp_server_status_changed": {take: func(p *parser, f fields) { p.waiting.server(f) }, always: true},
	"session.warning": {take: func(p *parser, f fields) {
		p.out.Pass(cli.Status{Kind: cli.StatusWarning, Detail: cli.ShortLine(f.Message)})
	}},
	"session.error": {take: func(p *parser, f fields) { p.known.Err = errorFailure(f) }, always: true},
	"session.idle":  {take: (*parser).idle, always: true},
	"abort":         {take: func(p *parser, _ fields) { p.phase = interrupted }},

	"user.message":              {take: (*parser).begin, always: true},
	"assistant.turn_start":      {take: func(p *parser, _ fields) { p.thought = false }},
	"assistant.turn_retry":      {take: (*parser).retry},
	"model.call_failure":        {take: (*parser).broke},
	"assistant.message_start":   {take: func(p *parser, f fields) { p.message = f.MessageID }},
	"assistant.message_delta":   {take: (*parser).delta},
	"assistant.message":         {take: (*parser).whole},
	"assistant.reasoning_delta": {take: (*parser).thinking},
	"assistant.reasoning":       {take: func(p *parser, f fields) { p.think(f.Content) }},
	"assistant.usage":           {take: (*parser).count, nested: true},
	"tool.execution_start":      {take: (*parser).toolStart, nested: true},
	"tool.execution_complete":   {take: (*parser).toolEnd, nested: true},

	permissionRequested:        {take: asking((*asks).permission), always: true, nested: true},
	"permission.completed":     {take: asking((*asks).permissionDone), always: true, nested: true},
	"user_input.requested":     {take: asking((*asks).announce), always: true, nested: true},
	"user_input.completed":     {take: asking((*asks).inputDone), always: true, nested: true},
	"exit_plan_mode.completed": {take: asking((*asks).planDone), always: true, nested: true},
}

// permissionRequested is the type of the event by which Copilot asks to use a tool.
const permissionRequested = "permission.requested"

func asking(take func(*asks, *parser, fields)) func(*parser, fields) {
	return func(p *parser, f fields) {
		if p.asks != nil {
			take(p.asks, p, f)
		}
	}
}

// event handles one event and updates p.phase.
func (p *parser) event(e event) error {
	if e.Type == "result" {
		p.result(e)
		return nil
	}
	t, known := eventTypes[e.Type]
	if !known || p.phase == awaited && !t.always || e.AgentID != "" && !t.nested {
		return nil
	}
	f, err := e.fields()
	if err == nil {
		if e.AgentID == "" && f.Finish != "" {
			p.finish = f.Finish
		}
		t.take(p, f)
	}
	return err
}

func (p *parser) begin(f fields) {
	p.phase = begun
	p.out.Accepted()
	p.added.Read(f.MessageID)
}

// idle ends the turn. If the turn has not started yet, the event belongs to an earlier turn, so idle ignores it.
func (p *parser) idle(fields) {
	if p.phase != awaited || p.known.Err != nil {
		p.end()
	}
}

func (p *parser) end() {
	if p.phase == interrupted && p.known.Err == nil {
		p.known.Err = cli.Failf(cli.UnknownFailure, Agent, "the turn was interrupted")
	}
	p.phase = ended
}

func (p *parser) retry(f fields) {
	p.out.GiveUp(p.message)
	p.retrying(f.Reason)
}

// broke handles a failed request to the model. Copilot will pause and retry, but reports this only after the pause.
func (p *parser) broke(f fields) {
	reason := ""
	switch {
	case f.Failed == "transport":
		reason = "streaming_error"
	case f.StatusCode == 429:
		reason = "rate_limit"
	case f.StatusCode > 0 && f.StatusCode < 500:
		return
	}
	p.out.GiveUp(p.message)
	p.retrying(reason)
}

func (p *parser) delta(f fields) {
	p.message = f.MessageID
	if p.out.Text(f.MessageID, f.Delta) {
		p.waiting.end()
	}
}

func (p *parser) thinking(f fields) {
	p.waiting.end()
	p.thought = true
	p.out.Thinking(f.Delta)
}

func (p *parser) compacted(f fields) {
	p.waiting.end()
	if !f.Success {
		return
	}
	p.out.Pass(cli.CompactBoundary{PreTokens: f.PreTokens})
	if f.PostTokens > 0 {
		p.known.Fill.Used = int64(f.PostTokens)
	}
}

// measure records how many tokens the context contains.
func (p *parser) measure(f fields) {
	p.known.Fill = cli.Fill{Used: f.CurrentTokens, Limit: f.TokenLimit, Parts: []cli.FillPart{
		{Name: "System prompt", Tokens: f.SystemTokens}, {Name: "Tools", Tokens: f.ToolTokens}, {Name: "Messages", Tokens: f.SaidTokens},
	}}
}

// whole handles a complete message. It replaces the streamed text by the text of the message.
func (p *parser) whole(f fields) {
	p.waiting.end()
	p.answeredBy(f.Model)
	p.think(f.ReasoningText)
	p.out.FullText(f.MessageID, f.Content)
	p.message = "" // the message is complete, so a later failure must not retract it
}

func (p *parser) think(text string) {
	if !p.thought && text != "" {
		p.thought = true
		p.out.Thinking(text)
	}
}

func (p *parser) answeredBy(model string) {
	if model == "" {
		return
	}
	p.session.Model = cli.ModelID(model)
	p.name()
}

// waiting is the status that users see while Copilot prints no text.
type waiting struct {
	out     *turn.Emitter
	shown   bool
	servers []string // MCP servers that are starting; Copilot waits up to a minute for them
}

func (w *waiting) show(kind cli.StatusKind, detail string) {
	w.shown = true
	w.out.Pass(cli.Status{Kind: kind, Detail: detail})
}

// end emits StatusIdle if users still see an earlier status.
func (w *waiting) end() {
	if w.shown {
		w.shown = false
		w.out.Pass(cli.Status{Kind: cli.StatusIdle})
	}
}

// server handles a changed status of an MCP server.
func (w *waiting) server(f fields) {
	w.servers = slices.DeleteFunc(w.servers, func(name string) bool { return name == f.Server })
	switch string(f.Status) {
	case `"pending"`:
		w.servers = append(w.servers, f.Server)
	case `"failed"`:
		warning := cli.ShortLine("MCP server " + f.Server + " could not be started")
		w.out.Pass(cli.Status{Kind: cli.StatusWarning, Detail: warning})
	}
	if len(w.servers) == 0 {
		w.end()
		return
	}
	w.show(cli.StatusStarting, cli.ShortLine("waiting for MCP server "+strings.Join(w.servers, ", ")))
}

func (p *parser) toolStart(f fields) {
	if f.ToolCallID == "" {
		return
	}
	p.waiting.end()
	if t := toolStarted(f, p.dir); t.Name == toolTodo || p.out.ToolStart(t) {
		p.tools[f.ToolCallID] = t
	}
}

func (p *parser) toolEnd(f fields) {
	e, failed := toolEnded(f)
	if t := p.tools[f.ToolCallID]; failed.Code == deniedCode {
		p.known.Denials = append(p.known.Denials, cli.Denial{Tool: t.Name, Title: t.Title, Reason: denialReason(failed.Message)})
	}
	if t := p.tools[f.ToolCallID]; t.Name == toolTodo && e.Err == "" {
		p.out.Pass(planOf(t.Input))
	}
	for _, c := range changes(f, p.dir) {
		p.out.Pass(c)
	}
	if e.Err == "" && e.ExitCode == nil && isShell(p.tools[f.ToolCallID].Name) && goesOn().MatchString(e.Output) {
		e.Err = cli.ToolGoesOn
	}
	p.out.ToolEnd(e)
}

// denialReason returns why a tool was denied: the user's reason, or Copilot's. It returns "" for a text that ductor
// wrote for the model.
func denialReason(message string) string {
	if _, said, ok := strings.Cut(message, "User feedback: "); ok {
		message = said
	}
	switch {
	case message == notAllowed, strings.HasPrefix(message, "The user rejected this tool call"):
		return ""
	case strings.HasPrefix(message, "Permission denied because no interactive user"):
		return "no user could be asked"
	}
	return cli.ShortLine(message)
}

// deniedCode is the error code of a denied tool call.
const deniedCode = "denied"

func (p *parser) count(f fields) {
	u := cli.Usage{
		Input: max(f.InputTokens-f.CacheReadTokens, 0), Output: f.OutputTokens,
		CacheRead: f.CacheReadTokens, CacheWrite: f.CacheWriteTokens, Reasoning: f.ReasoningTokens,
	}
	p.known.Consumed.Turns++
	p.known.Consumed.Usage = p.known.Consumed.Usage.Add(u)
	p.known.Consumed.AddModel(cli.ModelID(f.Model), u)
}

// result handles the result line, which a process in one-shot mode prints last.
func (p *parser) result(e event) {
	p.end()
	if e.SessionID != "" {
		p.session.AgentSessionID = cli.AgentSessionID(e.SessionID)
		p.name()
	}
	if e.ExitCode != nil && *e.ExitCode != 0 && p.known.Err == nil {
		p.known.Err = cli.Failf(cli.UnknownFailure, Agent, "it ended with exit code %d", *e.ExitCode)
	}
}

// outcome returns the result of the turn. A turn that Copilot completed has succeeded, even if its process was stopped
// later. If Copilot did not report the end of the turn, outcome returns the result of fallback.
func (p *parser) outcome(end turn.End, fallback func() cli.Result) cli.Result {
	r := p.known
	completed := p.phase == ended && r.Err == nil && end != turn.EndDetached
	if completed {
		r.Err = stopped(p.finish)
	}
	if completed || r.Err != nil && (end == turn.EndTurn || end == turn.EndExit) {
		return r
	}
	o := fallback()
	r.Err, r.Aborted, r.Detached = o.Err, o.Aborted, o.Detached
	if end == turn.EndExit {
		r.Err = exitFailure(r.Err)
	}
	return r
}

// retrying emits that Copilot repeats a request to the model, with the reason.
func (p *parser) retrying(reason string) {
	p.waiting.shown = true
	p.out.Pass(cli.Status{Kind: cli.StatusRetrying, Retry: cli.Retry{Why: cli.APIError{Name: reason}.Kind()}})
}
