package codex

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"ductor/cli"
)

const maxTitle = 200

// toolError returns the reason why a tool failed, in one line, or "" if the tool succeeded.
func toolError(e *apiError, code *int, status string) string {
	switch {
	case e != nil && e.Message != "":
		return cli.ShortLine(e.Message)
	case code != nil && *code != 0:
		return fmt.Sprintf("exit code %d", *code)
	case status == "declined":
		return cli.ToolDenied
	case status == turnFailed:
		return status
	}
	return ""
}

// plainCommand removes the shell call that Codex puts around every command, such as bash -lc '…'. Codex calls the
// user's login shell.
func plainCommand(command string) string {
	if inner := cli.CutShellCall(command); inner != command {
		return unquote(inner)
	}
	return command
}

// unquote removes the single or double quotes around a shell word. It returns any other text unchanged.
func unquote(s string) string {
	if len(s) >= 2 && s[0] == '\'' && s[len(s)-1] == '\'' {
		return strings.ReplaceAll(s[1:len(s)-1], `'\''`, `'`)
	}
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\$`, `$`, "\\`", "`").Replace(s[1 : len(s)-1])
	}
	return s
}

// planOf converts a to-do list to a plan. The list does not show which step is active.
func planOf(items []todo) cli.PlanChanged {
	var ev cli.PlanChanged
	for _, it := range items {
		step := cli.PlanStep{Text: cli.ShortLine(it.Text), State: cli.PlanOpen}
		if it.Completed {
			step.State = cli.PlanDone
		}
		ev.Steps = append(ev.Steps, step)
	}
	return ev
}

func compact(raw json.RawMessage) string {
	if s := string(raw); s != "null" {
		return s
	}
	return ""
}

// started returns the ToolStarted event of an item, or false if the item is not a tool call.
func started(it *liveItem, dir string) (cli.ToolStarted, bool) {
	t := cli.ToolStarted{ID: cli.ToolID(it.ID)}
	if it.ID == "" {
		return t, false
	}
	switch it.Type {
	case itemCommand:
		t.Name, t.Title = "shell", plainCommand(it.Command)
		t.Input = jsonOf(map[string]string{"command": plainCommand(it.Command)})
	case itemFiles:
		changes := changesOf(it.Changes.files, cli.FileAdded)
		t.Name, t.Title, t.Input = "patch", pathsOf(changes, dir), jsonOf(it.Changes.files)
	case itemMCP:
		t.Name, t.Title, t.Input = it.Server+"."+it.Tool, compact(it.Arguments), it.Arguments
	case "dynamicToolCall":
		t.Name, t.Title, t.Input = strings.TrimPrefix(it.Namespace+"."+it.Tool, "."), compact(it.Arguments), it.Arguments
	case itemCollab:
		t.Name, t.Title, t.Input = it.Tool, it.Prompt, jsonOf(map[string]string{"prompt": it.Prompt})
	case itemSearch:
		t.Name, t.Title, t.Input = "web_search", it.Query, jsonOf(map[string]string{"query": it.Query})
	case "imageView":
		t.Name, t.Title = "view_image", cli.Relative(dir, it.Path)
		t.Input = jsonOf(map[string]string{"path": it.Path})
	case "imageGeneration":
		t.Name, t.Title, t.Input = "image_generation", it.Revised, jsonOf(map[string]string{"prompt": it.Revised})
	default:
		return cli.ToolStarted{}, false
	}
	t.Title = titleOf(t.Title)
	return t, true
}

// ended returns the ToolEnded event of a finished tool call.
func ended(it *liveItem) cli.ToolEnded {
	e := cli.ToolEnded{ID: cli.ToolID(it.ID), Output: it.Output, ExitCode: it.ExitCode}
	if it.DurationMs != nil {
		e.Duration = time.Duration(max(*it.DurationMs, 0)) * time.Millisecond
	}
	switch {
	case it.Type == "imageGeneration": // the result may be the whole picture in base64
		e.Output = it.SavedPath
	case e.Output == "":
		e.Output = cmp.Or(resultText(it.Result), compact(it.ContentItems))
	}
	e.Err = toolError(it.Error, it.ExitCode, it.Status)
	return e
}

// resultText returns the text in the result of an MCP tool. For pictures and other content, it returns only the type. If
// the result has no content, resultText returns the JSON of the result.
func resultText(raw json.RawMessage) string {
	var result struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	}
	var texts []string
	if json.Unmarshal(raw, &result) == nil {
		for _, c := range result.Content {
			switch c.Type {
			case "text":
				texts = append(texts, c.Text)
			case "":
			default:
				texts = append(texts, "["+c.Type+"]")
			}
		}
	}
	if len(texts) == 0 {
		return compact(raw)
	}
	return strings.Join(texts, "\n")
}

// changesOf returns the file changes that a patch makes. A moved file counts as two changes: one at the old path, and
// one of kind moved at the new path.
func changesOf(changes []liveChange, moved cli.ChangeKind) []cli.FileChanged {
	var changed []cli.FileChanged
	for _, c := range changes {
		kind := cli.ChangeKind(c.Kind.Type)
		changed = append(changed, cli.FileChanged{Path: c.Path, Kind: kind, Diff: unified(kind, c.Diff)})
		if c.Kind.Move != "" && c.Kind.Move != c.Path {
			changed = append(changed, cli.FileChanged{Path: c.Kind.Move, Kind: moved})
		}
	}
	return changed
}

// unified converts Codex's data about a change to a unified diff. For an added or deleted file, Codex sends the text of
// the file instead of a diff.
func unified(kind cli.ChangeKind, diff string) string {
	sign := "+"
	switch {
	case diff == "" || strings.HasPrefix(diff, "@@ "):
		return diff
	case kind == cli.FileDeleted:
		sign = "-"
	case kind != cli.FileAdded:
		return diff
	}
	lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	head := fmt.Sprintf("@@ -0,0 +1,%d @@\n", len(lines))
	if sign == "-" {
		head = fmt.Sprintf("@@ -1,%d +0,0 @@\n", len(lines))
	}
	return head + sign + strings.Join(lines, "\n"+sign) + "\n"
}

// failure classifies an error by its code, or by its text if it has no code.
func (e *turnError) failure() *cli.Failure {
	text := strings.TrimSpace(e.Message)
	if strings.HasPrefix(text, "Reconnecting...") && e.Details != "" {
		text = e.Details
	}
	said := e.Message + " " + e.Details
	api := infoOf(e.Info)
	api.Text = said
	kind := kindOfError(api)
	return &cli.Failure{Kind: kind, Agent: Agent, Reason: reasonOf(text), Detail: cli.Shorten(strings.TrimSpace(e.Message+"\n"+e.Details), 2000)}
}

// infoOf parses codexErrorInfo, the code of an error. The code is a name, or an object whose only key is the name. The
// object may contain the HTTP status of the model's API.
func infoOf(info json.RawMessage) (e cli.APIError) {
	var object map[string]struct {
		Status int `json:"httpStatusCode"`
	}
	if json.Unmarshal(info, &e.Name) != nil && json.Unmarshal(info, &object) == nil {
		for name, o := range object {
			e.Name, e.Status = name, o.Status
		}
	}
	return e
}
