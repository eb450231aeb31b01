package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Effect describes the action in a request for approval, in the same terms for all agents. Approval rules and
// permission modes use it to decide about the request. A provider sets only those fields that it derives with
// certainty. If no field is set, rules and modes leave the decision to the user.
type Effect struct {
	Dir string `json:"dir,omitempty"` // the directory in which the action runs
	// Command is set if the request only runs this command line in Dir.
	Command string `json:"command,omitempty"`
	// Read is set if the request only reads this file or lists this directory.
	Read string `json:"read,omitempty"`
	// Server is set if the request only uses a tool of this MCP server, and the agent reports the name of the server
	// separately from the name of the tool.
	Server string   `json:"server,omitempty"`
	Shell  ShellUse `json:"shell,omitempty"`
	Reach  Reach    `json:"reach,omitempty"`
}

// ShellUse describes whether a request uses the agent's own shell, and whether the agent gave a reason for asking the
// user. Requests of MCP tools have NoShell, because an MCP server may interpret a command differently.
type ShellUse string

// ShellUse values.
const (
	NoShell ShellUse = ""
	// ShellExplained means that the agent gave a reason for asking. Commands for a shell that is no POSIX shell, such
	// as PowerShell, always have this value.
	ShellExplained ShellUse = "explained"
	// ShellRoutine means that the agent asks without giving a reason.
	ShellRoutine ShellUse = "routine"
)

// ShellUseFor returns the ShellUse of a request to run a command. reason is the agent's reason for asking, or "".
func ShellUseFor(reason string) ShellUse {
	if reason == "" {
		return ShellRoutine
	}
	return ShellExplained
}

// Reach determines which other requests an "always allow" rule can cover if a user creates the rule from this request.
type Reach string

// Values of Reach, from narrow to wide.
const (
	// ReachUnknown means that the input is not an object, or repeats a field. A rule then covers no other request.
	ReachUnknown Reach = ""
	// ReachExact means that the input contains a command, a directory, a file or permissions; see targetFields. A rule
	// then covers only requests with an equal input.
	ReachExact Reach = "exact"
	// ReachTool means that the input contains none of the fields in targetFields. A rule then covers all requests for
	// the tool.
	ReachTool Reach = "tool"
)

// targetFields lists the input fields in which agents name commands, directories, files and rights.
func targetFields() []string {
	return []string{
		"command", "cwd", "workdir", "permissions", "grantRoot", "additionalPermissions", "networkApprovalContext",
		"file_path", "notebook_path", "path", "paths", "fileName", "resolvedPath", "fileEdits",
	}
}

// identifyingFields lists the input fields that only identify a request, and do not change its effect.
func identifyingFields() []string {
	return []string{
		"toolCallId", "tool_call_id", "tool_use_id", "toolUseId", "callId", "call_id", "itemId", "threadId", "turnId",
		"approvalId", "requestId", "startedAtMs", "availableDecisions", "proposedExecpolicyAmendment", "commandActions",
	}
}

// EffectOf derives the effect of a request from its input. It knows the field names that most agents share. dir is the
// working directory of the turn. usualValues contains further fields that do not change the effect of a command if they
// have the given value.
func EffectOf(input json.RawMessage, dir string, usualValues map[string]any) Effect {
	e := Effect{Dir: dir}
	fields, ok := effectiveFields(input)
	if !ok {
		return e
	}
	e.Reach = ReachTool
	alone := true
	for name, value := range fields {
		if slices.Contains(targetFields(), name) {
			e.Reach = ReachExact
		}
		switch name {
		case "command", "description", "timeout", "reason":
		case "cwd", "workdir":
			if value != dir {
				e.Dir = fmt.Sprint(value)
			}
		default:
			alone = alone && reflect.DeepEqual(value, usualValues[name])
		}
	}
	if command, _ := fields["command"].(string); alone && strings.TrimSpace(command) != "" {
		e.Command = command
		if m := inShell().FindStringSubmatch(command); m != nil {
			e.Command = m[1] + m[2]
		}
	}
	return e
}

// HasOnlyFields reports whether an input is an object whose fields are all in names. It returns false if a field occurs
// twice. It ignores fields that are null or only identify the request.
func HasOnlyFields(input json.RawMessage, names ...string) bool {
	fields, ok := effectiveFields(input)
	for name := range fields {
		ok = ok && slices.Contains(names, name)
	}
	return ok
}

// effectiveFields returns the fields of an input, without null values and without those fields that only identify the
// request. It returns false if the input is not an object or repeats a field.
func effectiveFields(input json.RawMessage) (map[string]any, bool) {
	said := map[string]bool{}
	for _, l := range Leaves(input) {
		if said[l.Name] {
			return nil, false
		}
		said[l.Name] = true
	}
	var fields map[string]any
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.UseNumber()
	if err := dec.Decode(&fields); err != nil || fields == nil {
		return nil, false
	}
	for name, value := range fields {
		if value == nil || slices.Contains(identifyingFields(), name) {
			delete(fields, name)
		}
	}
	return fields, true
}

// shellCall matches the part of a command line that calls a shell of the system with one command, such as "sh -c ". A
// shell in another directory may be any program.
const shellCall = `^(?:(?:/usr)?/bin/)?(?:ba|z)?sh -l?c `

// inShell matches a command line that only passes one command to a shell, such as sh -c 'make'. Some agents write every
// command this way.
var inShell = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(shellCall + `(?:'([^']+)'|([A-Za-z0-9_./-]+))$`)
})

var startsWithShellCall = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(shellCall) })

// CutShellCall removes the call of a shell of the system, such as "/usr/bin/zsh -lc ", from the start of a command
// line. It returns the shell word with the command. It returns other command lines unchanged.
func CutShellCall(command string) string {
	return command[len(startsWithShellCall().FindString(command)):]
}
