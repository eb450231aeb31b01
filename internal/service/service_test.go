package service

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// program creates a program in a directory whose name needs quoting for systemd.
func program(t *testing.T, name, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a b%h", name)
	must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700)))
	return path
}

func TestTheTextOfAUnit(t *testing.T) {
	user := Unit{Scope: User, Program: "/p q/100%/$x/ductor", Config: "/c/config.toml", Path: "/bin"}
	machine := user
	machine.Scope, machine.Account = System, "ada"
	for _, c := range []struct {
		unit       Unit
		has, hasNo string
	}{
		{user, `ExecStart="/p q/100%%/$$x/ductor" run -c "/c/config.toml"`, "User="},
		{user, "WantedBy=default.target", "multi-user.target"},
		{user, "KillMode=process", "KillMode=control-group"},
		{user, "Delegate=yes", "PrivateTmp"},
		{machine, "User=ada", "default.target"},
		{machine, "ExecReload=/bin/sh -c 'kill -HUP $MAINPID'", "default.target"},
	} {
		text, err := c.unit.Text()
		must(t, err)
		if !strings.Contains(text, c.has) || strings.Contains(text, c.hasNo) {
			t.Errorf("want %q and no %q in\n%s", c.has, c.hasNo, text)
		}
	}
	for _, wrong := range []Unit{{Program: "ductor", Config: "/c"}, {Program: "/p", Config: "c"}, {Program: "/p\nUser=root", Config: "/c"}} {
		if text, err := wrong.Text(); err == nil {
			t.Errorf("%+v gives\n%s", wrong, text)
		}
	}
}

func TestSystemdReadsTheUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze here")
	}
	for scope, args := range map[Scope][]string{User: {"verify", "--user"}, System: {"verify"}} {
		text, err := Unit{Scope: scope, Account: "root", Program: program(t, "ductor", ""), Config: "/c/config.toml"}.Text()
		must(t, err)
		path := filepath.Join(t.TempDir(), Name+".service")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		cmd := exec.CommandContext(t.Context(), analyze, append(args, path)...)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), path) {
			t.Errorf("%s: %v\n%s", scope, err, out)
		}
	}
}

// TestInstallAndUninstall replaces systemctl by a program that records its arguments.
func TestInstallAndUninstall(t *testing.T) {
	systemctl := program(t, "systemctl", `echo "$@"`)
	t.Setenv("PATH", filepath.Dir(systemctl))
	var said bytes.Buffer
	m := Manager{Scope: User, Dir: filepath.Join(t.TempDir(), "user"), Out: &said, Err: &said}
	if err := m.Uninstall(t.Context()); !errors.Is(err, ErrNone) {
		t.Errorf("without a unit Uninstall says %v", err)
	}
	text, err := Unit{Scope: User, Program: "/p/ductor", Config: "/c"}.Text()
	must(t, err)
	must(t, m.Install(t.Context(), text))
	if got, err := os.ReadFile(m.Path()); err != nil || string(got) != text {
		t.Errorf("the unit is %q: %v", got, err)
	}
	must(t, m.Install(t.Context(), text))
	must(t, m.Uninstall(t.Context()))
	if _, err := os.Stat(m.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Uninstall the unit is there: %v", err)
	}
	install := "--user daemon-reload\n--user enable ductor\n--user restart ductor\n"
	if got := said.String(); got != install+install+"--user disable --now ductor\n--user daemon-reload\n" {
		t.Errorf("systemctl was to\n%s", got)
	}
	must(t, os.WriteFile(m.Path(), []byte("[Unit]\n"), 0o600))
	for name, f := range map[string]func() error{
		"Install":   func() error { return m.Install(t.Context(), text) },
		"Uninstall": func() error { return m.Uninstall(context.Background()) },
	} {
		if err := f(); !errors.Is(err, ErrOwn) {
			t.Errorf("%s over the owner's unit says %v", name, err)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if err := m.Check(t.Context()); !errors.Is(err, ErrNoSystemd) {
		t.Errorf("without systemd Check says %v", err)
	}
}
