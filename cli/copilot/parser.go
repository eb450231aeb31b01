package copilot

import (
	"ductor/cli"
	"ductor/cli/turn"
)

// parser turns the events of one turn into ours, in both modes. One goroutine at a time.
type parser struct {
	out  *turn.Emitter
	dir  string
	asks *asks // nil where no user can be asked

	id      cli.AgentSessionID
	model   cli.ModelID
	begun   bool // events are of this turn
	message string
	thought bool                       // reasoning was streamed since the model was asked
	waiting bool                       // a status is shown that is over with the next word
	tools   map[string]cli.ToolStarted // by call, for what their ends do not tell

	calls   int
	usage   cli.Usage
	byModel map[cli.ModelID]cli.Usage
	denials []cli.Denial
	failure *cli.Failure
	aborted bool
	ended   bool
	seen    map[string]bool // messages of the user that reached the model's conversation
}

func newParser(out *turn.Emitter, req cli.Request) *parser {
	return &parser{out: out, dir: req.Dir, model: req.Model, tools: map[string]cli.ToolStarted{}, byModel: map[cli.ModelID]cli.Usage{}, seen: map[string]bool{}}
}

// name tells the session, as far as it is known.
func (p *parser) name() { p.out.Session(p.id, p.model) }

// event takes one event and says whether it ended the turn.
func (p *parser) event(e event) (end bool, err error) {
	if !known(e.Type) {
		return false, nil
	}
	f, err := e.fields()
	if err != nil {
		return false, err
	}
	if e.AgentID != "" {
		p.subagent(e, f)
		return false, nil
	}
	switch e.Type {
	case evSessionStart, evSessionResume:
		p.answeredBy(f.SelectedModel)
	case evModelChange:
		p.answeredBy(f.NewModel)
	case evUserMessage:
		p.begun, p.ended, p.seen[f.MessageID] = true, false, true
	case evAbort:
		p.aborted = true
	case evError:
		p.failure = errorFailure(f)
	case evIdle:
		// One of a turn before may come late: it is no end of ours.
		end = p.begun || p.failure != nil
		p.ended = end
	case evResult:
		p.result(e)
		end = true
	default:
		p.content(e.Type, f)
	}
	return end, nil
}

// content takes what a turn is made of.
func (p *parser) content(kind string, f fields) {
	if p.asks != nil && p.asks.event(p, kind, f) {
		return
	}
	if !p.begun {
		return
	}
	switch kind {
	case evTurnStart:
		p.thought = false
	case evTurnRetry:
		p.out.DropText(p.message)
		p.status(cli.StatusRetrying, retryText(f.Reason))
	case evMessageStart:
		p.message = f.MessageID
	case evMessageDelta:
		p.resume()
		p.message = f.MessageID
		p.out.Text(f.MessageID, f.Delta)
	case evMessage:
		p.whole(f)
	case evReasoningDelta:
		p.resume()
		p.thought = true
		p.out.Thinking(f.Delta)
	case evReasoning:
		p.think(f.Content)
	case evUsage:
		p.count(f)
	case evToolStart:
		p.toolStart(f)
	case evToolEnd:
		p.toolEnd(f)
	default:
		p.state(kind, f)
	}
}

// state takes what is neither text nor tool.
func (p *parser) state(kind string, f fields) {
	switch kind {
	case evCompactStart:
		p.status(cli.StatusCompacting, "")
	case evCompactEnd:
		p.resume()
		if f.Success {
			trigger := "auto"
			if f.Trigger == "manual" {
				trigger = "manual"
			}
			p.out.Pass(cli.CompactBoundary{Trigger: trigger, PreTokens: f.PreTokens})
		}
	case evWarning:
		p.out.Pass(cli.Status{Kind: cli.StatusWarning, Detail: cli.ShortLine(f.Message)})
	}
}

// whole takes a message that is complete. It overwrites what was streamed of it.
func (p *parser) whole(f fields) {
	p.resume()
	p.answeredBy(f.Model)
	p.think(f.ReasoningText)
	p.out.FullText(f.MessageID, f.Content)
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
	p.model = cli.ModelID(model)
	p.name()
}

func (p *parser) status(kind cli.StatusKind, detail string) {
	p.waiting = true
	p.out.Pass(cli.Status{Kind: kind, Detail: detail})
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
	p.out.ToolStart(t)
}

func (p *parser) toolEnd(f fields) {
	e, failed := toolEnded(f)
	if t := p.tools[f.ToolCallID]; failed.Code == deniedCode {
		p.denials = append(p.denials, cli.Denial{Tool: t.Name, Title: t.Title, Reason: e.Err})
	}
	for _, c := range changes(f, p.dir) {
		p.out.Pass(c)
	}
	p.out.ToolEnd(e)
}

// deniedCode is the code of a tool's error when it was not allowed.
const deniedCode = "denied"

// subagent takes events of an agent that Copilot started: its tools are shown below the one that started it.
func (p *parser) subagent(e event, f fields) {
	if !p.begun {
		return
	}
	switch e.Type {
	case evToolStart:
		p.toolStart(f)
	case evToolEnd:
		p.toolEnd(f)
	case evUsage:
		p.count(f)
	default:
		if p.asks != nil {
			p.asks.event(p, e.Type, f)
		}
	}
}

func (p *parser) count(f fields) {
	u := cli.Usage{
		Input: max(f.InputTokens-f.CacheReadTokens, 0), Output: f.OutputTokens,
		CacheRead: f.CacheReadTokens, CacheWrite: f.CacheWriteTokens, Reasoning: f.ReasoningTokens,
	}
	p.calls++
	p.usage = p.usage.Add(u)
	id := cli.ModelID(f.Model)
	p.byModel[id] = p.byModel[id].Add(u)
}

// result takes the last line of a one-shot run.
func (p *parser) result(e event) {
	p.ended = true
	if e.SessionID != "" {
		p.id = cli.AgentSessionID(e.SessionID)
		p.name()
	}
	if e.ExitCode != nil && *e.ExitCode != 0 && p.failure == nil {
		p.failure = cli.Failf(cli.UnknownFailure, Agent, "it ended with exit code %d", *e.ExitCode)
	}
}

// outcome is the Result of a turn that Copilot ended without an abort.
func (p *parser) outcome() cli.Result {
	r := p.told(cli.Result{Err: p.failure})
	if r.Err == nil && p.aborted {
		r.Err = cli.Failf(cli.UnknownFailure, Agent, "the turn was interrupted")
	}
	return r
}

// told adds what is known however a turn ended.
func (p *parser) told(r cli.Result) cli.Result {
	r.Usage, r.Turns, r.Denials = p.usage, p.calls, p.denials
	if len(p.byModel) > 0 {
		r.ByModel = p.byModel
	}
	return r
}

// retryText says why the model is asked again.
func retryText(reason string) string {
	switch reason {
	case "rate_limit":
		return "the model's rate limit is reached"
	case "transient_auth_error":
		return "the log-in was not accepted"
	case "":
		return "the model's API failed"
	}
	return "the model's API failed: " + cli.ShortLine(reason)
}
