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
	"ductor/cli/acp/toolcall"
	"ductor/cli/rpc"
)

// ask is a request of the agent to the user: for permission, or to fill in a form.
type ask struct {
	id           json.RawMessage
	params       askParams
	raw          json.RawMessage // parameters of the request
	form         *form           // nil for a permission request
	tool         *tool           // the tool call that needs permission; set by liveTurn.asked
	endsPlanMode bool
	shown        toolcall.Call // the tool call as the user saw it
	timesAsked   int           // number of times that ductor has asked the user before
}

// key returns the approval ID of the request. The ID is unique within a turn. A restart of ductor does not change it.
func (a *ask) key() cli.ApprovalID {
	key := "ask-" + rpc.Text(a.id)
	if a.timesAsked > 0 {
		key += fmt.Sprint("#", a.timesAsked)
	}
	return cli.ApprovalID(key)
}

// cancelled returns the reply that cancels the request.
func (a *ask) cancelled() any {
	if a.form != nil {
		return map[string]any{"action": "cancel"}
	}
	return cancelled()
}

// renew updates the request after the agent has changed the tool call. It also changes the request's approval ID,
// because ductor asks the user a second time.
func (a *ask) renew() {
	request := map[string]any{}
	_ = json.Unmarshal(a.raw, &request) // the same JSON was parsed before
	if call, ok := request["toolCall"].(map[string]any); ok {
		a.tool.call.Overwrite(call)
	}
	a.raw, _ = json.Marshal(request) // decoded JSON can always be encoded
	a.params, a.timesAsked = askParams{}, a.timesAsked+1
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
// remember permanently. If the agent offers no option to deny the request once, the reply cancels the request. If the
// agent offers no option to allow the request once, choose returns an error.
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
	ask          *ask
	allow        bool
	endsPlanMode bool
	result       any // the reply to the agent; nil if a value that the user entered into a form is invalid
}

// changed reports whether the agent has changed the tool call since the user saw it.
func (a *ask) changed() bool {
	now := a.tool.call
	now.Output, now.Meta = a.shown.Output, a.shown.Meta // the decision does not depend on these two fields
	return a.form == nil && !reflect.DeepEqual(a.shown, now)
}

// event returns the event that asks a user for permission. inputOf is ToolQuirks.InputOf and may be nil.
func (a *ask) event(dir string, inputOf func(Wish) json.RawMessage) cli.ApprovalAsked {
	t := a.tool
	ev := cli.ApprovalAsked{
		ID: a.key(), Tool: t.name, Title: cli.OneLine(t.call.Title, maxTitle),
		Detail: t.call.Text(), Changes: t.call.Changes(dir), Input: t.call.Input,
		Started: cli.ToolID(t.call.ID), Deaf: true,
	}
	derived := len(ev.Input) == 0 && inputOf != nil
	if derived {
		ev.Input = inputOf(Wish{
			Tool: t.name, Kind: t.call.ToolKind, Title: t.call.Title, Text: ev.Detail, Changes: len(ev.Changes),
		})
	}
	visible := a.extractReason(&ev, dir)
	title := strings.TrimSpace(t.call.Title)
	switch whole := title == ev.Title; {
	case t.call.ToolKind == toolcall.KindSwitch:
		ev.Tool, ev.Title = cli.PlanTool, cmp.Or(t.planFile, ev.Title)
	case visible["toolCall.title"] == t.call.Title && len(ev.Changes) > 0:
		ev.Title = cli.OneLine(ev.Changes[0].Path, maxTitle)
	case !whole, ev.Detail != "" && !hasLines(ev.Detail, title):
		ev.Detail = strings.TrimSpace(title + "\n\n" + ev.Detail)
	}
	if _, once := a.option(optionAllow); !once {
		ev.Missing = "how to allow this once"
	}
	ev.Fields = a.fields(ev, dir, visible)
	if derived {
		ev.Fields = append(ev.Fields, widerOf(ev.Input, dir)...)
	}
	// These two input fields need no approval of their own: Qwen Code sends is_background with every command, and
	// Copilot repeats the command in "commands".
	harmless := map[string]any{"is_background": false, "commands": []any{t.call.Command()}}
	ev.Effect = cli.EffectOf(ev.Input, dir, harmless)
	switch ev.Tool {
	case "Bash", "bash", "shell", "run_shell_command", toolcall.KindRun:
		ev.Effect.Shell = cli.ShellUseFor(ev.Reason)
	case "PowerShell", "powershell", "exec_command", "shell_command", "local_shell":
		ev.Effect.Shell = cli.ShellExplained
	}
	return ev
}

var placed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)^\[current working directory ([^\]]*)\](?: \((.*)\))?(?: (\[background\]))?$`)
})

// extractReason moves the agent's explanation of a command or an edit to ev.Reason. It returns those fields of the
// request that ev already shows, as a map from the name of each field to its value.
func (a *ask) extractReason(ev *cli.ApprovalAsked, dir string) map[string]string {
	t, visible := a.tool, map[string]string{}
	title, command := a.params.ToolCall.Title, t.call.Command()
	m := placed().FindStringSubmatch(ev.Detail)
	if m != nil && m[1] == dir && t.call.ToolKind == toolcall.KindRun && len(t.call.Content) == 1 { // Gemini's format
		visible["toolCall.content[0].content.text"], ev.Detail, ev.Reason = ev.Detail, m[3], m[2]
	}
	if text := cli.TextsOf(t.call.Input)["description"]; command != "" && text != "" {
		visible["toolCall.rawInput.description"], ev.Reason = text, text
	}
	switch {
	case command != "" && title == command+" ("+ev.Reason+")":
		visible["toolCall.title"] = title
	case command != "" && title != command && ev.Reason == "":
		visible["toolCall.title"], ev.Reason = title, title
	case len(ev.Changes) == 1 &&
		(cli.OwnWords(title) == "" || t.call.Edits()[0].Titled(dir, strings.TrimPrefix(title, t.name+" "))):
		visible["toolCall.title"] = title
	}
	ev.Reason = cli.OwnWords(ev.Reason)
	return visible
}

// fields returns the values of the request that users must see in addition to ev. It omits the values in visible. If
// the request has no input, fields uses the input from an earlier update of the tool call.
func (a *ask) fields(ev cli.ApprovalAsked, dir string, visible map[string]string) []cli.Field {
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
		// Qwen Code sends the plan in two fields.
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
	if command := t.call.Command(); command != "" {
		say("toolCall.rawInput.command", command)
		say("toolCall.rawInput.commands[0]", command)
	}
	for i, c := range t.call.Content {
		c.AddVisible(fmt.Sprintf("toolCall.content[%d].", i), read.Said)
	}
	edits := t.call.Edits()
	for i, l := range t.call.Locations {
		if slices.ContainsFunc(edits, func(e toolcall.Edit) bool { return e.About(dir, l.Path) }) {
			read.Said[fmt.Sprintf("toolCall.locations[%d].path", i)] = l.Path
		}
	}
	for name, value := range t.call.ShownInput(dir) {
		read.Said["toolCall.rawInput."+name] = value
	}
	maps.Copy(read.Said, visible)
	fields := read.Fields(a.raw)
	if len(a.params.ToolCall.Input) == 0 && len(t.call.Input) > 0 {
		input := map[string]any{"rawInput": t.call.Input}
		if earlier, err := json.Marshal(map[string]any{"toolCall": input}); err == nil {
			fields = append(fields, read.Fields(earlier)...)
		}
	}
	// Remove the protocol's prefix from names such as "toolCall.kind". A field that only identifies the request keeps
	// the prefix, because the tool's input may have a field with the same short name.
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

// widerOf returns the fields of a tool's input that request additional rights, such as network access.
func widerOf(input json.RawMessage, dir string) []cli.Field {
	return slices.DeleteFunc(cli.Reading{Dir: dir}.Fields(input), func(f cli.Field) bool { return f.Weight != cli.WiderField })
}

// knownKind returns the kind of a tool if users need not see the kind, and "" if they must see it. For a tool
// that changes files, users need not see toolcall.KindEdit. For other tools, they need not see any kind in the protocol.
func knownKind(kind string, changes int) string {
	known := append(toolcall.Kinds(), "other")
	if changes > 0 {
		known = []string{toolcall.KindEdit}
	}
	if slices.Contains(known, kind) {
		return kind
	}
	return ""
}
