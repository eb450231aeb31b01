// Package service makes the systemd unit of ductor, and has systemd run it. It replaces and removes no unit that it did
// not write.
package service

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
)

// Name is the name of the unit without its ending.
const Name = "ductor"

// Scope says whose service manager runs the unit.
type Scope string

// The scopes.
const (
	User   Scope = "user"   // the manager of this user; needs no root
	System Scope = "system" // the manager of the machine
)

// Unit says what a unit starts. Program and Config are absolute paths.
type Unit struct {
	Scope   Scope
	Account string // the user that a unit of System runs as
	Program string
	Config  string
	Path    string // PATH of ductor and its agents
}

// mark begins each unit that this package writes.
const mark = "# Written by ductor service install; run it again after a change, or remove this line to keep your own."

// Text is the content of the unit.
func (u Unit) Text() (string, error) {
	for _, path := range []string{u.Program, u.Config} {
		if !filepath.IsAbs(path) {
			return "", fmt.Errorf("make the unit: %q is no absolute path", path)
		}
	}
	for _, text := range []string{u.Program, u.Config, u.Path, u.Account} {
		if strings.ContainsAny(text, "\n\r\x00") {
			return "", fmt.Errorf("make the unit: %q has a line break", text)
		}
	}
	account, target := "", "default.target"
	if u.Scope == System {
		account, target = "User="+u.Account+"\n", "multi-user.target"
	}
	return fmt.Sprintf(template, mark, account, command(u.Program), command(u.Config), quoted("PATH="+cmp.Or(u.Path, "/usr/local/bin:/usr/bin:/bin")), target), nil
}

const template = `%s
[Unit]
Description=ductor, coding agents from Telegram
After=network-online.target
Wants=network-online.target

[Service]
# ductor says when it serves, and that it still works; without that it is restarted.
Type=notify
WatchdogSec=3min
%sExecStart=%s run -c %s
# Reads the configuration again, and reopens log.file.
ExecReload=/bin/sh -c 'kill -HUP $MAINPID'
# Where no agent writes. Agents begin in their own directories.
WorkingDirectory=/
# The directories of agents and their tools.
Environment=%s
UMask=0077
Restart=on-failure
RestartSec=5
# A wrong configuration, a refused token, another ductor with the same token: restarting does not help.
RestartPreventExitStatus=2 3 4
# A stop or a restart is ductor's alone: agents that are at work continue, for the next start.
KillMode=process
# Lets ductor keep each agent, and all that it starts, in a control group of its own.
Delegate=yes
TimeoutStopSec=45
# Hardening that agents and their tools can live with.
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes

[Install]
WantedBy=%s
`

// quoted is a text as systemd reads it in a setting: specifiers begin with a percent sign.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(text) + `"`
}

// command is a word of a command line, in which a dollar sign begins a variable.
func command(text string) string { return strings.ReplaceAll(quoted(text), "$", "$$") }
