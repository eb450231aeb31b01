package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"

	"ductor/cli"
	"ductor/cli/turn"
)

const maxTitle = 200

// parser converts the output lines of a process for one turn to events. It does no I/O. The same lines always result in
// the same events.
type parser struct {
	out     *turn.Emitter
	dir     string
	garbage func(line []byte) // receives lines that are not part of the protocol

	session cli.AgentSessionID
	model   cli.ModelID
	block   int // number of the current message; a tool starts a new one
	tools   map[cli.ToolID]event
	denials []cli.Denial
	result  cli.Result
	done    bool // whether the result line has arrived
}

func newParser(out *turn.Emitter, req cli.Request) *parser {
	return &parser{out: out, dir: req.Dir, garbage: func([]byte) {}, tools: map[cli.ToolID]event{}}
}

// line handles one line of output. It returns true if the turn has ended.
func (p *parser) line(line []byte) (end bool) {
	var ev event
	if err := json.Unmarshal(line, &ev); err != nil || ev.Type == "" || ev.Type == eventInit && ev.SessionID == "" {
		if len(bytes.TrimSpace(line)) > 0 {
			p.garbage(line)
		}
		return false
	}
	switch ev.Type {
	case eventInit:
		p.session, p.model = cli.AgentSessionID(ev.SessionID), cli.ModelID(ev.Model)
		p.out.Session(p.session, p.model)
		p.out.Pass(cli.Status{Kind: cli.StatusWaiting})
	case eventMessage:
		if ev.Role == "user" { // Gemini repeats the prompt
			p.out.Accepted()
		} else if ev.Role == "assistant" {
			p.out.Text(fmt.Sprint("message ", p.block), ev.Content)
		}
	case eventToolUse:
		p.toolStarted(ev)
	case eventToolEnd:
		p.toolEnded(ev)
	case eventTrouble:
		p.out.Pass(cli.Status{Kind: cli.StatusWarning, Detail: cli.ShortLine(ev.Message)})
	case eventResult:
		p.ended(ev)
	}
	return p.done
}

func (p *parser) toolStarted(ev event) {
	id := cli.ToolID(ev.ToolID)
	t := cli.ToolStarted{ID: id, Name: ev.ToolName, Title: p.title(ev), Input: ev.Parameters}
	if p.out.ToolStart(t) {
		p.block++
		p.tools[id] = ev
	}
}

// title returns the most descriptive parameter of a tool call, or else the tool's name.
func (p *parser) title(ev event) string {
	fields := cli.TextsOf(ev.Parameters)
	for _, name := range []string{"command", "file_path", "absolute_path", "path", "pattern", "query", "url", "prompt"} {
		if v := fields[name]; v != "" {
			return cli.OneLine(cli.Relative(p.dir, v), maxTitle)
		}
	}
	return ev.ToolName
}

func (p *parser) toolEnded(ev event) {
	id := cli.ToolID(ev.ToolID)
	call, known := p.tools[id]
	if !known {
		return
	}
	end := cli.ToolEnded{ID: id, Output: ev.Output}
	if call.ToolName == shellTool && ev.Status == statusSuccess {
		end.ExitCode, end.Err = shellFailure(ev.Output)
		if end.ExitCode == nil && end.Err == "" && ev.Output != "" {
			end.Err = cli.ToolUntold
		}
	}
	if ev.Status != statusSuccess {
		end.Err = cli.ToolFailed
		if ev.Error != nil && ev.Error.Message != "" {
			end.Err = cli.ShortLine(ev.Error.Message)
		}
		if ev.Error != nil && ev.Error.Type == "policy_violation" {
			p.denials = append(p.denials, cli.Denial{Tool: call.ToolName, Title: p.title(call), Reason: end.Err})
		}
	} else if path := cli.TextsOf(call.Parameters)["file_path"]; path != "" && (call.ToolName == "write_file" || call.ToolName == "replace") {
		p.out.Pass(cli.FileChanged{Path: cli.Relative(p.dir, path), Kind: cli.FileUpdated})
	}
	p.out.ToolEnd(end)
}

const (
	shellTool     = "run_shell_command"
	statusSuccess = "success"
)

func (p *parser) ended(ev event) {
	p.done = true
	if s := ev.Stats; s != nil {
		used := cli.Consumption{Usage: s.usage()}
		for name, m := range s.Models {
			used.AddModel(cli.ModelID(name), m.usage())
		}
		p.result.Consumed = used
	}
	if ev.Status == statusSuccess {
		return
	}
	if ev.Error == nil || ev.Error.Message == "" {
		p.result.Err = cli.Failf(cli.UnknownFailure, Agent, "failure.unsaid")
		return
	}
	p.result.Err = apiFailure(ev.Error.Message)
}

func (m modelStats) usage() cli.Usage {
	return cli.Usage{Input: max(m.Input-m.Cached, 0), Output: m.Output, CacheRead: m.Cached}
}
