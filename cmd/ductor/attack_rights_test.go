package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/sim/telegram"
)

// hooked is a daemon with webhooks whose runs are shown in the owner's chat.
type hooked struct {
	*besieged
	path   string // of the configuration
	daemon *daemon
}

// startHooked starts a daemon in the permission mode ask, with these hooks as lines of its configuration.
func startHooked(t *testing.T, hooks map[string]string) *hooked {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	town := surroundings(t, nil)
	town.permission = "ask"
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
	w := &hooked{besieged: &besieged{town: town, addr: addr, client: &http.Client{Timeout: patience}}, path: path}
	t.Cleanup(w.client.CloseIdleConnections)
	w.run()
	return w
}

// run starts the daemon, also once more.
func (w *hooked) run() {
	w.t.Helper()
	w.daemon = startDaemon(w.t, "run", "-c", w.path)
	if err := w.srv.AwaitPoll(w.soon()); err != nil {
		w.t.Fatal(err)
	}
}

// hook calls a webhook.
func (w *hooked) hook(name string) {
	w.t.Helper()
	d := bearer(hookSecret, fmt.Sprintf(`{"for": %q}`, name))
	d.hook = name
	if got := w.call(d); got != http.StatusAccepted {
		w.t.Fatalf("the hook %s answers %d", name, got)
	}
}

func (w *hooked) file(name string) string { return filepath.Join(w.cfg.Projects.DefaultDir, name) }

func (w *hooked) absent(name, why string) {
	w.t.Helper()
	if _, err := os.Stat(w.file(name)); !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatalf("%s: %s is there (%v)", why, name, err)
	}
}

// awaitOpen waits for an approval that can be decided and shows part.
func (w *hooked) awaitOpen(part string) telegram.Message {
	w.t.Helper()
	return w.awaitMessage(func(m telegram.Message) bool { return m.HasButton("⛔ Deny") && strings.Contains(m.Text, part) })
}

// attacks are runs whose agents want more than they were granted.
func attacks() map[string]string {
	return map[string]string{
		"own":    `prompt = '[[start]] [[ask cmd="touch mine"]] [[text "own ended"]]'`,
		"shared": `prompt = '[[start]] [[ask cmd="touch mine"]] [[text "shared ended"]]'` + "\nsession = \"shared\"",
		"ruled":  `prompt = '[[start]] [[ask cmd="touch ruled"]] [[ask cmd="touch beyond"]] [[text "ruled ended"]]'` + "\nrules = [\"Bash(touch ruled)\"]",
		"wide":   `prompt = '[[start]] [[ask cmd="touch wide"]] [[text "wide ended"]]'` + "\npermission = \"bypass\"",
	}
}

// The owner chose bypass and made rules for his own work. What a webhook starts in the same chat asks all the same,
// with a session of its own and with that of the chat; it may do what its own configuration grants, and no more.
func TestUnattendedRunsDoNotInheritRights(t *testing.T) {
	w := startHooked(t, attacks())
	w.say(`[[start]] [[ask cmd="touch mine"]] [[text "a rule is made"]]`)
	w.press("Allow pattern…")
	w.press("✅ Allow all of that")
	w.await("a rule is made")
	w.say("/permissions bypass")
	w.press("Yes, bypass everything")
	w.await("everything goes through")
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
