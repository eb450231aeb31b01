package toolcall

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"

	"ductor/cli"
)

// Kinds of tools that the protocol defines.
const (
	KindRead   = "read"
	KindSearch = "search"
	KindThink  = "think"
	KindFetch  = "fetch"
	KindEdit   = "edit"
	KindDelete = "delete"
	KindMove   = "move"
	KindRun    = "execute"
	KindSwitch = "switch_mode" // the agent wants to leave plan mode, and its plan needs approval
)

// Kinds returns all kinds of tools that the protocol defines, apart from "other".
func Kinds() []string {
	return []string{
		KindRead, KindSearch, KindThink, KindFetch, KindEdit, KindDelete, KindMove, KindRun, KindSwitch,
	}
}

// Call is a tool call, or an update of a tool call. In an update, an empty field means no change.
type Call struct {
	ID        string          `json:"toolCallId"`
	Title     string          `json:"title"`
	Name      string          `json:"name"` // the agent's own name of the tool
	ToolKind  string          `json:"kind"`
	Status    string          `json:"status"`
	Content   Contents        `json:"content"`
	Locations []Location      `json:"locations"`
	Input     json.RawMessage `json:"rawInput"`
	Output    json.RawMessage `json:"rawOutput"`
	Meta      json.RawMessage `json:"_meta"`
}

// OwnName returns the agent's own name of the tool, if it sends one.
func (c *Call) OwnName() string { return cmp.Or(c.Name, cli.TextsOf(c.Meta)["toolName"]) }

// Location is a file that a tool uses.
type Location struct {
	Path string `json:"path"`
}

// States of a tool call that the agent reports.
const (
	StatusPending = "pending" // the model is generating the input, or the call waits for permission
	StatusDone    = "completed"
	StatusFailed  = "failed"
)

// Merge adds the data of an update to the call.
func (c *Call) Merge(update Call) {
	c.ToolKind, c.Title = cmp.Or(update.ToolKind, c.ToolKind), cmp.Or(update.Title, c.Title)
	if given(update.Input) {
		c.Input = update.Input
	}
	if given(update.Output) {
		c.Output = update.Output
	}
	if update.Locations != nil {
		c.Locations = update.Locations
	}
	if update.Content != nil {
		c.Content = update.Content
	}
	if given(update.Meta) && c.Questions() == nil {
		c.Meta = update.Meta
	}
	c.Title, c.Name = cmp.Or(c.Command(), c.Title), cmp.Or(update.Name, c.Name)
}

// Differs reports whether the name, title, kind or input in an announcement differs from the call's. It ignores values
// that the announcement does not contain.
func (c *Call) Differs(announced Call) bool {
	other := *c
	other.Merge(Call{Name: announced.Name, Title: announced.Title, ToolKind: announced.ToolKind,
		Input: announced.Input})
	return other.Title != c.Title || other.ToolKind != c.ToolKind || other.Name != c.Name ||
		given(announced.Input) && string(announced.Input) != "{}" && !sameJSON(announced.Input, c.Input)
}

func sameJSON(a, b json.RawMessage) bool {
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

// Overwrite replaces the description of the call in a request, which is a decoded JSON object.
func (c *Call) Overwrite(request map[string]any) {
	content := []json.RawMessage{}
	for _, part := range c.Content {
		content = append(content, part.raw)
	}
	request["title"], request["kind"], request["rawInput"] = c.Title, c.ToolKind, c.Input
	request["locations"], request["content"] = c.Locations, content
}

// given reports whether the agent sent a value.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// Command returns the command line that the tool runs. It returns "" if the agent does not send the command line as one
// text. The title then contains the command line.
func (c *Call) Command() string {
	var in commandInput
	if c.ToolKind != KindRun || json.Unmarshal(c.Input, &in) != nil {
		return ""
	}
	return in.Command
}

// commandInput is the input of a tool that runs a command.
type commandInput struct {
	Command string `json:"command"`
}

// CommandInput returns the input of a tool that runs a command.
func CommandInput(line string) json.RawMessage {
	raw, _ := json.Marshal(commandInput{line}) // strings can always be encoded
	return raw
}

// LacksInput reports whether the tool's input in an update is incomplete, because the model is still generating it.
// OpenCode sends the directory of a command before the command itself.
func (c *Call) LacksInput(update Call) bool {
	return update.Status == StatusPending &&
		(string(update.Input) == "{}" || c.ToolKind == KindRun && given(update.Input) && c.Command() == "")
}

// Questions returns the questions to the user in the call, or nil if it contains none. Only Qwen Code sends questions
// as tool calls. Qwen Code marks such a call in the metadata.
func (c *Call) Questions() []cli.Question {
	if cli.TextsOf(c.Meta)["qwenInteractionKind"] != "user_question" {
		return nil
	}
	return cli.QuestionsIn(c.Input)
}

// Covers reports whether step is a part of the tool call c. This is the case if both run the same command, or use the
// same file.
func (c *Call) Covers(step Call, dir string) bool {
	if step.ToolKind == KindRun {
		return c.Command() == step.Command()
	}
	return (c.EditsFiles() || step.ToolKind == KindRead) && slices.ContainsFunc(c.Paths(), func(path string) bool {
		return cli.Absolute(dir, path) == cli.Absolute(dir, step.Locations[0].Path)
	})
}

// EditsFiles reports whether the tool changes files, according to its kind.
func (c *Call) EditsFiles() bool {
	return c.ToolKind == KindEdit || c.ToolKind == KindDelete || c.ToolKind == KindMove
}

// ExitCode returns the exit code of a command, or nil. It checks every field in which agents report it.
func (c *Call) ExitCode() *int {
	type codes struct {
		Exit     *int `json:"exit"`
		ExitCode *int `json:"exitCode"`
		Exit_    *int `json:"exit_code"`
	}
	var out struct {
		codes
		Metadata codes `json:"metadata"`
	}
	if json.Unmarshal(c.Output, &out) != nil {
		return nil
	}
	return cmp.Or(out.Exit, out.ExitCode, out.Exit_, out.Metadata.Exit, out.Metadata.ExitCode, out.Metadata.Exit_)
}

// Text returns the output of the tool. Agents send raw output as a string, as an object that contains a string, or as
// any other JSON value.
func (c *Call) Text() string {
	text := c.Content.Text()
	if text != "" || len(c.Output) == 0 || json.Unmarshal(c.Output, &text) == nil {
		return text
	}
	var named struct {
		Output  string `json:"output"`
		Content string `json:"content"`
		Stdout  string `json:"stdout"`
		Error   string `json:"error"`
	}
	_ = json.Unmarshal(c.Output, &named) // fields of other types do not matter
	return cmp.Or(named.Output, named.Content, named.Stdout, named.Error, string(c.Output))
}

// Changes returns the file changes that the tool makes, or would make if it were allowed.
func (c *Call) Changes(dir string) []cli.FileChanged {
	var list []cli.FileChanged
	for _, e := range c.Edits() {
		list = append(list, e.Change(dir))
	}
	return list
}

// Edits returns the edits of the tool. Some agents describe them in the tool's input.
func (c *Call) Edits() []Edit {
	var list []Edit
	for _, part := range c.Content {
		if part.Type == "diff" && part.Path != "" {
			list = append(list, part.edit())
		}
	}
	if c.ToolKind != KindEdit {
		return list
	}
	return withInput(list, c.Input)
}

// Paths returns the paths of the files that the tool uses.
func (c *Call) Paths() []string {
	var list []string
	for _, part := range c.Content {
		if part.Type == "diff" {
			list = append(list, part.Path)
		}
	}
	for _, l := range c.Locations {
		if !slices.Contains(list, l.Path) {
			list = append(list, l.Path)
		}
	}
	return list
}
