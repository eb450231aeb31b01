package claude

import (
	"encoding/json"
	"regexp"
	"strings"

	"ductor/cli"
)

// toolCall is a tool that was started in this turn.
type toolCall struct {
	name  string
	input json.RawMessage
	err   string // how it failed, once it did
}

func isToolUse(kind string) bool {
	return kind == "tool_use" || kind == "server_tool_use" || kind == "mcp_tool_use"
}

// startTool passes a tool call on, once.
func (p *parser) startTool(b block, parent string) {
	id := cli.ToolID(b.ID)
	if _, known := p.calls[id]; known || id == "" {
		return
	}
	p.calls[id] = toolCall{name: b.Name, input: b.Input}
	p.em.ToolStart(cli.ToolStarted{
		ID: id, Name: b.Name, Title: toolTitle(b.Name, b.Input, p.dir), Input: b.Input,
		Parent: cli.ToolID(parent),
	})
}

// dropTool ends a tool of a message that was given up; nothing more is heard of it.
func (p *parser) dropTool(id string) {
	if _, known := p.calls[cli.ToolID(id)]; known {
		p.em.ToolEnd(cli.ToolEnded{ID: cli.ToolID(id), Err: "the agent gave this call up"})
	}
}

// user takes tool results. A replay of a message is only the sign that it was taken up.
func (p *parser) user(l *line) {
	if l.IsReplay {
		p.echoed(l.UUID)
		return
	}
	if l.Message == nil {
		return
	}
	for _, b := range l.Message.blocks() {
		if b.Type == "tool_result" {
			p.withdraw(func(a request) bool { return a.call == cli.ToolID(b.ToolUseID) })
			p.endTool(b, l.ToolResult)
		}
	}
}

// echoed takes the sign that Claude took up a message.
func (p *parser) echoed(id string) {
	if p.steers != nil {
		p.steers.settle(id)
	}
	if p.taken || p.echo == "" || id != p.echo {
		return
	}
	p.taken, p.foreign = true, false
	if p.onTaken != nil {
		p.onTaken()
	}
}

func (p *parser) endTool(b block, structured json.RawMessage) {
	id := cli.ToolID(b.ToolUseID)
	call, known := p.calls[id]
	if !known {
		return
	}
	end := cli.ToolEnded{ID: id, Output: resultText(b.Content)}
	if b.IsError {
		end.Err = oneLine(end.Output)
		if end.Err == "" {
			end.Err = "failed"
		}
		call.err = end.Err
		p.calls[id] = call
	} else if change, ok := fileChange(call, structured, p.dir); ok {
		p.em.Pass(change)
	}
	if call.name == "Bash" {
		end.ExitCode = exitCode(b.IsError, end.Output, structured)
	}
	p.em.ToolEnd(end)
}

// resultText is a tool result as text; pictures and the like are named.
func resultText(content json.RawMessage) string {
	m := message{Content: content}
	var parts []string
	for _, b := range m.blocks() {
		switch {
		case b.Type == "text":
			parts = append(parts, b.Text)
		case b.Type != "":
			parts = append(parts, "["+b.Type+"]")
		}
	}
	return strings.Join(parts, "\n")
}

var exitLine = regexp.MustCompile(`^(?:Error: )?Exit code (\d{1,9})(?:\n|$)`)

// exitCode is the exit code of a shell command: Claude says it in words when it is not 0. A command that
// was refused, interrupted or sent to the background has none.
func exitCode(failed bool, output string, structured json.RawMessage) *int {
	if failed {
		return cli.NumberIn(exitLine, output)
	}
	var bash struct {
		Interrupted bool   `json:"interrupted"`
		Background  string `json:"backgroundTaskId"`
	}
	if json.Unmarshal(structured, &bash) != nil || bash.Interrupted || bash.Background != "" {
		return nil
	}
	return new(int)
}
