package acp

import (
	"cmp"
	"encoding/json"
	"path"
	"strings"

	"ductor/cli"
	"ductor/cli/acp/toolcall"
	"ductor/cli/acp/workspace"
)

const maxTitle = 200

type toolPhase string

// States of a tool call.
const (
	toolNamed   toolPhase = ""        // the agent mentioned the tool call
	toolWaits   toolPhase = "waits"   // ToolStarted was emitted, and the tool waits for permission
	toolRuns    toolPhase = "runs"    // ToolStarted was emitted, and the tool runs
	toolEnded   toolPhase = "ended"   // ToolEnded was emitted
	toolRefused toolPhase = "refused" // the tool was denied
)

// tool is the stored state of a tool call.
type tool struct {
	call  toolcall.Call // the agent's description, merged from all its updates
	name  string
	phase toolPhase
	// succeeded is set if the tool call has ended without an error.
	succeeded bool
	shown     cli.ToolStarted // the event that users saw
	planFile  string          // path of the plan that needs approval, if the agent does not send the plan itself
	printed   string          // output of a command that the agent runs in its own terminal
	exit      *int            // exit code of the command in the agent's own terminal

	wrote, terminals []string
}

func (t *tool) isOver() bool { return t.phase == toolEnded || t.phase == toolRefused }

// isReused reports whether announced is a new tool call with the ID of t, and not an update of t. An ID can be reused
// only after t is over. If the descriptions differ, the call is new. If they are equal, the call is new only if t has
// succeeded, because some agents announce a denied or cancelled call again.
func (t *tool) isReused(announced toolcall.Call) bool {
	ended := announced.Status == toolcall.StatusDone || announced.Status == toolcall.StatusFailed
	return t.isOver() && (t.succeeded && !ended || t.call.Differs(announced))
}

// tools contains the tool calls of a turn by ID, and the commands that ductor runs for the agent by terminal ID.
type tools struct {
	all, running map[string]*tool // running contains only the calls that have not ended
	commands     map[string]command
}

// merge adds new data from the agent to the stored description of the call. name is ToolQuirks.Name; it may be nil.
func (t *tool) merge(c toolcall.Call, name func(id, kind, title string) string) {
	t.call.Merge(c)
	t.watchTerminal(c.Meta)
	own := t.call.OwnName()
	if own == "" && name != nil {
		own = name(t.call.ID, t.call.ToolKind, t.call.Title)
	}
	t.name = cmp.Or(own, t.call.ToolKind, "tool")
}

// watchTerminal records the output and the exit code of a command that the agent itself runs in a terminal. The
// protocol has no fields for them. The adapters of Codex and Claude send them in the metadata.
func (t *tool) watchTerminal(meta json.RawMessage) {
	var news struct {
		Delta struct {
			Data string `json:"data"`
		} `json:"terminal_output_delta"`
		Exit struct {
			Code *int `json:"exit_code"`
		} `json:"terminal_exit"`
	}
	if json.Unmarshal(meta, &news) != nil {
		return
	}
	t.printed, t.exit = t.printed+news.Delta.Data, cmp.Or(news.Exit.Code, t.exit)
	if more := len(t.printed) - workspace.MaxOutput; more > 0 {
		t.printed = strings.ToValidUTF8(t.printed[more:], "")
	}
}

// began returns the ToolStarted event of the tool. If the tool uses exactly one file, the title is usually the file's
// path instead of the agent's title.
func (t *tool) began(dir string) cli.ToolStarted {
	title := t.call.Title
	switch questions := t.call.Questions(); {
	case len(questions) > 0:
		title = questions[0].Text
	case t.planFile != "":
		title = path.Base(t.planFile)
	case t.call.ToolKind == toolcall.KindRun:
	default:
		if paths := t.call.Paths(); len(paths) == 1 && (t.call.ToolKind == toolcall.KindEdit || strings.EqualFold(title, t.name) || strings.HasSuffix(title, path.Base(paths[0]))) {
			title = cli.Relative(dir, paths[0])
		}
	}
	input := t.call.Input
	if t.call.ToolKind == toolcall.KindRun && len(input) == 0 { // Gemini sends the command only in the title
		input = toolcall.CommandInput(t.call.Title)
	}
	return cli.ToolStarted{
		ID: cli.ToolID(t.call.ID), Name: t.name, Title: cli.OneLine(title, maxTitle), Input: input,
	}
}

// over returns the ToolEnded event of the tool. failure is ToolQuirks.Failure and may be nil. For a command with an
// unknown result, the event's error is cli.ToolUntold.
func (t *tool) over(status string, failure func(output string) (*int, string)) cli.ToolEnded {
	end := cli.ToolEnded{ID: cli.ToolID(t.call.ID), Output: t.call.Text()}
	run := t.call.ToolKind == toolcall.KindRun
	if run {
		end.Output, end.ExitCode = cmp.Or(end.Output, t.printed), cmp.Or(t.exit, t.call.ExitCode())
	}
	if run && failure != nil && end.ExitCode == nil {
		end.ExitCode, end.Err = failure(end.Output)
	}
	// Agents with ToolQuirks.Failure print a text if a command fails. A command without output has therefore succeeded.
	switch silent := failure != nil && end.Output == ""; {
	case status == toolcall.StatusFailed:
		end.Err = cmp.Or(end.Err, cli.ShortLine(end.Output), cli.ToolFailed)
	case run && end.ExitCode == nil && end.Err == "" && !silent:
		end.Err = cli.ToolUntold
	}
	return end
}
