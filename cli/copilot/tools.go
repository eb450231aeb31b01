package copilot

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"ductor/cli"
	"ductor/lang"
)

const maxTitle = 200

// toolStarted returns the ToolStarted event for a tool.execution_start event.
func toolStarted(f fields, dir string) cli.ToolStarted {
	return cli.ToolStarted{
		ID: cli.ToolID(f.ToolCallID), Name: f.ToolName, Title: toolTitle(f, dir), Input: f.Arguments,
		Parent: cli.ToolID(f.Parent),
	}
}

// toolTodo is the tool that changes the plan, a Markdown list of tasks. Users see the plan instead of the tool.
const toolTodo = "update_todo"

var todoLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*[-*] \[(.)\] (.+)$`) })

func planOf(args json.RawMessage) cli.PlanChanged {
	var in struct {
		Todos string `json:"todos"`
	}
	_ = json.Unmarshal(args, &in)
	var ev cli.PlanChanged
	for line := range strings.Lines(in.Todos) {
		if m := todoLine().FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			step := cli.PlanStep{Text: cli.ShortLine(m[2]), State: cli.PlanOpen}
			if m[1] == "x" || m[1] == "X" {
				step.State = cli.PlanDone
			}
			ev.Steps = append(ev.Steps, step)
		}
	}
	return ev
}

// toolTitle returns the most descriptive argument of a tool call, or else Copilot's own title.
func toolTitle(f fields, dir string) string {
	args := cli.TextsOf(f.Arguments) // empty if the arguments are a string
	title := cmp.Or(args["command"], cli.Relative(dir, args["path"]), args["pattern"], args["query"], args["url"], args["question"],
		args["description"], args["prompt"], f.ToolTitle)
	return cli.OneLine(title, maxTitle)
}

// toolEnded returns the ToolEnded event for a tool.execution_complete event, and the error of the tool.
func toolEnded(f fields) (cli.ToolEnded, toolError) {
	e := cli.ToolEnded{ID: cli.ToolID(f.ToolCallID)}
	var result toolResult
	var failed toolError
	_ = json.Unmarshal(f.Result, &result) // missing if the tool failed
	_ = json.Unmarshal(f.Error, &failed)
	e.Output = shellTail().ReplaceAllString(result.Content, "")
	if f.Shell != nil {
		e.ExitCode = f.Shell.ExitCode
	}
	switch {
	case failed.Code == deniedCode:
		e.Err = cli.ToolDenied
	case failed.Message != "":
		e.Err = cli.ShortLine(failed.Message)
	case !f.Success:
		e.Err = cli.ToolFailed
	case e.ExitCode != nil && *e.ExitCode != 0:
		e.Err = cli.ExitText(lang.Printer{}, *e.ExitCode)
	}
	return e, failed
}

func isShell(tool string) bool { return tool == "bash" || tool == "powershell" }

// goesOn matches Copilot's text about a command that continues to run, because it exceeded its time limit or was
// started in the background.
var goesOn = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`<command [^<>]*(?: is still running|started in [^<>]*background)[^<>]*>\s*$`)
})

// shellTail matches the text for the model that Copilot appends to the output of a command.
var shellTail = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\n?<shellId: [^<>]* completed with exit code -?\d+>\s*$`)
})

// changes returns the file changes that a tool made. Copilot sends one diff for the whole call. A change has a diff
// only if the tool changed no other file.
func changes(f fields, dir string) []cli.FileChanged {
	var result toolResult
	_ = json.Unmarshal(f.Result, &result)
	var all []cli.FileChanged
	for _, edit := range f.Edits {
		c := cli.FileChanged{Path: cli.Relative(dir, edit.Path), Kind: cli.FileUpdated}
		switch edit.Kind {
		case "create":
			c.Kind = cli.FileAdded
		case "delete":
			c.Kind = cli.FileDeleted
		}
		if len(f.Edits) == 1 {
			c.Diff = cli.Hunks(result.Detailed)
		}
		all = append(all, c)
	}
	return all
}
