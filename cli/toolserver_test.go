package cli

import "testing"

// Each agent has its own notation for the tools of a server.
func TestOwnTools(t *testing.T) {
	for name, want := range map[string]string{
		"mcp__ductor__send_file": "send_file", "mcp_ductor_send_file": "send_file", "ductor.send_file": "send_file",
		"ductor-send_file": "send_file", "ductor__send_file": "send_file", "ductor_send_file": "send_file",
		"send_file": "", "mcp__other__send_file": "", "mcp__ductors__send_file": "", "other.ductor.send_file": "", "Bash": "", "": "",
	} {
		if got := OwnTool(name); got != want {
			t.Errorf("%s is the tool %q", name, got)
		}
	}
	for input, want := range map[string]string{
		`{"text":"**Half** of\nit, ` + "`go test`" + ` too"}`: "Half of it, go test too", `{"path":"a.txt","caption":"b"}`: "a.txt",
		`{"when":"every day","prompt":"look"}`: "look", `{"limit":3}`: "", "": "", "[]": "",
	} {
		if got := OwnTitle([]byte(input)); got != want {
			t.Errorf("%s is about %q", input, got)
		}
	}
}
