// Package service writes ductor's systemd unit and controls it. It does not replace or remove units from other sources.
package service

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
)

// Name is the unit's name without ".service".
const Name = "ductor"

// Scope is the service manager that runs the unit.
type Scope string

const (
	User   Scope = "user"   // the user's systemd; needs no root
	System Scope = "system" // the machine's systemd
)

// Unit contains the settings for a unit file. Program and Config are absolute paths.
type Unit struct {
	Scope   Scope
	Account string // user account that runs the service; only for System
	Program string
	Config  string
	Path    string // value of PATH for ductor and its agents
}

// mark is the first line of each unit file that Install writes.
const mark = "# Written by ductor service install; run it again after a change, or remove this line to keep your own."

// Text returns the content of the unit file.
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
	return fmt.Sprintf(template, mark, account, quoteWord(u.Program), quoteWord(u.Config),
		quoteValue("PATH="+cmp.Or(u.Path, "/usr/local/bin:/usr/bin:/bin")), target), nil
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

// quoteValue quotes a value for a unit file. It escapes percent signs, because they begin specifiers.
func quoteValue(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(text) + `"`
}

// quoteWord quotes a word of a command line for a unit file. It also escapes dollar signs, because they begin
// variables.
func quoteWord(text string) string { return strings.ReplaceAll(quoteValue(text), "$", "$$") }
