package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Names of the agents.
const (
	Claude  = "claude"
	Codex   = "codex"
	Gemini  = "gemini"
	Copilot = "copilot"
	// Plain is an agent without a vendor, with the protocol of PlainLine.
	Plain = "plain"
)

// Subcommand is the first argument that makes any program the scripted agent: `ductor sim-agent claude …`.
const Subcommand = "sim-agent"

// homeVar contains the directory in which scripted agents store their sessions.
const homeVar = "DUCTOR_SIM_HOME"

// RunIfChild runs the scripted agent and exits if this process was started under an agent's name or with Subcommand.
// Call it first in main or TestMain.
func RunIfChild() {
	if args, ok := childArgs(os.Args); ok {
		env := os.Environ()
		if home := ownHome(os.Args[0]); home != "" {
			env = append(env, homeVar+"="+home)
		}
		exit(Main(args, os.Stdin, os.Stdout, os.Stderr, env))
	}
}

// exit ends the process. With the race detector, os.Exit takes a second, which would slow down tests that start many
// agents. If GORACE is set, exit uses os.Exit for the race report.
func exit(code int) {
	if os.Getenv("GORACE") != "" {
		os.Exit(code)
	}
	syscall.Exit(code)
}

func childArgs(argv []string) ([]string, bool) {
	if len(argv) == 0 {
		return nil, false
	}
	switch name := filepath.Base(argv[0]); name {
	case Claude, Codex, Gemini, Copilot, Plain:
		return append([]string{name}, argv[1:]...), true
	}
	if len(argv) > 2 && argv[1] == Subcommand {
		return argv[2:], true
	}
	return nil, false
}

// Programs contains the paths of the scripted agents in a folder. Dir can be put on PATH.
type Programs struct{ Dir, Claude, Codex, Gemini, Copilot, Plain string }

// Install links the running program into dir under the name of each agent. The program must call RunIfChild. Install
// keeps existing links.
func Install(dir string) (Programs, error) {
	self, err := os.Executable()
	if err != nil {
		return Programs{}, fmt.Errorf("find own program: %w", err)
	}
	return InstallFrom(self, dir)
}

// InstallFrom is Install for a program other than the running one, given by its absolute path.
func InstallFrom(program, dir string) (Programs, error) {
	p := Programs{
		Dir: dir, Claude: filepath.Join(dir, Claude), Codex: filepath.Join(dir, Codex),
		Gemini:  filepath.Join(dir, Gemini),
		Copilot: filepath.Join(dir, Copilot), Plain: filepath.Join(dir, Plain),
	}
	for _, link := range []string{p.Claude, p.Codex, p.Gemini, p.Copilot, p.Plain} {
		if err := os.Symlink(program, link); err != nil && !os.IsExist(err) {
			return Programs{}, fmt.Errorf("install scripted agent: %w", err)
		}
	}
	return p, nil
}
