package copilot

import (
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
)

// Only commands that make a prompt are listed and requested, whatever the input line is. Others would change the
// session's permissions.
func TestCommandsMakePrompts(t *testing.T) {
	const list = `{"commands":[{"name":"allow-all","kind":"builtin"},{"name":"review","description":"Reviews","kind":"builtin","input":{"hint":"more"}},` +
		`{"name":"fleet","kind":"builtin"},{"name":"tell","kind":"skill"},{"name":"odd","kind":"skill"}]}`
	p, peer := newPeer(t, func(p *peer, m message) bool {
		switch m.Method {
		case "session.commands.list":
			p.reply(m, list)
		case "session.commands.invoke":
			if m.Params["name"] == "odd" {
				p.reply(m, `{"kind":"completed"}`)
			} else {
				p.reply(m, `{"kind":"agent-prompt","prompt":"the whole prompt"}`)
			}
		case "session.send":
			p.reply(m, `{"messageId":"m1"}`)
			p.event("user.message", `{"messageId":"m1"}`)
			p.event("session.idle", `{}`)
		default:
			return false
		}
		return true
	})
	s := clitest.Open(t, p, cli.Live, cli.Request{})
	all, err := s.(cli.Commander).Commands(t.Context())
	if err != nil || len(all) != 3 || all[0] != (cli.AgentCommand{Name: "/review", Description: "Reviews", Arguments: "more"}) || all[1].Name != "/tell" {
		t.Fatalf("it lists %+v, %v", all, err)
	}
	for _, line := range []string{"/allow-all on", "/fleet", "/odd", "/none"} {
		if r, _ := clitest.Play(t.Context(), s, cli.Request{Prompt: line, Task: cli.TaskCommand}); r.Err == nil || r.Err.Kind != cli.Refused {
			t.Errorf("%s ends with %+v", line, r.Err)
		}
	}
	clitest.Play(t.Context(), s, cli.Request{Prompt: "/tell  Bob", Task: cli.TaskCommand})
	invoked := peer.told(func(m message) bool {
		return m.Method == "session.commands.invoke" && m.Params["name"] != "odd"
	})
	if invoked.Params["name"] != "tell" || invoked.Params["input"] != "Bob" {
		t.Errorf("it is asked for %s", invoked.Params)
	}
	if sent := peer.told(func(m message) bool { return m.Method == "session.send" }); sent.Params["prompt"] != "the whole prompt" {
		t.Errorf("it is sent %s", sent.Params)
	}
}
