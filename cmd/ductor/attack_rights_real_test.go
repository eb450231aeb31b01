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

// In a chat whose owner chose bypass, turns of a webhook still ask, and are denied. Claude can change its mode during
// a turn, so there a turn also asks after its bypass ends.
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
			w := &webhookTown{webhookDaemon: &webhookDaemon{town: town, addr: addr, client: &http.Client{Timeout: patience}}}
			t.Cleanup(w.client.CloseIdleConnections)
			w.say("/permissions bypass")
			w.press("Yes, bypass everything")
			w.await("bypass: never asks")
			w.say(`[[start]] [[tool cmd="touch attended"]] [[text "that was all"]]`)
			w.await("that was all")
			awaitFile(t, w.file("attended"))

			w.hook("deploy")
			w.pressOn(w.awaitOpen("touch unattended"), "⛔ Deny")
			w.await("the run ended")
			w.absent("unattended", "denied")
			if agent != "codex" {
				w.checkLeavesBypass()
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

// readers returns the tool that reads a file, for agents whose tools can be restricted.
func readers() map[string]string { return map[string]string{"claude": "Read", "copilot": "view"} }

func unattended(prompt, session string, r orchestrator.Rights) webhook.HookSettings {
	return webhook.HookSettings{
		Caller: webhook.Caller{Auth: "bearer", Secret: hookSecret, BodyMaxKB: 64, PerMinute: 60}, Prompt: prompt,
		JobTurn: orchestrator.JobTurn{Session: session, Rights: r},
	}
}

// onlyTool checks the tools that a model was offered.
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
			// Claude offers this in place of no tools.
			if found = found || name == tool; name != tool && name != "DeferredToolPlaceholder" {
				t.Errorf("the model is offered %s besides %s", name, tool)
			}
		}
	}
	if !found {
		t.Errorf("the model is not offered %s", tool)
	}
}

// checkLeavesBypass runs a turn whose bypass ends before its second tool.
func (w *webhookTown) checkLeavesBypass() {
	w.t.Helper()
	goOn := w.workInBypass("real")
	w.say("/permissions bypass 1s")
	w.press("Yes, bypass everything")
	w.await("🔒 Bypass is over")
	goOn()
	w.checkAsksAgain("real")
}
