package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ductor/internal/sim/telegram"
)

// TestAnInstalledAgentIsOfferedOnce tests that /model offers owners the installed agents that the configuration lacks,
// adds one at a press, and never offers it again, also after a restart.
func TestAnInstalledAgentIsOfferedOnce(t *testing.T) {
	town, path := catalogueTown(t,
		map[string]string{"opencode": protocolStub, "goose": protocolStub, "kilo": protocolStub})
	amend(t, path, fmt.Sprintf("allowed_users = [%d]", owner),
		fmt.Sprintf("allowed_users = [%d, %d]", owner, neighbour))
	d := startDaemon(t, "run", "-c", path)
	other := town.srv.Private(neighbour, "Neighbour")
	other.Person().Send(other, "/model")
	if _, err := other.AwaitText(town.soon(), "Now: "); err != nil {
		town.fatal(err)
	}
	town.say("/model")
	town.pressOn(town.awaitButton("Add OpenCode"), "Add OpenCode")
	town.await("opencode is added. Pick it in /model.")
	said := town.say("/model")
	town.awaitMessage(func(m telegram.Message) bool { return m.ID > said.ID && m.HasButton("Opencode") })
	goose := town.awaitButton("Add goose")
	town.pressOn(goose, "Not now")
	town.await("OK, I won't ask again. To add it later, run this on the machine: ductor agents add goose")
	after := readFile(t, path)
	if !strings.Contains(after, "# my own words") || !strings.Contains(after, "[agents.acp.opencode]") ||
		strings.Contains(after, "[agents.acp.goose]") {
		t.Errorf("the file became\n%s", after)
	}
	kilo := town.awaitButton("Add Kilo")
	if err := os.MkdirAll(filepath.Join(path+".part", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if a := town.pressOn(kilo, "Add Kilo"); !strings.Contains(a.Text, "I couldn't change my configuration") {
		t.Errorf("it answers %q", a.Text)
	}
	offers := func() (n int) {
		for _, m := range append(town.chat.View().FromBot(), other.View().FromBot()...) {
			if strings.Contains(m.Versions[0].Text, "is installed on this machine") {
				n++
			}
		}
		return n
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	d.exit(t)
	startDaemon(t, "run", "-c", path)
	said = town.say("/model")
	town.awaitAfter(said, "Now: ")
	town.awaitMessage(func(m telegram.Message) bool { return m.ID > said.ID && m.HasButton("Opencode") })
	if a := town.pressOn(kilo, "Add Kilo"); !strings.Contains(a.Text, "I couldn't change my configuration") {
		t.Errorf("after a restart it answers %q", a.Text)
	}
	if err := os.RemoveAll(path + ".part"); err != nil {
		t.Fatal(err)
	}
	town.pressOn(kilo, "Add Kilo")
	town.await("kilo is added.")
	if n := offers(); n != 3 {
		t.Errorf("there were %d offers", n)
	}
}
