package cli

import "testing"

// Each agent has its own notation for the tools of a server.
func TestOwnTools(t *testing.T) {
	for name, want := range map[string]string{
		"mcp__ductor__send_file": "send_file", "mcp_ductor_send_file": "send_file", "ductor.send_file": "send_file",
		"ductor-send_file": "send_file", "ductor__send_file": "send_file", "ductor_send_file": "send_file",
		"send_file": "", "mcp__other__send_file": "", "mcp__ductors__send_file": "", "other.ductor.send_file": "", "Bash": "", "": "",
		"mcp_ductor_x_run": "", "ductor-x-run": "", "mcp__ductor__x__run": "",
	} {
		if got := OwnTool(name); got != want {
			t.Errorf("%s is the tool %q", name, got)
		}
	}
	servers := []ToolServer{{Name: "ductor", Trusted: true}, {Name: "evil"}}
	for name, want := range map[string]bool{
		"mcp__ductor__send_file": true, "mcp_ductor_send_file": true, "ductor.send_file": true,
		"mcp_ductor_x_run": false, "mcp__ductor__x__run": false, "ductor.x.run": false, "mcp_evil_send_file": false,
	} {
		if got := Trusts(servers, name); got != want {
			t.Errorf("%s is trusted: %v", name, got)
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
