package codex

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
)

// approvalOf converts a request of Codex to an event that asks the user for permission.
func (t *liveTurn) approvalOf(a *inquiry) cli.ApprovalAsked {
	p := a.params
	ev := cli.ApprovalAsked{ID: a.id, Reason: cli.OwnWords(p.Reason), Input: a.m.Params, Started: t.parser.tool(p.Item)}
	read := readingOf(p, t.Req.Dir)
	ev.Effect = cli.EffectOf(ev.Input, t.Req.Dir, map[string]any{"kind": "command", "environmentId": "local"})
	switch a.m.Method {
	case askCommand:
		askForCommand(&ev, p, &read)
	case askFiles:
		askForFiles(&ev, t.parser.changes[p.Item], t.Req.Dir)
	case askPermissions:
		ev.Tool, ev.Title, ev.Detail = "permissions", titleOf(cmp.Or(p.Reason, "more permissions")), "More permissions until this turn ends."
	case askServer:
		askForServer(&ev, p, &read)
	}
	ev.Fields = append(ev.Fields, read.Fields(a.m.Params)...)
	for i, f := range ev.Fields { // remove the protocol's prefix from the names of fields
		if f.Weight != cli.LabelField {
			ev.Fields[i].Name = strings.TrimPrefix(f.Name, "_meta.tool_params.")
		}
	}
	if a.m.Method == askPermissions && !ev.Widens() {
		ev.Missing = "the permissions"
	}
	return ev
}

// readingOf describes the fields that every request of Codex may contain. A request may propose a rule that also allows
// later requests. ductor never accepts such a rule, so users need not see it.
func readingOf(p askParams, dir string) cli.Reading {
	return cli.Reading{
		Dir:  dir,
		Said: map[string]string{"reason": p.Reason},
		Usual: map[string]string{
			"kind": "command", "environmentId": "local", "command": "", "reason": "", "mode": "form", "_meta": "",
			"requestedSchema.type": "object", "requestedSchema.properties": "{}",
		},
		Labels: []string{
			"threadId", "turnId", "itemId", "startedAtMs", "approvalId", "elicitationId", "availableDecisions",
			"commandActions", "proposedExecpolicyAmendment", "proposedNetworkPolicyAmendments",
		},
		Wider: []string{"permissions", "url"},
	}
}

// askForFiles adds the changes of a patch to ev. If the patch's JSON contains values that ductor does not know, they
// become fields of ev. No rule then allows the request, so a user decides.
func askForFiles(ev *cli.ApprovalAsked, p patch, dir string) {
	ev.Tool, ev.Changes = "patch", changesOf(p.files, cli.FileReplaced) // a moved file may replace an existing one
	ev.Title = titleOf(pathsOf(ev.Changes, dir))
	if len(p.files) == 0 || slices.ContainsFunc(p.files, func(c liveChange) bool { return c.Path == "" }) {
		ev.Missing = "the changes"
	}
	read := cli.Reading{Dir: dir, Said: map[string]string{}, Usual: map[string]string{"changes.kind.move_path": ""}}
	for i, c := range p.files {
		at := fmt.Sprintf("changes[%d].", i)
		read.Said[at+"path"], read.Said[at+"diff"], read.Said[at+"kind.move_path"] = c.Path, c.Diff, c.Kind.Move
		switch cli.ChangeKind(c.Kind.Type) {
		case cli.FileAdded, cli.FileUpdated, cli.FileDeleted:
			read.Said[at+"kind"], read.Said[at+"kind.type"] = c.Kind.Type, c.Kind.Type
		}
	}
	if p.raw == nil {
		return
	}
	ev.Fields = read.Fields(jsonOf(map[string]json.RawMessage{"changes": p.raw}))
	for i, f := range ev.Fields {
		if f.Weight == cli.PlainField {
			ev.Fields[i].Weight = cli.WiderField
		}
	}
}

// askForCommand adds the command to ev. Codex runs the model's command in a shell, such as bash -lc. If possible,
// askForCommand shows users only the model's command.
func askForCommand(ev *cli.ApprovalAsked, p askParams, read *cli.Reading) {
	shown := plainCommand(p.Command)
	ev.Tool, ev.Detail, ev.Title = "shell", shown, titleOf(shown)
	ev.Effect.Shell = cli.ShellUseFor(ev.Reason)
	switch {
	case shown == p.Command:
		read.Said["command"] = p.Command
	case sameCommand(shown, p.Command):
		read.Usual["command"] = p.Command
	default:
		ev.Detail, read.Said["command"] = p.Command, p.Command
	}
	if ev.Title == ev.Detail {
		ev.Detail = ""
	}
	if strings.TrimSpace(p.Command) == "" {
		if len(p.Network) == 0 || string(p.Network) == "null" {
			ev.Missing = "the command"
		}
	}
}

// sameCommand reports whether the command line raw only runs a shell with the given command.
func sameCommand(shown, raw string) bool {
	double := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(shown)
	inner := cli.CutShellCall(raw)
	return inner == `'`+strings.ReplaceAll(shown, `'`, `'\''`)+`'` || inner == `"`+double+`"` || inner == shown && oneWord(shown)
}

// oneWord reports whether a shell reads s as one word.
func oneWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./", r))
	})
}

// askForServer adds a request that concerns an MCP server to ev. Either the server itself asks the user, or Codex asks
// to use one of the server's tools.
func askForServer(ev *cli.ApprovalAsked, p askParams, read *cli.Reading) {
	ev.Tool, ev.Title, ev.Detail = p.Server, titleOf(p.Message), p.Message
	if ev.Title == ev.Detail {
		ev.Detail = ""
	}
	read.Said["serverName"], read.Said["message"] = p.Server, p.Message
	if p.Meta.Kind != "mcp_tool_call" {
		return
	}
	ev.Effect.Server = p.Server
	if p.Meta.Tool != "" {
		ev.Tool += "." + p.Meta.Tool
		read.Said["_meta.tool_name"] = p.Meta.Tool
	}
	read.Usual["_meta.codex_approval_kind"] = p.Meta.Kind
	read.Labels = append(read.Labels, "_meta.persist", "_meta.tool_description")
	for i, shown := range p.Meta.Display { // users see these parameters in another part of the request
		at := fmt.Sprintf("_meta.tool_params_display[%d].", i)
		read.Said[at+"name"], read.Said[at+"display_name"] = shown.Name, shown.Name
		read.Said[at+"value"] = textOf(p.Meta.Parameters[shown.Name])
	}
}

// textOf returns the value in raw as text, or "" if raw does not contain exactly one value; see cli.Leaves.
func textOf(raw json.RawMessage) string {
	if leaves := cli.Leaves(raw); len(leaves) == 1 {
		return leaves[0].Value
	}
	return ""
}
