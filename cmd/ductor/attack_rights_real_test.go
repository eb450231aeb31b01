package main

import (
	"encoding/json"
	"net/http"
	"testing"

	"ductor/cli"
	"ductor/heartbeat/webhook"
	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/modelapi"
	"ductor/orchestrator"
)

// The real agents in a chat whose owner chose bypass: what a webhook starts there asks, and is denied. In Claude, which can
// be told, a turn that runs as its bypass ends asks too.
func TestTheRealAgentsUnattended(t *testing.T) {
	realagent.LongOnly(t)
	for _, agent := range []string{"claude", "codex", "copilot", "gemini"} {
		t.Run(agent, func(t *testing.T) {
			addr := unusedAddr(t)
			town, api := realTown(t, agent, func(c *config.Config) {
				c.Permissions.Mode = "ask"
				c.Webhooks.Listen = addr
				c.Webhooks.Hooks = map[string]webhook.HookSettings{
					"deploy": unattended(`[[start]] [[tool cmd="touch unattended"]] [[text "the run ended"]]`, "shared", orchestrator.Rights{}),
				}
				if tool := readers()[agent]; tool != "" {
					c.Webhooks.Hooks["reader"] = unattended(`[[start]] [[text "the reader ended"]]`, "own",
						orchestrator.Rights{Mode: "bypass", Tools: cli.ToolList{Only: []string{tool}}})
				}
			})
			w := &hooked{besieged: &besieged{town: town, addr: addr, client: &http.Client{Timeout: patience}}}
			t.Cleanup(w.client.CloseIdleConnections)
			w.say("/permissions bypass")
			w.press("Yes, bypass everything")
			w.await("everything goes through")
			w.say(`[[start]] [[tool cmd="touch attended"]] [[text "that was all"]]`)
			w.await("that was all")
			awaitFile(t, w.file("attended"))

			w.hook("deploy")
			w.pressOn(w.awaitOpen("touch unattended"), "⛔ Deny")
			w.await("the run ended")
			w.absent("unattended", "denied")
			if agent != "codex" {
				w.leavesBypass()
			}
			if tool := readers()[agent]; tool != "" {
				asked := len(api.Prompts())
				w.hook("reader")
				w.await("the reader ended")
				onlyTool(t, api.Prompts()[asked:], tool)
			}
		})
	}
}

// readers are the tools that read a file, of the agents that can be told which tools to use.
func readers() map[string]string { return map[string]string{"claude": "Read", "copilot": "view"} }

func unattended(prompt, session string, r orchestrator.Rights) webhook.HookSettings {
	return webhook.HookSettings{
		Caller: webhook.Caller{Auth: "bearer", Secret: hookSecret, BodyMaxKB: 64, PerMinute: 60}, Prompt: prompt,
		JobTurn: orchestrator.JobTurn{Session: session, Rights: r},
	}
}

// onlyTool checks which tools a model was offered.
func onlyTool(t *testing.T, prompts []modelapi.Request, tool string) {
	t.Helper()
	found := false
	for _, p := range prompts {
		var body struct {
			Tools []struct {
				Name     string
				Function struct{ Name string }
			}
		}
		if err := json.Unmarshal(p.Body, &body); err != nil {
			t.Fatal(err)
		}
		for _, offered := range body.Tools {
			name := offered.Name + offered.Function.Name
			if found = found || name == tool; name != tool && name != "DeferredToolPlaceholder" { // which Claude offers in place of none
				t.Errorf("the model is offered %s besides %s", name, tool)
			}
		}
	}
	if !found {
		t.Errorf("the model is not offered %s", tool)
	}
}

// leavesBypass has a turn run in bypass whose bypass ends before its second tool.
func (w *hooked) leavesBypass() {
	w.t.Helper()
	goOn := w.workInBypass("real")
	w.say("/permissions bypass 1s")
	w.press("Yes, bypass everything")
	w.await("🔒 Bypass is over")
	goOn()
	w.asksAgain("real")
}
