package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ductor/cli"
	"ductor/cli/rpc"
)

// ask is a request of the agent to the user: for permission, or to fill in a form.
type ask struct {
	id     json.RawMessage
	params askParams
	raw    json.RawMessage // parameters of the request
	form   *form           // nil for a permission request
	tool   *tool           // the tool call that needs permission; set by liveTurn.asked
	plans  bool            // whether allowing the request ends plan mode
	shown  toolCall        // the tool call that the user saw
	before int             // how often ductor has already asked the user about this request
}

// key returns the approval ID of the request. It is unique within a turn, and the same after a restart.
func (a *ask) key() cli.ApprovalID {
	key := "ask-" + rpc.Text(a.id)
	if a.before > 0 {
		key += fmt.Sprint("#", a.before)
	}
	return cli.ApprovalID(key)
}

// cancelled returns the reply for a request that no user answers.
func (a *ask) cancelled() any {
	if a.form != nil {
		return map[string]any{"action": "cancel"}
	}
	return cancelled()
}

// renew updates the request after the agent has changed the tool call. The request gets a new key, so that ductor can
// ask the user again.
func (a *ask) renew() {
	request, t, content := map[string]any{}, a.tool.call, []json.RawMessage{}
	for _, c := range t.Content {
		content = append(content, c.raw)
	}
	_ = json.Unmarshal(a.raw, &request) // the same JSON was parsed before
	if call, ok := request["toolCall"].(map[string]any); ok {
		call["title"], call["kind"], call["rawInput"] = t.Title, t.ToolKind, t.Input
		call["locations"], call["content"] = t.Locations, content
	}
	a.raw, _ = json.Marshal(request) // decoded JSON can always be encoded
	a.params, a.before = askParams{}, a.before+1
	_ = json.Unmarshal(a.raw, &a.params)
}

// option returns the ID of the agent's first option of the given kind, such as optionAllow.
func (a *ask) option(kind string) (string, bool) {
	i := slices.IndexFunc(a.params.Options, func(o askOption) bool { return o.Kind == kind })
	if i < 0 {
		return "", false
	}
	return a.params.Options[i].ID, true
}

// choose returns the reply that allows or denies the request once. It never chooses an option that the agent would
// remember permanently. If the agent offers no other option, choose returns an error for allow, and a reply that
// cancels the request for a denial.
func (a *ask) choose(allow bool) (askResult, error) {
	if !allow {
		if id, ok := a.option(optionReject); ok {
			return selected(id), nil
		}
		return cancelled(), nil
	}
	id, ok := a.option(optionAllow)
	if !ok {
		return askResult{}, fmt.Errorf("the agent offers no way to allow this once")
	}
	return selected(id), nil
}

// decided is a user's decision that Decide passes to the goroutine of the turn.
type decided struct {
	ask    *ask
	allow  bool
	plans  bool // whether the decision ends plan mode
	result any  // the reply to the agent; nil if a value that the user entered into a form is invalid
}

// changed reports whether the agent has changed the tool call since the user saw it.
func (a *ask) changed() bool {
	now := a.tool.call
	now.Output, now.Meta = a.shown.Output, a.shown.Meta // users do not decide on these
	return a.form == nil && !reflect.DeepEqual(a.shown, now)
}

// event returns the event that asks a user for permission. inputOf is ToolQuirks.InputOf; it may be nil.
func (a *ask) event(dir string, inputOf func(Wish) json.RawMessage) cli.ApprovalAsked {
	t := a.tool
	ev := cli.ApprovalAsked{
		ID: a.key(), Tool: t.name, Title: cli.OneLine(t.call.Title, maxTitle),
		Detail: t.text(), Changes: t.changes(dir), Input: t.call.Input, Started: cli.ToolID(t.call.ID), Deaf: true,
	}
	derived := len(ev.Input) == 0 && inputOf != nil
	if derived {
		ev.Input = inputOf(Wish{
			Tool: t.name, Kind: t.call.ToolKind, Title: t.call.Title, Text: ev.Detail, Changes: len(ev.Changes),
		})
	}
	said := a.extractReason(&ev, dir)
	title := strings.TrimSpace(t.call.Title)
	switch whole := title == ev.Title; {
	case t.call.ToolKind == kindSwitch:
		ev.Tool, ev.Title = cli.PlanTool, cmp.Or(t.planFile, ev.Title)
	case said["toolCall.title"] == t.call.Title && len(ev.Changes) > 0:
		ev.Title = cli.OneLine(ev.Changes[0].Path, maxTitle)
	case !whole, ev.Detail != "" && !hasLines(ev.Detail, title): // show the action before the agent's description of it
		ev.Detail = strings.TrimSpace(title + "\n\n" + ev.Detail)
	}
	if _, once := a.option(optionAllow); !once { // never choose an option that the agent would remember permanently
		ev.Missing = "how to allow this once"
	}
	ev.Fields = a.fields(ev, dir, said)
	if derived {
		ev.Fields = append(ev.Fields, widerOf(ev.Input, dir)...)
	}
	// Qwen Code adds the field is_background to every command. Copilot repeats the command in the field commands.
	ev.Effect = cli.EffectOf(ev.Input, dir, map[string]any{"is_background": false, "commands": []any{t.command()}})
	switch ev.Tool {
	case "Bash", "bash", "shell", "run_shell_command", kindRun:
		ev.Effect.Shell = cli.ShellUseFor(ev.Reason)
	case "PowerShell", "powershell", "exec_command", "shell_command", "local_shell":
		ev.Effect.Shell = cli.ShellExplained
	}
	return ev
}

var placed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)^\[current working directory ([^\]]*)\](?: \((.*)\))?(?: (\[background\]))?$`)
})

// extractReason moves the agent's explanation of a command or an edit to ev.Reason. It returns the fields of the
// request that users then need not see separately, with their values.
func (a *ask) extractReason(ev *cli.ApprovalAsked, dir string) map[string]string {
	t, said := a.tool, map[string]string{}
	title, command := a.params.ToolCall.Title, t.command()
	m := placed().FindStringSubmatch(ev.Detail)
	if m != nil && m[1] == dir && t.call.ToolKind == kindRun && len(t.call.Content) == 1 { // Gemini's format
		said["toolCall.content[0].content.text"], ev.Detail, ev.Reason = ev.Detail, m[3], m[2]
	}
	if text := cli.TextsOf(t.call.Input)["description"]; command != "" && text != "" {
		said["toolCall.rawInput.description"], ev.Reason = text, text
	}
	switch {
	case command != "" && title == command+" ("+ev.Reason+")":
		said["toolCall.title"] = title
	case command != "" && title != command && ev.Reason == "":
		said["toolCall.title"], ev.Reason = title, title
	case len(ev.Changes) == 1 &&
		(cli.OwnWords(title) == "" || t.edits()[0].entitled(dir, strings.TrimPrefix(title, t.name+" "))):
		said["toolCall.title"] = title
	}
	ev.Reason = cli.OwnWords(ev.Reason)
	return said
}

// fields returns the values of the request that users do not already see in ev. said contains further fields that users
// already see. If the request has no input, fields takes the input from an earlier update of the tool call.
func (a *ask) fields(ev cli.ApprovalAsked, dir string, said map[string]string) []cli.Field {
	t := a.tool
	read := cli.Reading{
		Dir: dir, Said: map[string]string{}, Usual: map[string]string{
			"toolCall.kind": knownKind(a.params.ToolCall.ToolKind, len(ev.Changes)), "toolCall.locations": "[]", "toolCall.content": "[]",
			"toolCall.rawInput.is_background": "false",
		},
		Labels: []string{
			"sessionId", "options", "toolCall.toolCallId", "toolCall.status", "toolCall.content.type", "toolCall.content.content.type",
			"toolCall.content._meta.kind", "toolCall.rawInput.files.additions", "toolCall.rawInput.files.deletions",
		},
	}
	read.Said["toolCall._meta.toolName"], read.Said["toolCall.name"] = ev.Tool, ev.Tool
	if plan := cli.TextsOf(t.call.Input)["plan"]; ev.Tool == cli.PlanTool && t.name == "exit_plan_mode" && plan != "" && strings.Contains(ev.Detail, plan) {
		// Qwen Code repeats the name of its tool and the plan.
		read.Said["toolCall._meta.toolName"], read.Said["toolCall.title"], read.Said["toolCall.rawInput.plan"] = t.name, "Plan:", plan
	}
	say := func(name, value string) {
		if shown := strings.TrimSpace(value); shown == ev.Title && ev.Detail == "" || hasLines(ev.Detail, shown) {
			read.Said[name] = value
		}
	}
	if say("toolCall.title", t.call.Title); t.planFile != "" {
		read.Said["toolCall.title"] = t.call.Title
	}
	if command := t.command(); command != "" {
		say("toolCall.rawInput.command", command)
		say("toolCall.rawInput.commands[0]", command)
	}
	for i, c := range t.call.Content {
		c.say(fmt.Sprintf("toolCall.content[%d].", i), read.Said)
	}
	edits := t.edits()
	for i, l := range t.call.Locations {
		if slices.ContainsFunc(edits, func(c toolContent) bool { return cli.Absolute(dir, c.Path) == cli.Absolute(dir, l.Path) }) {
			read.Said[fmt.Sprintf("toolCall.locations[%d].path", i)] = l.Path
		}
	}
	for name, value := range t.shownInput(dir) {
		read.Said["toolCall.rawInput."+name] = value
	}
	maps.Copy(read.Said, said)
	fields := read.Fields(a.raw)
	if len(a.params.ToolCall.Input) == 0 && len(t.call.Input) > 0 {
		input := map[string]any{"rawInput": t.call.Input}
		if earlier, err := json.Marshal(map[string]any{"toolCall": input}); err == nil {
			fields = append(fields, read.Fields(earlier)...)
		}
	}
	// Remove the protocol's prefix from the names, because it means nothing to users. A field that only identifies the
	// request keeps its full name. Otherwise users could confuse it with a field of the tool's input.
	for i, f := range fields {
		if name := strings.TrimPrefix(f.Name, "toolCall."); f.Weight != cli.LabelField || strings.HasPrefix(name, "rawInput.") {
			fields[i].Name = strings.TrimPrefix(name, "rawInput.")
		}
	}
	return fields
}

// hasLines reports whether text contains part as whole lines.
func hasLines(text, part string) bool {
	return part != "" && strings.Contains("\n"+text+"\n", "\n"+part+"\n")
}

// say records in said which values of this content users see. at is the prefix of the fields' names. Of a diff without
// changes, users see only the path.
func (c toolContent) say(at string, said map[string]string) {
	switch {
	case c.Type == "content" && c.Content.Type == "text":
		said[at+"content.text"] = c.Content.Text
	case c.Type == "diff":
		said[at+"path"] = c.Path
		if c.diff() == "" {
			return
		}
		said[at+"newText"], said[at+"oldText"] = c.NewText, c.before()
		if c.OldText == nil {
			said[at+"oldText"] = "null"
		}
	}
}

// widerOf returns the fields of an input that ask for more rights than usual, such as network access.
func widerOf(input json.RawMessage, dir string) []cli.Field {
	return slices.DeleteFunc(cli.Reading{Dir: dir}.Fields(input), func(f cli.Field) bool { return f.Weight != cli.WiderField })
}

// knownKind returns kind if users need not see it, because the name of the tool already implies it. Otherwise it
// returns "". changes is the number of files that the tool changes. The name of a tool that changes files implies only
// kindEdit.
func knownKind(kind string, changes int) string {
	known := []string{kindRead, kindSearch, kindThink, kindFetch, kindEdit, kindDelete, kindMove, kindRun, kindSwitch, "other"}
	if changes > 0 {
		known = []string{kindEdit}
	}
	if slices.Contains(known, kind) {
		return kind
	}
	return ""
}
