package copilot

import (
	"slices"
	"strings"

	"ductor/cli"
	"ductor/cli/turn"
)

// phase is how far a turn is, by Copilot's own word.
type phase string

// The phases of a turn.
const (
	awaited     phase = "awaited" // events so far are of the turn before
	begun       phase = "begun"
	interrupted phase = "interrupted"
	ended       phase = "ended" // a message that arrives too late for it begins it again
)

// parser turns the events of one turn into ours, in both modes. One goroutine at a time.
type parser struct {
	out  *turn.Emitter
	dir  string
	asks *asks // nil where no user can be asked

	session cli.SessionStarted
	phase   phase
	known   cli.Result // its failure, usage and denials, as far as they are known
	message string     // the id of the one that is written
	finish  string     // why the model ended what it said last
	thought bool       // reasoning was streamed since the model was asked
	waitingFor
	tools map[string]cli.ToolStarted // by call, for what their ends do not tell
	seen  map[string]bool            // messages of the user that reached the model's conversation
}

func newParser(out *turn.Emitter, req cli.Request) *parser {
	phase := awaited
	if req.Task == cli.TaskCompact { // no message begins it
		phase = begun
	}
	return &parser{
		out: out, dir: req.Dir, session: cli.SessionStarted{Model: req.Model}, phase: phase,
		tools: map[string]cli.ToolStarted{}, seen: map[string]bool{},
	}
}

// waitingFor is what the turn is told to wait for.
type waitingFor struct {
	waiting bool     // a status is shown that is over with the next word
	servers []string // MCP servers that start, for which Copilot waits a minute
}

// name tells the session, as far as it is known.
func (p *parser) name() { p.out.Session(p.session.AgentSessionID, p.session.Model) }

// eventType says how an event is taken.
type eventType struct {
	take   func(p *parser, f fields)
	always bool // before the turn has begun, too
	nested bool // from a sub-agent, too: its tools are shown below the one that started it
}

// eventTypes are those that mean something here. There are 130, and more will come: nothing looks into the others.
var eventTypes = map[string]eventType{
	"session.start":                     {take: func(p *parser, f fields) { p.answeredBy(f.SelectedModel) }, always: true},
	"session.resume":                    {take: func(p *parser, f fields) { p.answeredBy(f.SelectedModel) }, always: true},
	"session.model_change":              {take: func(p *parser, f fields) { p.answeredBy(f.NewModel) }, always: true},
	"session.compaction_start":          {take: func(p *parser, _ fields) { p.status(cli.StatusCompacting, "") }},
	"session.compaction_complete":       {take: (*parser).compacted},
	"session.usage_info":                {take: (*parser).measure, always: true},
	"session.mcp_server_status_changed": {take: (*parser).serverStarts, always: true},
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

// permissionRequested is the type of the event by which Copilot asks for leave to use a tool.
const permissionRequested = "permission.requested"

func asking(take func(*asks, *parser, fields)) func(*parser, fields) {
	return func(p *parser, f fields) {
		if p.asks != nil {
			take(p.asks, p, f)
		}
	}
}

// event takes one event. The turn is over if it has ended then.
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
	p.seen[f.MessageID] = true
}

// idle ends the turn. One of a turn before may come late: it is no end of ours.
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

// broke takes a request to the model that failed. What may help is tried again after a pause, which retry tells of only when
// it is over.
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
		p.resume()
	}
}

func (p *parser) thinking(f fields) {
	p.resume()
	p.thought = true
	p.out.Thinking(f.Delta)
}

func (p *parser) compacted(f fields) {
	p.resume()
	if !f.Success {
		return
	}
	p.out.Pass(cli.CompactBoundary{PreTokens: f.PreTokens})
	if f.PostTokens > 0 {
		p.known.Fill.Used = int64(f.PostTokens)
	}
}

// measure takes how full the context is.
func (p *parser) measure(f fields) {
	p.known.Fill = cli.Fill{Used: f.CurrentTokens, Limit: f.TokenLimit, Parts: []cli.FillPart{
		{Name: "System prompt", Tokens: f.SystemTokens}, {Name: "Tools", Tokens: f.ToolTokens}, {Name: "Messages", Tokens: f.SaidTokens},
	}}
}

// whole takes a message that is complete. It overwrites what was streamed of it.
func (p *parser) whole(f fields) {
	p.resume()
	p.answeredBy(f.Model)
	p.think(f.ReasoningText)
	p.out.FullText(f.MessageID, f.Content)
	p.message = "" // it has ended: what fails from here on takes nothing of it back
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

func (p *parser) status(kind cli.StatusKind, detail string) {
	p.waiting = true
	p.out.Pass(cli.Status{Kind: kind, Detail: detail})
}

// serverStarts takes how far an MCP server is.
func (p *parser) serverStarts(f fields) {
	p.servers = slices.DeleteFunc(p.servers, func(name string) bool { return name == f.Server })
	switch string(f.Status) {
	case `"pending"`:
		p.servers = append(p.servers, f.Server)
	case `"failed"`:
		p.out.Pass(cli.Status{Kind: cli.StatusWarning, Detail: cli.ShortLine("MCP server " + f.Server + " could not be started")})
	}
	if len(p.servers) == 0 {
		p.resume()
		return
	}
	p.status(cli.StatusStarting, cli.ShortLine("waiting for MCP server "+strings.Join(p.servers, ", ")))
}

// resume ends a status.
func (p *parser) resume() {
	if p.waiting {
		p.waiting = false
		p.out.Pass(cli.Status{Kind: cli.StatusIdle})
	}
}

func (p *parser) toolStart(f fields) {
	if _, known := p.tools[f.ToolCallID]; known || f.ToolCallID == "" {
		return
	}
	p.resume()
	t := toolStarted(f, p.dir)
	p.tools[f.ToolCallID] = t
	if t.Name == toolTodo {
		return
	}
	p.out.ToolStart(t)
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

// denialReason is why a tool was not allowed: what the user said, or Copilot's rules. What ductor tells the model is no reason.
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

// deniedCode is the code of a tool's error when it was not allowed.
const deniedCode = "denied"

func (p *parser) count(f fields) {
	u := cli.Usage{
		Input: max(f.InputTokens-f.CacheReadTokens, 0), Output: f.OutputTokens,
		CacheRead: f.CacheReadTokens, CacheWrite: f.CacheWriteTokens, Reasoning: f.ReasoningTokens,
	}
	p.known.Turns++
	p.known.Usage = p.known.Usage.Add(u)
	if p.known.ByModel == nil {
		p.known.ByModel = map[cli.ModelID]cli.Usage{}
	}
	id := cli.ModelID(f.Model)
	p.known.ByModel[id] = p.known.ByModel[id].Add(u)
}

// result takes the last line of a one-shot run.
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

// outcome is how a turn ended, with what is known besides. What Copilot itself completed went well, however the turn was
// ended since; otherwise gives the Result of a turn of which Copilot did not say how it ended.
func (p *parser) outcome(end turn.End, otherwise func() cli.Result) cli.Result {
	r := p.known
	completed := p.phase == ended && r.Err == nil && end != turn.EndDetached
	if completed {
		r.Err = stopped(p.finish)
	}
	if completed || r.Err != nil && (end == turn.EndTurn || end == turn.EndExit) {
		return r
	}
	o := otherwise()
	r.Err, r.Aborted, r.Detached = o.Err, o.Aborted, o.Detached
	if end == turn.EndExit {
		r.Err = exitFailure(r.Err)
	}
	return r
}

// retrying says why the model is asked again.
func (p *parser) retrying(reason string) {
	p.waiting = true
	p.out.Pass(cli.Status{Kind: cli.StatusRetrying, Retry: cli.Retry{Why: cli.APIError{Name: reason}.Kind()}})
}
