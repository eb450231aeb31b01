package claude

import (
	"encoding/json"
	"fmt"
	"time"

	"ductor/cli"
)

const (
	agent        cli.Agent   = "claude"
	defaultModel cli.ModelID = "default" // Claude's name for "no choice made"
)

// memory is what the turns of one process share: totals that Claude counts from the start of the
// process, and what was said once and need not be said again.
type memory struct {
	costUSD float64
	byModel map[cli.ModelID]cli.Usage
	denied  map[cli.ToolID]bool
	warned  map[string]bool
	model   cli.ModelID // as init named it last
}

func newMemory() *memory {
	return &memory{
		byModel: map[cli.ModelID]cli.Usage{},
		denied:  map[cli.ToolID]bool{},
		warned:  map[string]bool{},
	}
}

// parser turns the lines of one turn into events. It does no I/O: what has to be written back comes out
// of line. After line said that the turn ended, outcome holds the result to finish the emitter with.
type parser struct {
	em  *cli.Emitter
	mem *memory
	dir string
	// echo is the id of our message, which Claude repeats when it takes the message up; empty where it
	// does not. Until then a turn may still be one that Claude began by itself.
	echo  string
	taken bool
	// unasked gets the result of a turn that Claude began by itself. When nil it stays part of this turn.
	unasked func(cli.Result)

	piece   deltaLine
	named   bool
	flow    flow
	keys    []string // the answer's blocks, in order
	calls   map[cli.ToolID]toolCall
	denials []deniedCall
	status  cli.StatusKind
	trouble trouble
	source  string // where Claude's key comes from, by its own word

	// garbage gets lines that are no protocol; nil drops them.
	garbage func([]byte)
	ended   bool // the turn is over, and outcome says how
	cut     bool // it was interrupted, by Claude's own word
	outcome cli.Result
	// doomed is set when the process goes on with a turn that is over for us, so it has to be stopped.
	doomed bool
}

func newParser(em *cli.Emitter, mem *memory, dir string) *parser {
	return &parser{em: em, mem: mem, dir: dir, calls: map[cli.ToolID]toolCall{}}
}

// line takes one line of output. reply is a line to write back, nil for none; end says that the turn is
// over. Lines after the end change nothing.
func (p *parser) line(raw []byte) (reply []byte, end bool) {
	if p.ended {
		return nil, true
	}
	if l, ok := p.piece.decode(raw); ok {
		reply, p.ended = p.dispatch(l)
		return reply, p.ended
	}
	l, err := decodeLine(raw)
	if err != nil {
		if p.garbage != nil {
			p.garbage(raw)
		}
		return nil, false
	}
	reply, p.ended = p.dispatch(l)
	return reply, p.ended
}

func (p *parser) dispatch(l *line) (reply []byte, end bool) {
	switch l.Type {
	case "system":
		return nil, p.system(l)
	case "stream_event":
		p.name(l)
		p.stream(l)
	case "assistant":
		p.name(l)
		p.assistant(l)
	case "user":
		p.user(l)
	case "rate_limit_event":
		p.rateLimit(l.RateLimit)
	case "control_request":
		return p.control(l), false
	case "result":
		return nil, p.result(l)
	}
	return nil, false
}

// name names the session from a line other than init, for streams that begin without one.
func (p *parser) name(l *line) {
	if p.named || l.SessionID == "" {
		return
	}
	p.named = true
	model := lineModel(l)
	if model == "" {
		model = p.mem.model
	}
	p.em.Session(cli.AgentSessionID(l.SessionID), model)
}

// lineModel is the model a line speaks of: the one of its message, or the one a result used most.
func lineModel(l *line) cli.ModelID {
	if l.Message != nil && l.Message.Model != synthetic {
		return cli.ModelID(l.Message.Model)
	}
	var model string
	for name, used := range l.ModelUsage {
		if most := l.ModelUsage[model]; model == "" || used.Output > most.Output || used.Output == most.Output && name < model {
			model = name
		}
	}
	return cli.ModelID(model)
}

func (p *parser) system(l *line) (end bool) {
	switch l.Subtype {
	case "init":
		p.named = true
		p.source = l.APIKeySource
		p.mem.model = cli.ModelID(l.Model)
		p.em.Session(cli.AgentSessionID(l.SessionID), p.mem.model)
		p.warnServers(l.MCPServers)
	case "status":
		p.name(l)
		p.systemStatus(l.Status)
	case "api_retry":
		p.name(l)
		return p.retry(l)
	case "compact_boundary":
		if l.Compact != nil {
			p.em.Pass(cli.CompactBoundary{Trigger: l.Compact.Trigger, PreTokens: l.Compact.PreTokens})
		}
	case "model_fallback":
		p.em.Pass(cli.Status{Kind: cli.StatusWarning, Detail: oneLine(l.Content)})
	}
	return false
}

func (p *parser) systemStatus(status *string) {
	switch {
	case status == nil:
		p.setStatus(cli.StatusIdle, "")
	case *status == "requesting":
		p.setStatus(cli.StatusWaiting, "")
	case *status == "compacting":
		p.setStatus(cli.StatusCompacting, "")
	}
}

// retry shows that the API is asked again. A log-in that is not accepted would be tried for minutes, so
// it ends the turn at once; an account that can refresh its log-in gets one try for that.
func (p *parser) retry(l *line) (end bool) {
	p.trouble.network = l.ErrorStatus == nil
	refused := l.ErrorStatus != nil && *l.ErrorStatus == 401
	canRefresh := p.source == "none" || p.source == "oauth"
	if refused && (l.Attempt > 1 || !canRefresh) {
		p.outcome.Err = cli.Failf(cli.NotLoggedIn, agent, "the model's API did not accept the log-in (401)")
		p.doomed = true
		return true
	}
	detail := fmt.Sprintf("%s; trying again (%d of %d)", retryStatus(l), l.Attempt, l.MaxRetries)
	if wait := time.Duration(l.RetryDelayMS * float64(time.Millisecond)).Round(time.Second); wait >= time.Second {
		detail += " in " + wait.String()
	}
	p.setStatus(cli.StatusRetrying, detail)
	return false
}

func (p *parser) warnServers(servers []mcpServer) {
	for _, s := range servers {
		if s.Status != "failed" || p.mem.warned[s.Name] {
			continue
		}
		p.mem.warned[s.Name] = true
		p.em.Pass(cli.Status{Kind: cli.StatusWarning, Detail: oneLine("MCP server " + s.Name + " could not be started")})
	}
}

// setStatus passes a status on when it says something new; idle only ends one that was shown.
func (p *parser) setStatus(kind cli.StatusKind, detail string) {
	if kind == cli.StatusIdle && p.status == "" || kind == p.status && detail == "" {
		return
	}
	p.status = kind
	if kind == cli.StatusIdle {
		p.status = ""
	}
	p.em.Pass(cli.Status{Kind: kind, Detail: detail})
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

// control answers a request of Claude's. Until people can be asked, every permission is denied, and
// Claude is told what to do instead.
func (p *parser) control(l *line) (reply []byte) {
	if l.Request == nil || l.RequestID == "" {
		return nil
	}
	if l.Request.Subtype != "can_use_tool" {
		return unsupportedLine(l.RequestID, l.Request.Subtype)
	}
	message, reason := denial(l.Request.Tool)
	p.deny(cli.ToolID(l.Request.ToolUseID), l.Request.Tool, l.Request.Input, reason)
	return denyLine(l.RequestID, message)
}

type deniedCall struct {
	id cli.ToolID
	cli.Denial
}

// deny notes a call that was not allowed, once per call and process.
func (p *parser) deny(id cli.ToolID, tool string, input json.RawMessage, reason string) {
	if id != "" && p.mem.denied[id] {
		return
	}
	p.mem.denied[id] = true
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
