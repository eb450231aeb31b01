package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/cli/rpc"
)

// ask is a request for permission that waits for an answer.
type ask struct {
	id     json.RawMessage // of the request
	params askParams
	raw    json.RawMessage // params, whole
	tool   *tool           // set by the turn
	plans  bool            // allowing it ends the mode in which nothing but plans is made; set by the turn
}

// key is the ask's name in a turn. It is the same after a restart.
func (a *ask) key() cli.ApprovalID { return cli.ApprovalID("ask-" + rpc.Text(a.id)) }

// option finds the option of a kind.
func (a *ask) option(kind string) (string, bool) {
	i := slices.IndexFunc(a.params.Options, func(o askOption) bool { return o.Kind == kind })
	if i < 0 {
		return "", false
	}
	return a.params.Options[i].ID, true
}

// choose gives the reply to the agent. What an agent would remember for good is never picked: it cannot be allowed
// where it offers nothing less, and denying becomes giving up.
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

// decided is a decision on its way to the turn.
type decided struct {
	ask   *ask
	allow bool
}

// event is the question as a user reads it.
func (a *ask) event(dir string, inputOf func(Wish) json.RawMessage) cli.ApprovalAsked {
	t := a.tool
	ev := cli.ApprovalAsked{
		ID: a.key(), Tool: t.name, Title: cli.OneLine(t.Title, maxTitle),
		Detail: t.text(), Changes: t.changes(dir), Input: t.Input, Started: cli.ToolID(t.ID), Deaf: true,
	}
	derived := len(ev.Input) == 0 && inputOf != nil
	if derived {
		ev.Input = inputOf(Wish{Tool: t.name, Kind: t.ToolKind, Title: t.Title, Text: ev.Detail, Changes: len(ev.Changes)})
	}
	title := strings.TrimSpace(t.Title)
	switch whole := title == ev.Title; {
	case t.ToolKind == kindSwitch:
		ev.Tool, ev.Title = cli.PlanTool, cmp.Or(t.planFile, ev.Title)
	case !whole, ev.Detail != "" && !hasLines(ev.Detail, title): // what is done comes before what is said of it
		ev.Detail = strings.TrimSpace(title + "\n\n" + ev.Detail)
	}
	if _, once := a.option(optionAllow); !once { // what the agent would remember for good is never picked
		ev.Missing = "how to allow this once"
	}
	ev.Fields = a.fields(ev, dir)
	if derived {
		ev.Fields = append(ev.Fields, widerOf(ev.Input, dir)...)
	}
	return ev
}

// fields are what the request holds, and the input where only an earlier update had it.
func (a *ask) fields(ev cli.ApprovalAsked, dir string) []cli.Field {
	t := a.tool
	read := cli.Reading{
		Dir: dir, Said: map[string]string{}, Usual: map[string]string{
			"toolCall.kind": knownKind(a.params.ToolCall.ToolKind), "toolCall.locations": "[]", "toolCall.content": "[]",
		},
		Labels: []string{
			"sessionId", "options", "toolCall.toolCallId", "toolCall.status", "toolCall.content.type", "toolCall.content.content.type",
			"toolCall.content._meta.kind",
		},
	}
	say := func(name, value string) {
		if shown := strings.TrimSpace(value); shown == ev.Title && ev.Detail == "" || hasLines(ev.Detail, shown) {
			read.Said[name] = value
		}
	}
	if say("toolCall.title", t.Title); t.planFile != "" {
		read.Said["toolCall.title"] = t.Title
	}
	if command := t.command(); command != "" {
		say("toolCall.rawInput.command", command)
		say("rawInput.command", command)
	}
	for i, c := range t.Content {
		c.say(fmt.Sprintf("toolCall.content[%d].", i), read.Said)
	}
	for i, l := range t.Locations {
		if slices.ContainsFunc(t.Content, func(c toolContent) bool { return c.Type == "diff" && c.Path == l.Path }) {
			read.Said[fmt.Sprintf("toolCall.locations[%d].path", i)] = l.Path
		}
	}
	fields := read.Fields(a.raw)
	if len(a.params.ToolCall.Input) == 0 && len(t.Input) > 0 {
		if earlier, err := json.Marshal(map[string]json.RawMessage{"rawInput": t.Input}); err == nil {
			fields = append(fields, read.Fields(earlier)...)
		}
	}
	return fields
}

// hasLines says whether some whole lines of text are part.
func hasLines(text, part string) bool {
	return part != "" && strings.Contains("\n"+text+"\n", "\n"+part+"\n")
}

// say adds what the card shows of a piece of the request. Where a diff is empty it does not show the text.
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

// widerOf are the fields of an input that ask for more than usual.
func widerOf(input json.RawMessage, dir string) []cli.Field {
	return slices.DeleteFunc(cli.Reading{Dir: dir}.Fields(input), func(f cli.Field) bool { return f.Weight != cli.WiderField })
}

// knownKind is a kind that the protocol knows, which says nothing beside the tool's name.
func knownKind(kind string) string {
	if slices.Contains([]string{kindRead, kindSearch, kindThink, kindFetch, kindEdit, kindDelete, kindMove, kindRun, kindSwitch, "other"}, kind) {
		return kind
	}
	return ""
}
