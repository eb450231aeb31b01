package claude

import (
	"encoding/json"

	"ductor/cli"
)

// control takes a request of Claude's. What it asks people for becomes an event when there are people, and is
// denied else, with a word on what to do instead. reply is nil for what is answered later.
func (p *parser) control(l *line) (reply []byte) {
	if l.Request == nil || l.RequestID == "" {
		return nil
	}
	if l.Request.Subtype != "can_use_tool" {
		return unsupportedLine(l.RequestID, l.Request.Subtype)
	}
	if p.asks != nil {
		p.ask(l)
		return nil
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
func callDigest(id cli.ToolID) string { return digest(string(id))[:12] }
