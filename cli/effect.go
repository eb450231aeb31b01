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

// Effect describes the action of a request in the same terms for all agents. Rules and permission modes decide by the
// Effect, so a dialect sets only fields that are certain. The zero value describes nothing: rules and modes then leave
// the decision to the user.
type Effect struct {
	Dir string `json:"dir,omitempty"` // the directory in which the action runs
	// Command is set if the request does nothing but run this command line in Dir.
	Command string `json:"command,omitempty"`
	// Read is set if the request does nothing but read this file or list this directory.
	Read  string   `json:"read,omitempty"`
	Shell ShellUse `json:"shell,omitempty"`
	Reach Reach    `json:"reach,omitempty"`
}

// ShellUse describes how a request uses the agent's own shell. It is NoShell for tools of MCP servers, which may
// interpret a command differently.
type ShellUse string

// ShellUse values.
const (
	NoShell        ShellUse = ""
	ShellExplained ShellUse = "explained" // the agent gives a reason for asking, or it is no POSIX shell
	ShellRoutine   ShellUse = "routine"   // the agent gives no reason for asking, such as more rights
)

// ShellUseFor returns the ShellUse of a request with the given reason for asking.
func ShellUseFor(reason string) ShellUse {
	if reason == "" {
		return ShellRoutine
	}
	return ShellExplained
}

// Reach determines how much a rule for one request can cover.
type Reach string

// Reach values, from narrow to wide.
const (
	ReachUnknown Reach = ""      // nothing: the input is not an object, or repeats a field
	ReachExact   Reach = "exact" // the same input: it names a command, a directory, a file or a right
	ReachTool    Reach = "tool"  // all uses of the tool: the input names none of them
)

// targetFields lists the names that agents use for commands, directories, files and rights.
func targetFields() []string {
	return []string{
		"command", "cwd", "workdir", "permissions", "grantRoot", "additionalPermissions", "networkApprovalContext",
		"file_path", "notebook_path", "path", "paths", "fileName", "resolvedPath", "fileEdits",
	}
}

// identifyingFields lists the names of fields that identify one request and do not affect its action.
func identifyingFields() []string {
	return []string{
		"toolCallId", "tool_call_id", "tool_use_id", "toolUseId", "callId", "call_id", "itemId", "threadId", "turnId",
		"approvalId", "requestId", "startedAtMs", "availableDecisions", "proposedExecpolicyAmendment", "commandActions",
	}
}

// EffectOf returns the effect of a request's input in a turn with the working directory dir. It uses the field names
// that agents share. usual lists values of other fields that do not change the action of a command.
func EffectOf(input json.RawMessage, dir string, usual map[string]any) Effect {
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
			alone = alone && reflect.DeepEqual(value, usual[name])
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

// HasOnlyFields reports whether an input is an object whose effective fields are all in names. An object that repeats a
// field does not qualify.
func HasOnlyFields(input json.RawMessage, names ...string) bool {
	fields, ok := effectiveFields(input)
	for name := range fields {
		ok = ok && slices.Contains(names, name)
	}
	return ok
}

// effectiveFields returns the fields of an input that affect its action. It returns false if the input is not an object
// or repeats a field.
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

// inShell matches a shell that runs a single command, such as sh -c 'make'. Some agents wrap every command in such a
// shell.
var inShell = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:/usr)?(?:/bin/)?(?:ba|z)?sh -l?c (?:'([^']+)'|([A-Za-z0-9_./-]+))$`)
})
