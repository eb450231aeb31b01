package terminal

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// withAccounts configures accounts of Claude with homes below m.Home. It returns a function that changes them.
func (m *Machine) withAccounts(t *testing.T, claude ...string) (configure func(claude ...string)) {
	t.Helper()
	if m.State == "/state" {
		m.State = t.TempDir() + "/it's state"
	}
	homes := map[string][]string{}
	configure = func(claude ...string) {
		homes["claude"] = nil
		for _, name := range claude {
			homes["claude"] = append(homes["claude"], m.Home+"/"+name)
		}
	}
	configure(claude...)
	m.Accounts = func(agent string) []string { return homes[agent] }
	return configure
}

// install installs the hooks of m in the given files, or in all.
func (m Machine) install(t *testing.T, only ...string) {
	t.Helper()
	files, err := m.Installed()
	for _, f := range files {
		if len(only) == 0 || f.Path == only[0] {
			write(t, []File{f}, err)
		}
	}
}

// leaves checks which files LeaveAccounts changes.
func (m Machine) leaves(t *testing.T, want ...string) {
	t.Helper()
	changed, err := m.LeaveAccounts()
	var got []string
	for _, f := range changed {
		got = append(got, f.Path)
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("it changes %q, %v; want %q", got, err, want)
	}
}

func expect(t *testing.T, path, want string) {
	t.Helper()
	if got := read(t, path); got != want {
		t.Errorf("%s is %s, want %s", path, got, want)
	}
}

// When an account is no longer configured, the hooks of this ductor leave its home, once. All else in the settings
// stays.
func TestHooksLeaveWithTheirAccount(t *testing.T) {
	m := machine(t)
	configure := m.withAccounts(t, "work", "kept", "missing")
	work, kept := m.put(t, "work/settings.json", ownSettings), m.put(t, "kept/settings.json", "{}\n")
	m.leaves(t) // ductor starts
	m.install(t)
	hooked := read(t, work)
	configure("kept")
	m.leaves(t, work)
	expect(t, work, ownSettings)
	if !strings.Contains(read(t, kept), StateFlag) {
		t.Error("the account that stays has no hooks")
	}
	m.put(t, "work/settings.json", hooked) // the user has installed the hooks again, for a folder of their own
	m.leaves(t)
	expect(t, work, hooked)
}

// The hooks of every CLI leave.
func TestHooksOfEveryCLILeave(t *testing.T) {
	m := machine(t)
	m.withAccounts(t)
	m.Accounts = func(agent string) []string { return []string{m.Home + "/" + agent} }
	paths := []string{
		m.put(t, "claude/settings.json", ownSettings), m.put(t, "codex/config.toml", ownConfig),
		m.put(t, "gemini/.gemini/settings.json", "{}\n"),
	}
	m.leaves(t)
	m.install(t)
	m.Accounts = nil
	m.leaves(t, paths...)
	expect(t, paths[0], ownSettings)
	expect(t, paths[2], "{}\n")
	words, err := notifyOf([]byte(read(t, paths[1])))
	if err != nil || !reflect.DeepEqual(words, []string{"notify-send", "Codex"}) {
		t.Errorf("Codex tells %q, %v", words, err)
	}
}

// Settings that are still used keep the hooks, and so do those in which another ductor has installed its own.
func TestHooksOfOthersStay(t *testing.T) {
	m := machine(t)
	configure := m.withAccounts(t, "shared", "theirs")
	own, theirs := m.put(t, ".claude/settings.json", ownSettings), m.put(t, "theirs/settings.json", "{}\n")
	if err := os.Symlink(m.Home+"/.claude", m.Home+"/shared"); err != nil {
		t.Fatal(err)
	}
	m.leaves(t)
	m.install(t)
	hooked := read(t, own)
	other := m
	other.State = m.State + " of another"
	other.install(t, theirs)
	ofOther := read(t, theirs)
	configure()
	m.leaves(t)
	expect(t, own, hooked)
	expect(t, theirs, ofOther)
}

// The hooks also leave a home that does not exist while ductor starts, because its disk is not mounted.
func TestHooksLeaveAHomeThatReturns(t *testing.T) {
	m := machine(t)
	configure := m.withAccounts(t, "work")
	work := m.put(t, "work/settings.json", ownSettings)
	m.leaves(t)
	m.install(t)
	rename := func(from, to string) {
		if err := os.Rename(m.Home+"/"+from, m.Home+"/"+to); err != nil {
			t.Fatal(err)
		}
	}
	rename("work", "unmounted")
	configure()
	m.leaves(t)
	rename("unmounted", "work")
	m.leaves(t, work)
	expect(t, work, ownSettings)
	if left, err := m.recorded(); len(left) > 0 || err != nil {
		t.Errorf("the homes %v are recorded, %v", left, err)
	}
}

// Settings that cannot be read are tried again.
func TestHooksThatCannotLeave(t *testing.T) {
	m := machine(t)
	configure := m.withAccounts(t, "broken")
	broken := m.put(t, "broken/settings.json", "{}\n")
	m.leaves(t)
	m.install(t)
	hooked := read(t, broken)
	m.put(t, "broken/settings.json", "{")
	configure()
	if _, err := m.LeaveAccounts(); err == nil || !strings.Contains(err.Error(), broken) {
		t.Errorf("settings that cannot be read: %v", err)
	}
	m.put(t, "broken/settings.json", hooked)
	m.leaves(t, broken)
	expect(t, broken, "{}\n")
	if left, err := m.recorded(); len(left) > 0 || err != nil {
		t.Errorf("the homes %v are recorded, %v", left, err)
	}
}

// Uninstalling covers the homes of former accounts, also if ductor has not run since.
func TestHooksOfAFormerAccountAreUninstalled(t *testing.T) {
	m := machine(t)
	configure := m.withAccounts(t, "work")
	work := m.put(t, "work/settings.json", ownSettings)
	if err := m.RecordAccounts(); err != nil {
		t.Fatal(err)
	}
	m.install(t)
	configure()
	files, err := m.Uninstalled()
	write(t, files, err)
	expect(t, work, ownSettings)
}
