package agent_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shape is the JSON types seen at each path of one kind of event, and how often each path was there.
type shape struct {
	types map[string]map[string]bool
	seen  map[string]int
	total int
}

// shapes are by kind of event.
type shapes map[string]*shape

// kindOf returns the kind of an event. Events of one kind have the same fields.
func kindOf(e event) string {
	parts := []string{fmt.Sprint(e["type"]), fmt.Sprint(e["subtype"])}
	for _, key := range []string{"event", "request", "response", "item", "params"} {
		if in, ok := e[key].(event); ok {
			parts = append(parts, fmt.Sprint(in["type"]), fmt.Sprint(in["subtype"]))
			if d, ok := in["delta"].(event); ok {
				parts = append(parts, fmt.Sprint(d["type"]))
			}
			if b, ok := in["content_block"].(event); ok {
				parts = append(parts, fmt.Sprint(b["type"]))
			}
			if r, ok := in["response"].(event); ok {
				parts = append(parts, strings.Join(slices.Sorted(maps.Keys(r)), ","))
			}
		}
	}
	if e["type"] == "result" && e["errors"] != nil {
		parts = append(parts, "with errors")
	}
	if m, ok := e["message"].(event); ok {
		parts = append(parts, fmt.Sprint(m["model"] == "<synthetic>"), contentKind(m["content"]),
			fmt.Sprint(e["isReplay"]))
	}
	if r, ok := e["result"].(event); ok {
		parts = append(parts, "reply", strings.Join(slices.Sorted(maps.Keys(r)), ","))
	}
	if e["method"] != nil {
		parts = append(parts, fmt.Sprint(e["method"]))
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "<nil>" || s == "" }), " ")
}

func contentKind(content any) string {
	blocks, ok := content.([]any)
	if !ok || len(blocks) == 0 {
		return fmt.Sprintf("%T", content)
	}
	b := blocks[0].(event)
	return fmt.Sprint(b["type"], b["is_error"])
}

func (s shapes) add(e event) {
	kind := kindOf(e)
	sh := s[kind]
	if sh == nil {
		sh = &shape{types: map[string]map[string]bool{}, seen: map[string]int{}}
		s[kind] = sh
	}
	sh.total++
	once := map[string]bool{}
	walk("", e, func(path, typ string) {
		if sh.types[path] == nil {
			sh.types[path] = map[string]bool{}
		}
		sh.types[path][typ] = true
		if !once[path] {
			once[path] = true
			sh.seen[path]++
		}
	})
}

// walk visits every path of v. Names that are data are written as a star.
func walk(path string, v any, visit func(path, typ string)) {
	switch v := v.(type) {
	case event:
		visit(path, "object")
		for k, in := range v {
			if strings.HasSuffix(path, "/modelUsage") {
				k = "*"
			}
			if k == "input" || k == "tool_input" || k == "structuredPatch" || k == "compact_metadata" {
				visit(path+"/"+k, fmt.Sprintf("%T", in))
				continue
			}
			walk(path+"/"+k, in, visit)
		}
	case []any:
		visit(path, "array")
		for _, in := range v {
			walk(path+"[]", in, visit)
		}
	case nil:
		visit(path, "null")
	default:
		visit(path, fmt.Sprintf("%T", v))
	}
}

func recorded(t *testing.T, agent string) shapes {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "recorded", agent, "*.ndjson"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	all := shapes{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			var e event
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			all.add(e)
		}
	}
	return all
}

// compare checks the scripted agent's events against recordings of the real one. Each kind of event and each field
// must have been recorded, with the same type, and all fields that were always recorded must be present. left lists
// fields that the scripted agent omits on purpose.
func compare(t *testing.T, want, got shapes, left ...string) {
	t.Helper()
	for kind, g := range got {
		w := want[kind]
		if w == nil {
			t.Errorf("never recorded: %s", kind)
			continue
		}
		for path, types := range g.types {
			for typ := range types {
				if !w.types[path][typ] && !emptyList(path, w) {
					t.Errorf("%s: %s is %s, recorded %v", kind, path, typ, slices.Collect(maps.Keys(w.types[path])))
				}
			}
		}
		for path, n := range w.seen {
			if n == w.total && g.seen[path] != g.total &&
				!slices.ContainsFunc(left, func(l string) bool { return strings.HasPrefix(path, l) }) &&
				!strings.Contains(path, "[]") {
				t.Errorf("%s: %s is missing", kind, path)
			}
		}
	}
}

// emptyList reports whether path lies in a list that was always recorded empty, so its fields are unknown.
func emptyList(path string, w *shape) bool {
	list, _, ok := strings.Cut(path, "[]")
	return ok && w.types[list]["array"] && w.types[list+"[]"] == nil
}

func TestClaudeLooksLikeItsRecordings(t *testing.T) {
	p, got := newPlace(t), shapes{}
	p.env = append(p.env, "CLAUDE_CODE_MAX_RETRIES=1")
	for _, prompt := range []string{
		`[[think hm]][[text "Hello"]][[tool "echo hi"]][[tool "exit 3"]][[tool "true"]][[text last]]`,
		`[[write path=f.txt text=hey]]`, `[[error 401 delay=1ms]]`, `[[error 529 delay=1ms]]`, `[[error 400]]`,
		`[[retry-text half]][[text whole]]`, `[[compact]][[text x]]`, `/nonexistent`,
	} {
		for _, e := range p.claude(t, prompt, "--permission-mode", "acceptEdits").events() {
			got.add(e)
		}
	}
	for _, args := range [][]string{{"--max-turns", "1"}, {"--max-budget-usd", "0.001"},
		{"--resume", "11111111-2222-3333-4444-555555555555"}} {
		for _, e := range p.claude(t, `[[tool "echo hi"]][[tool "echo hi"]]`, args...).events() {
			got.add(e)
		}
	}
	for _, e := range p.claude(t, `[[write path=g.txt text=hey]]`).events() {
		got.add(e)
	}
	l := p.startClaude(t, "--replay-user-messages")
	l.send(`{"type":"control_request","request_id":"1","request":{"subtype":"initialize","hooks":{}}}`)
	l.say(`[[ask "touch x"]]`)
	id := l.until("control_request")["request_id"].(string)
	l.send(`{"type":"control_response","response":{"subtype":"success","request_id":"` + id +
		`","response":{"behavior":"deny","message":"no"}}}`)
	l.until("result")
	l.say(`[[ask "touch x"]]`)
	l.until("control_request")
	l.send(`{"type":"control_request","request_id":"6","request":{"subtype":"interrupt"}}`)
	l.until("result")
	l.say(`[[text abc]][[hang]]`)
	l.until("stream_event")
	l.send(`{"type":"control_request","request_id":"2","request":{"subtype":"interrupt"}}`)
	l.send(`{"type":"control_request","request_id":"3","request":{"subtype":"set_model","model":"sonnet"}}`)
	l.send(`{"type":"control_request","request_id":"4","request":{"subtype":"set_permission_mode","mode":"plan"}}`)
	l.send(`{"type":"control_request","request_id":"5","request":{"subtype":"nonsense"}}`)
	l.until("result")
	l.in.Close()
	l.wait()
	for _, e := range l.all {
		got.add(e)
	}
	compare(t, recorded(t, "claude"), got)
}

func TestCodexLooksLikeItsRecordings(t *testing.T) {
	p, got := newPlace(t), shapes{}
	for _, prompt := range []string{
		`[[think hm]][[text "Hello"]][[tool "echo out; exit 3"]][[write path=f.txt text=hey]]`,
		`[[error 401 delay=1ms]]`, `[[error 429]]`,
	} {
		for _, e := range p.codex(t, prompt, "-s", "workspace-write").events() {
			got.add(e)
		}
	}
	l := p.start(t, "codex", "app-server")
	l.send(`{"id":1,"method":"initialize","params":{"clientInfo":{"name":"test","version":"1"}}}`)
	l.send(`{"id":2,"method":"model/list","params":{}}`)
	l.in.Close()
	for _, e := range l.wait().events() {
		got.add(e)
	}
	compare(t, recorded(t, "codex"), got)
}
