package claude

import (
	"ductor/cli"
	"ductor/cli/turn"
)

const (
	agent        cli.Agent   = "claude"
	defaultModel cli.ModelID = "default" // Claude's name for "no choice made"
)

// parser turns the lines of one turn into events. It does no I/O: what has to be written back comes out
// of line. After line said that the turn ended, outcome holds the result to finish the emitter with.
type parser struct {
	em  *turn.Emitter
	mem *memory
	dir string
	// echo is the id of our message, which Claude repeats when it took the message up, though not before the
	// first whole piece of its answer; empty where it does not. Until then a turn may still be one that Claude began.
	echo    string
	taken   bool
	onTaken func() // is called when it did; nil does nothing
	// foreign says that a turn is on its way which is not known to be ours, onForeign that it ended and was not.
	foreign   bool
	onForeign func()
	// background gets the result of a turn that Claude began. When nil it stays part of this turn.
	background func(cli.Result)
	// asks are what Claude asks people; nil in a turn that is not attended. past says that what is asked now may have
	// been answered since.
	asks *asks
	past bool
	// steers are the messages sent in mid-turn; nil where none can be.
	steers *steers
	// replied gets Claude's answers to requests of ours; nil drops them. end ends the turn.
	replied func(*controlReply) (end bool)

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
	// mustStop is set when the process goes on with a turn that is over for us, so it has to be stopped.
	mustStop bool
}

func newParser(em *turn.Emitter, mem *memory, dir string) *parser {
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
	if !p.taken && !p.foreign {
		p.foreign = begins(l)
	}
	p.mem.tasks.line(l)
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
	case "control_cancel_request":
		p.withdraw(func(a request) bool { return a.wire == l.RequestID })
	case "control_response":
		return nil, l.Response != nil && p.replied != nil && p.replied(l.Response)
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
		p.systemStatus(l)
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
