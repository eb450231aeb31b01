package acp

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"ductor/cli/acp/workspace"
	"ductor/cli/rpc"
)

// protocol is the published schema; see testdata/protocol.
var protocol = sync.OnceValue(func() (p struct {
	Defs map[string]*jsonschema.Schema `json:"$defs"`
}) {
	raw, err := os.ReadFile("testdata/protocol/schema.json")
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil {
		panic(err)
	}
	return p
})

// defOf returns the name of the definition of a method's parameters, or of its result.
func defOf(method string, result bool) string {
	for name, def := range protocol().Defs {
		if def.Extra["x-method"] == method && strings.HasSuffix(name, "Response") == result {
			return name
		}
	}
	return ""
}

var resolved sync.Map // schemas by the names of their definitions

// violations explains how a value violates a definition: by its shape, or by a field that the definition does not have.
func violations(def string, raw json.RawMessage) (all []string) {
	schema, ok := resolved.Load(def)
	if !ok {
		root := &jsonschema.Schema{Ref: "#/$defs/" + def, Defs: protocol().Defs}
		r, err := root.CloneSchemas().Resolve(nil)
		if err != nil {
			return []string{err.Error()}
		}
		schema, _ = resolved.LoadOrStore(def, r)
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return []string{err.Error()}
	}
	if err := schema.(*jsonschema.Resolved).Validate(value); err != nil {
		all = append(all, err.Error())
	}
	unknownFields([]*jsonschema.Schema{protocol().Defs[def]}, value, def,
		func(field string) { all = append(all, "the schema has no "+field) })
	return all
}

// parts returns the schemas that together describe a value: alternatives, references and conjunctions.
func parts(all []*jsonschema.Schema) (flat []*jsonschema.Schema) {
	for _, s := range all {
		if s == nil {
			continue
		}
		flat = append(flat, s)
		if s.Ref != "" {
			flat = append(flat, parts([]*jsonschema.Schema{protocol().Defs[strings.TrimPrefix(s.Ref, "#/$defs/")]})...)
		}
		flat = append(flat, parts(slices.Concat(s.AllOf, s.AnyOf, s.OneOf))...)
	}
	return flat
}

// unknownFields reports the fields of a value that none of the schemas has.
func unknownFields(schemas []*jsonschema.Schema, value any, path string, report func(string)) {
	schemas = parts(schemas)
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			var next []*jsonschema.Schema
			free := false
			for _, s := range schemas {
				if p := s.Properties[name]; p != nil {
					next = append(next, p)
				}
				free = free || s.AdditionalProperties != nil
			}
			switch {
			case next != nil:
				unknownFields(next, v, path+"."+name, report)
			case !free && !untyped(schemas):
				report(path + "." + name)
			}
		}
	case []any:
		var items []*jsonschema.Schema
		for _, s := range schemas {
			items = append(items, s.Items)
		}
		for _, v := range value {
			unknownFields(items, v, path+"[]", report)
		}
	}
}

// untyped reports whether the schemas say nothing about a value, such as a tool's input.
func untyped(schemas []*jsonschema.Schema) bool {
	return !slices.ContainsFunc(schemas, func(s *jsonschema.Schema) bool {
		return s.Properties != nil || s.Items != nil || s.Type != "" || s.Types != nil
	})
}

// older are methods without a place in the schema: from the protocol before June 2026, and from Qwen Code.
func older() []string { return []string{methodSetModel, methodModels} }

// checkSent checks a message from ductor, and its answer to a request of the agent.
func checkSent(t *testing.T, m rpc.Message) {
	t.Helper()
	if m.Method == "" || slices.Contains(older(), m.Method) {
		return
	}
	def := defOf(m.Method, false)
	if def == "" {
		t.Errorf("the schema has no method %s", m.Method)
		return
	}
	for _, v := range violations(def, m.Params) {
		t.Errorf("ductor sent %s %s: %s", m.Method, m.Params, v)
	}
}

func TestTheSchemaFindsViolations(t *testing.T) {
	for _, c := range []struct{ def, raw, want string }{
		{"NewSessionRequest", `{"cwd":"/d","mcpServers":[]}`, ""},
		{"NewSessionRequest", `{"mcpServers":[]}`, "cwd"},
		{"NewSessionRequest", `{"cwd":"/d","mcpServers":[],"dir":"/d"}`, "no NewSessionRequest.dir"},
		{"NewSessionRequest", `{"cwd":"/d","mcpServers":[{"name":"a","command":"b","args":[],` +
			`"env":[{"name":"n","value":"v","secret":1}]}]}`, "env[].secret"},
		{"SessionNotification", `{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"x",` +
			`"rawInput":{"any":{"thing":1}}}}`, ""},
		{"SessionNotification", `{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"x",` +
			`"input":1}}`, "update.input"},
		{"SetSessionConfigOptionRequest", `{"sessionId":"s","configId":"c","value":1}`, "anyOf"},
	} {
		got := strings.Join(violations(c.def, json.RawMessage(c.raw)), "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %q, want %q", c.def, c.raw, got, c.want)
		}
	}
	var wrong []string
	goFields([]*jsonschema.Schema{protocol().Defs["NewSessionRequest"]}, reflect.TypeFor[struct {
		Dir string `json:"cwd"`
		MCP []struct {
			Program string `json:"program"`
		} `json:"mcpServers"`
	}](), "new", func(field string) { wrong = append(wrong, field) })
	if !slices.Equal(wrong, []string{"new.mcpServers.program"}) {
		t.Errorf("of a type it finds %v", wrong)
	}
}

// ductor's types have only fields of the schema, apart from fields of older agents and of single programs.
func TestTheTypesOfTheProtocol(t *testing.T) {
	own := []string{
		"NewSessionResponse.models",               // before June 2026
		"PromptResponse.usage",                    // a draft
		"RequestPermissionResponse.answers",       // Qwen Code's
		"CancelRequestNotification.elicitationId", // of CompleteElicitationNotification
		"InitializeResponse.authMethods.vars",     // before July 2026
	}
	for def, value := range map[string]any{
		"InitializeResponse": initialized{}, "NewSessionResponse": gotSession{}, "PromptResponse": prompted{},
		"SessionNotification": updateParams{}, "CancelRequestNotification": overParams{},
		"CreateElicitationRequest": form{},
		"RequestPermissionRequest": askParams{}, "RequestPermissionResponse": askResult{},
		"ListSessionsRequest": listParams{}, "ListSessionsResponse": listed{},
		"SetSessionConfigOptionRequest": optionParams{}, "CreateTerminalRequest": workspace.RunRequest{},
	} {
		goFields([]*jsonschema.Schema{protocol().Defs[def]}, reflect.TypeOf(value), def, func(field string) {
			if !slices.Contains(own, field) {
				t.Errorf("the schema has no %s", field)
			}
		})
	}
}

// goFields reports the JSON fields of a type that none of the schemas has. Fields of _meta are not in any schema.
func goFields(schemas []*jsonschema.Schema, of reflect.Type, path string, report func(string)) {
	schemas = parts(schemas)
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice:
		var items []*jsonschema.Schema
		for _, s := range schemas {
			items = append(items, s.Items)
		}
		if of.Kind() == reflect.Pointer {
			items = schemas
		}
		goFields(items, of.Elem(), path, report)
	case reflect.Struct:
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous {
				goFields(schemas, f.Type, path, report)
			}
			if name == "" || name == "_meta" {
				continue
			}
			var next []*jsonschema.Schema
			for _, s := range schemas {
				if p := s.Properties[name]; p != nil {
					next = append(next, p)
				}
			}
			if next == nil && !untyped(schemas) {
				report(path + "." + name)
				continue
			}
			goFields(next, f.Type, path+"."+name, report)
		}
	}
}

// ductor reads every message of the documentation that it claims to read.
func TestTheExamplesOfTheProtocol(t *testing.T) {
	raw, err := os.ReadFile("testdata/protocol/examples.json")
	if err != nil {
		t.Fatal(err)
	}
	var examples []struct {
		Page    string
		Message rpc.Message
	}
	if err := json.Unmarshal(raw, &examples); err != nil {
		t.Fatal(err)
	}
	read := map[string]int{}
	for _, e := range examples {
		kind, err := decodeExample(e.Message)
		if err != nil {
			t.Errorf("%s: %s %s%s: %v", e.Page, e.Message.Method, e.Message.Params, e.Message.Result, err)
		}
		read[kind]++
	}
	for _, kind := range []string{
		"initialize", "session", "list", "prompt", "session/request_permission", updateMessage, updateTool,
		updateToolNow, updatePlan, updateUsage, updateMode, updateOffers, updateInfo,
		"terminal/create", "fs/read_text_file", "fs/write_text_file",
	} {
		if read[kind] == 0 {
			t.Errorf("no example of %s was read; there are %v", kind, read)
		}
	}
}

// decodeExample decodes a message into ductor's type, and returns its kind. It fails if nothing was decoded.
func decodeExample(m rpc.Message) (kind string, err error) {
	decode := func(raw json.RawMessage, into any) error {
		if err := json.Unmarshal(raw, into); err != nil {
			return err
		}
		if reflect.ValueOf(into).Elem().IsZero() {
			return fmt.Errorf("nothing of it was read")
		}
		return nil
	}
	var result map[string]json.RawMessage
	_ = json.Unmarshal(m.Result, &result) // a request has none
	var u updateParams
	switch {
	case m.Method == methodUpdate:
		err = decode(m.Params, &u)
		return u.Update.Kind, err
	case m.Method == methodAsk:
		return m.Method, decode(m.Params, &askParams{})
	case m.Method == "terminal/create":
		return m.Method, decode(m.Params, &workspace.RunRequest{})
	case strings.HasPrefix(m.Method, "fs/"):
		return m.Method, decode(m.Params, &struct{ Path string }{})
	case result["agentCapabilities"] != nil:
		return "initialize", decode(m.Result, &initialized{})
	case result["sessionId"] != nil:
		return "session", decode(m.Result, &gotSession{})
	case result["sessions"] != nil:
		return "list", decode(m.Result, &listed{})
	case result["stopReason"] != nil:
		return "prompt", decode(m.Result, &prompted{})
	}
	return "", nil
}
