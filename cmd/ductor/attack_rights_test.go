package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ductor/internal/sim/telegram"
)

// webhookTown is a daemon with webhooks that report in the owner's chat.
type webhookTown struct {
	*webhookDaemon
	path   string // of the configuration
	daemon *daemon
}

// startHooked starts a daemon with a default agent in the mode ask. hooks are lines of the configuration for each
// webhook.
func startHooked(t *testing.T, agent string, hooks map[string]string) *webhookTown {
	t.Helper()
	addr := unusedAddr(t)
	town := surroundings(t, nil)
	town.permission, town.agent = "ask", agent
	path := town.writeConfig()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := string(text) + fmt.Sprintf("\n[webhooks]\nlisten = %q\n", addr)
	for name, lines := range hooks {
		all += fmt.Sprintf("\n[webhooks.hooks.%s]\nsecret = %q\n%s\n", name, hookSecret, lines)
	}
	if err := os.WriteFile(path, []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &webhookTown{webhookDaemon: &webhookDaemon{town: town, addr: addr, client: &http.Client{Timeout: patience}}, path: path}
	t.Cleanup(w.client.CloseIdleConnections)
	w.run()
	return w
}

// run starts the daemon. The test can call it again.
func (w *webhookTown) run() {
	w.t.Helper()
	w.daemon = startDaemon(w.t, "run", "-c", w.path)
	if err := w.srv.AwaitPoll(w.soon()); err != nil {
		w.t.Fatal(err)
	}
}

// hook calls a webhook.
func (w *webhookTown) hook(name string) {
	w.t.Helper()
	d := bearer(hookSecret, fmt.Sprintf(`{"for": %q}`, name))
	d.hook = name
	if got := w.call(d); got != http.StatusAccepted {
		w.t.Fatalf("the hook %s answers %d", name, got)
	}
}

func (w *webhookTown) file(name string) string { return filepath.Join(w.cfg.Projects.DefaultDir, name) }

func (w *webhookTown) absent(name, why string) {
	w.t.Helper()
	if _, err := os.Stat(w.file(name)); !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatalf("%s: %s is there (%v)", why, name, err)
	}
}

// awaitOpen waits for an open approval that shows part.
func (w *webhookTown) awaitOpen(part string) telegram.Message {
	w.t.Helper()
	return w.awaitMessage(func(m telegram.Message) bool {
		return m.HasButton("⛔ Deny") && strings.Contains(m.Text, part)
	})
}

// attacks returns prompts whose agents want more than their rights.
func attacks() map[string]string {
	return map[string]string{
		"own":    `prompt = '[[start]] [[ask cmd="touch mine"]] [[text "own ended"]]'`,
		"shared": `prompt = '[[start]] [[ask cmd="touch mine"]] [[text "shared ended"]]'` + "\nsession = \"shared\"",
		"ruled": `prompt = '[[start]] [[ask cmd="touch ruled"]] [[ask cmd="touch beyond"]] [[text "ruled ended"]]'` +
			"\nrules = [\"Bash(touch ruled)\"]",
		"wide": `prompt = '[[start]] [[ask cmd="touch wide"]] [[text "wide ended"]]'` + "\npermission = \"bypass\"",
	}
}

// The owner chose bypass and created rules. A turn of a webhook in the same chat still asks, with its own session and
// with the chat's. It has only the rights in its own configuration.
func TestUnattendedRunsDoNotInheritRights(t *testing.T) {
	w := startHooked(t, "claude", attacks())
	w.say(`[[start]] [[ask cmd="touch mine"]] [[text "a rule is made"]]`)
	w.press("Allow pattern…")
	w.press("✅ Allow with this rule")
	w.await("a rule is made")
	w.say("/permissions bypass")
	w.press("Yes, bypass everything")
	w.await("bypass: never asks")
	if err := os.Remove(w.file("mine")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"own", "shared"} {
		w.hook(name)
		m := w.awaitOpen("touch mine")
		w.absent("mine", name)
		if m.HasButton("Allow pattern…") || m.HasButton("Allow this session…") {
			t.Errorf("%s: a rule is offered that would not count: %v", name, m.Keyboard)
		}
		w.pressOn(m, "⛔ Deny")
		w.await(name + " ended")
		w.awaitNoButton("⛔ Deny") // the next webhook has another card
		w.absent("mine", name)
	}
	w.hook("ruled")
	w.pressOn(w.awaitOpen("touch beyond"), "⛔ Deny")
	w.await("ruled ended")
	awaitFile(t, w.file("ruled"))
	w.absent("beyond", "ruled")
	w.hook("wide")
	w.await("wide ended")
	awaitFile(t, w.file("wide"))
}

// The name of a tool in a hook's rules allows no command, whatever field the agent puts it in.
func TestAttackTheNameOfAShellAllowsNoCommand(t *testing.T) {
	w := startHooked(t, "copilot", map[string]string{
		"named": `prompt = '[[start]] [[ask cmd="touch named"]] [[text "named ended"]]'` + "\nrules = [\"bash\"]",
	})
	w.hook("named")
	w.pressOn(w.awaitOpen("touch named"), "⛔ Deny")
	w.await("named ended")
	w.absent("named", "it was denied")
}

var bypassLeft = regexp.MustCompile(`bypass, \d+ min left`)

// workInBypass starts a turn in bypass that waits for goOn, and then does something that needs an approval.
func (w *webhookTown) workInBypass(name string) (goOn func()) {
	w.t.Helper()
	w.say("/permissions bypass")
	w.press("Yes, bypass everything")
	w.await("bypass: never asks")
	w.say(
		`[[start]] [[tool cmd="touch begun-%[1]s; while ! test -e go-%[1]s; do sleep 0.05; done"]] [[ask cmd="touch late-%[1]s"]] [[text "%[1]s ended"]]`, name)
	awaitFile(w.t, w.file("begun-"+name))
	w.awaitMessage(func(m telegram.Message) bool { return bypassLeft.MatchString(m.Text) })
	return func() {
		w.t.Helper()
		if err := os.WriteFile(w.file("go-"+name), nil, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}

// checkAsksAgain waits until the agent asks for an action that bypass would have allowed, and denies it.
func (w *webhookTown) checkAsksAgain(name string) {
	w.t.Helper()
	m := w.awaitOpen("touch late-" + name)
	w.absent("late-"+name, "after the end of bypass")
	w.pressOn(m, "⛔ Deny")
	w.await(name + " ended")
	w.absent("late-"+name, "after it was denied")
}

// A running turn asks again after its bypass ends: when the time is over, and after a restart.
func TestBypassEndsInTheMiddleOfATurn(t *testing.T) {
	w := startHooked(t, "claude", nil)
	goOn := w.workInBypass("timed")
	w.say("/permissions bypass 1s")
	w.press("Yes, bypass everything")
	w.await("🔒 Bypass is over. The agent asks")
	goOn()
	w.checkAsksAgain("timed")

	goOn = w.workInBypass("restarted")
	w.daemon.kill()
	w.run()
	w.await("🔒 Bypass is over: ductor was restarted")
	goOn()
	w.checkAsksAgain("restarted")
	w.say("/status")
	w.await("Permissions: ask")
}

// An agent that cannot start to ask during a turn does not continue after its bypass ends.
func TestATurnThatCannotLeaveBypassIsEnded(t *testing.T) {
	w := startHooked(t, "codex", nil)
	goOn := w.workInBypass("ended")
	w.say("/permissions bypass 1s")
	w.press("Yes, bypass everything")
	w.await("Bypass ended while this ran")
	goOn()
	checkNoProcessIn(t, w.cfg.Projects.DefaultDir)
	w.absent("late-ended", "the turn was ended")
}
