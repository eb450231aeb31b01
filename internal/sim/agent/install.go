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
	// Plain is an agent that exists only in tests and the demo. Its protocol is PlainLine.
	Plain = "plain"
)

// Subcommand is the first argument that starts a program as the scripted agent, as in `ductor sim-agent claude`.
const Subcommand = "sim-agent"

// homeVar names the environment variable for the directory that contains the sessions of scripted agents.
const homeVar = "DUCTOR_SIM_HOME"

// RunIfChild checks whether this process was started under the name of an agent, or with Subcommand. If so, it runs the
// scripted agent and exits. Call it first in main or TestMain.
func RunIfChild() {
	if args, ok := childArgs(os.Args); ok {
		env := os.Environ()
		if home := ownHome(os.Args[0]); home != "" {
			env = append(env, homeVar+"="+home)
		}
		exit(Main(args, os.Stdin, os.Stdout, os.Stderr, env))
	}
}

// exit ends the process. With the race detector, os.Exit takes a second, which is too slow for tests that start many
// agents. So exit avoids os.Exit, unless GORACE is set: only os.Exit writes the race detector's report.
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

// Programs contains the paths of the scripted agents. Dir is the directory that contains all of them; add it to PATH.
type Programs struct{ Dir, Claude, Codex, Gemini, Copilot, Plain string }

// Install creates links to the running program in dir. The links have the names of the agents. The program must call
// RunIfChild. Install does not replace links that already exist.
func Install(dir string) (Programs, error) {
	self, err := os.Executable()
	if err != nil {
		return Programs{}, fmt.Errorf("find own program: %w", err)
	}
	return InstallFrom(self, dir)
}

// InstallFrom is like Install, but links to the program with the given absolute path.
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
