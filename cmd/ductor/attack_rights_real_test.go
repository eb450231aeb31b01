package main

import (
	"net"
	"net/http"
	"testing"
	"time"

	"ductor/internal/config"
)

// The real agents in a chat whose owner chose bypass: what a webhook starts there asks, and is denied. In Claude, which can
// be told, a turn that runs as its bypass ends asks too.
func TestTheRealAgentsUnattended(t *testing.T) {
	for _, agent := range []string{"claude", "codex"} {
		t.Run(agent, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			addr := l.Addr().String()
			l.Close()
			town, _ := realTown(t, agent, func(c *config.Config) {
				c.Permissions.Mode = "ask"
				c.Webhooks.Listen = addr
				c.Webhooks.Hooks = map[string]config.Hook{"deploy": {
					Auth: "bearer", Secret: hookSecret, BodyMaxKB: 64, PerMinute: 60,
					Prompt: `[[start]] [[tool cmd="touch unattended"]] [[text "the run ended"]]`,
					Manner: config.Manner{Session: "shared", Backoff: time.Minute}, Quiet: config.Quiet{QuietPolicy: "hold"},
				}}
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
			if agent == "claude" {
				w.leavesBypass()
			}
		})
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
