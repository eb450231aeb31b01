package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ductor/cli/clitest"
	"ductor/docker/dockertest"
	"ductor/heartbeat/webhook"
	"ductor/internal/config"
	"ductor/internal/keys"
	"ductor/internal/proctree"
	agentsim "ductor/internal/sim/agent"
	telegramsim "ductor/internal/sim/telegram"
	"ductor/internal/store"
	"ductor/orchestrator"
)

// setUp is the world of the checks: a configuration file, a simulated Telegram and scripted agents. A row changes it.
type setUp struct {
	t              testing.TB
	srv            *telegramsim.Server
	programs       []string
	project, state string

	path    string // of the configuration
	text    string
	mode    os.FileMode
	changes []func(*config.Config) // changes that a file cannot express
	restore func()                 // undoes a row's change, if restoring the configuration is not enough
}

func newSetUp(t testing.TB) *setUp {
	t.Helper()
	srv := telegramsim.New(telegramsim.Options{})
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	programs, err := agentsim.InstallFrom(clitest.Program(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &setUp{
		t: t, srv: srv, programs: []string{programs.Claude, programs.Codex, programs.Gemini, programs.Copilot},
		project: filepath.Join(dir, "project"), state: filepath.Join(dir, "state"), path: filepath.Join(dir, "config.toml"), mode: 0o600,
	}
	s.must(errors.Join(os.Chmod(dir, 0o700), os.Mkdir(s.project, 0o700), os.Mkdir(s.state, 0o700)))
	for name, value := range map[string]string{
		"HOME": t.TempDir(), "DUCTOR_SIM_HOME": t.TempDir(),
		"ANTHROPIC_API_KEY": "dummy", "OPENAI_API_KEY": "dummy", "GEMINI_API_KEY": "dummy", "COPILOT_GITHUB_TOKEN": "dummy",
	} {
		s.setenv(name, value)
	}
	s.text = fmt.Sprintf(`[telegram]
token = %q
api_base = %q
allowed_users = [1]

[stream]
display = "plain"

[agents.claude]
path = %q

[agents.codex]
path = %q

[agents.gemini]
path = %q

[agents.copilot]
path = %q

[projects]
roots = [%q]
default_dir = %q

[storage]
dir = %q
`, srv.Token(), srv.URL(), programs.Claude, programs.Codex, programs.Gemini, programs.Copilot, s.project, s.project, s.state)
	return s
}

// examine runs the checks as the command does.
func (s *setUp) examine() Findings {
	s.t.Helper()
	s.must(errors.Join(os.WriteFile(s.path, []byte(s.text), 0o600), os.Chmod(s.path, s.mode)))
	cfg, err := config.LoadFrom(s.path, config.OSEnvironment())
	if err != nil {
		return Unreadable(s.path, err)
	}
	if cfg.Keys, err = keys.Read(s.state, ""); err != nil {
		s.t.Fatal(err)
	}
	for _, change := range s.changes {
		change(&cfg)
	}
	return Examine(s.t.Context(), cfg)
}

// contains reports whether the findings contain one with a name, a state, and a substring in its text or fix.
func (fs Findings) contains(name string, state State, says string) bool {
	for _, f := range fs {
		if f.Name == name && f.State == state && strings.Contains(f.Text+" "+f.Fix, says) && (f.Fix == "") == (state == OK) {
			return true
		}
	}
	return false
}

func (fs Findings) String() string {
	var out bytes.Buffer
	_ = fs.WriteText(&out)
	return out.String()
}

// put replaces a text in the configuration.
func put(what, instead string) func(*setUp) {
	return func(s *setUp) {
		s.t.Helper()
		if !strings.Contains(s.text, what) {
			s.t.Fatalf("the configuration has no %q", what)
		}
		s.text = strings.Replace(s.text, what, instead, 1)
	}
}

// appendText appends lines to the configuration.
func appendText(lines string) func(*setUp) {
	return func(s *setUp) { s.text += "\n" + lines + "\n" }
}

func change(f func(*config.Config)) func(*setUp) {
	return func(s *setUp) { s.changes = append(s.changes, f) }
}

func (s *setUp) onlyClaude() {
	for _, name := range []string{"codex", "gemini", "copilot"} {
		put("[agents."+name+"]", "[agents."+name+"]\nenabled = false")(s)
	}
}

func (s *setUp) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *setUp) setenv(name, value string) { s.t.(*testing.T).Setenv(name, value) }

// write creates a file in the state directory.
func (s *setUp) write(name, text string) {
	s.t.Helper()
	s.must(os.WriteFile(filepath.Join(s.state, name), []byte(text), 0o600))
}

// role writes the role "tester".
func (s *setUp) role(text string) {
	s.t.Helper()
	dir := filepath.Join(filepath.Dir(s.path), "roles")
	s.must(errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "tester.md"), []byte(text), 0o600)))
}

func (s *setUp) remove(name string) {
	s.t.Helper()
	s.must(os.RemoveAll(filepath.Join(s.state, name)))
}

// database creates the database, as the first start does.
func (s *setUp) database() {
	s.t.Helper()
	db, err := store.Open(s.t.Context(), filepath.Join(s.state, "ductor.db"), store.Options{})
	s.must(err)
	s.must(db.Close())
}

// fillDisk puts the state directory on a disk without free space.
func (s *setUp) fillDisk() {
	s.t.Helper()
	s.mountSmall(s.state)
}

// fillHome puts the agents' home on a disk without free space.
func (s *setUp) fillHome() {
	s.t.Helper()
	s.mountSmall(os.Getenv("HOME"))
}

func (s *setUp) mountSmall(dir string) {
	s.t.Helper()
	s.mount(dir, 0, "size=64k")
	s.restore = func() { s.must(unix.Mount("none", dir, "tmpfs", unix.MS_REMOUNT, "size=8m")) }
}

// lockState puts the state directory on a read-only disk. Permissions would not do: root may write everywhere.
func (s *setUp) lockState() {
	s.t.Helper()
	s.mount(s.state, unix.MS_RDONLY, "")
	s.restore = func() { s.must(unix.Mount("none", s.state, "tmpfs", unix.MS_REMOUNT, "")) }
}

func (s *setUp) mount(dir string, flags uintptr, options string) {
	s.t.Helper()
	if err := unix.Mount("none", dir, "tmpfs", flags, options); err != nil {
		s.t.Skip("no tmpfs can be mounted: ", err)
	}
	s.t.Cleanup(func() { s.must(unix.Unmount(dir, unix.MNT_DETACH)) })
}

// serve makes a process look like the ductor that uses the state directory; 0 for none.
func (s *setUp) serve(pid int) {
	s.t.Helper()
	if pid == 0 {
		s.remove("ductor.lock")
		return
	}
	s.write("ductor.lock", strconv.Itoa(pid))
}

// processWithGroup returns a process with a usable control group: this one, if the machine provides one.
func (s *setUp) processWithGroup() int {
	if _, err := proctree.GroupParent("self"); err != nil {
		return 0
	}
	return os.Getpid()
}

// processWithoutGroup returns a process without a usable control group. If the machine gives each process one, it returns a
// zombie whose group is gone.
func (s *setUp) processWithoutGroup() int {
	s.t.Helper()
	parent, err := proctree.GroupParent("self")
	if err != nil {
		return os.Getpid()
	}
	group := filepath.Join(parent, "doctor-"+strconv.Itoa(os.Getpid()))
	s.must(os.Mkdir(group, 0o700))
	cmd := exec.Command("sleep", "600")
	s.must(cmd.Start())
	s.t.Cleanup(func() { _ = cmd.Wait() })
	pid := cmd.Process.Pid
	s.must(os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0))
	s.must(cmd.Process.Kill())
	var info unix.Siginfo
	// leaves it a zombie until the test ends
	s.must(unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil))
	s.must(syscall.Rmdir(group))
	return pid
}

// sandboxed runs all agents in sandboxes of an engine that does not exist.
func sandboxed(s *setUp) {
	change(func(c *config.Config) {
		c.Sandbox.Mode, c.Sandbox.Host = orchestrator.SandboxDocker, "unix:///no/such/socket"
	})(s)
}

// linkedProject adds a project to the sandboxes, in place of whose directory an agent put a link.
func linkedProject(s *setUp, name, mode, to string) {
	s.t.Helper()
	sandboxed(s)
	dir := filepath.Join(s.project, name)
	s.must(os.Symlink(to, dir))
	change(func(c *config.Config) {
		p := config.SandboxProject{Dir: dir, Settings: c.Sandbox.Settings}
		p.Mode = mode
		c.Sandbox.Projects = map[string]config.SandboxProject{name: p}
	})(s)
}

// engine runs all agents in sandboxes of this machine's engine with an image that is not built yet, which is a warning.
func engine(s *setUp) {
	s.t.Helper()
	dockertest.Need(s.t)
	runner := dockertest.Tool(s.t, dockertest.Runner)
	change(func(c *config.Config) {
		c.Sandbox.Mode, c.Sandbox.Host, c.Sandbox.Image, c.Sandbox.Runner = orchestrator.SandboxDocker, dockertest.Host(), "ductor-doctor-test:none", runner
	})(s)
}

// linkedSocket returns a symbolic link to a socket that is named like Docker's.
func (s *setUp) linkedSocket() string {
	s.t.Helper()
	dir, err := os.MkdirTemp("", "doctor-") // short, since a socket's path is limited
	s.must(err)
	s.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket, link := filepath.Join(dir, "docker.sock"), filepath.Join(dir, "harmless")
	l, err := net.Listen("unix", socket)
	s.must(err)
	s.t.Cleanup(func() { _ = l.Close() })
	s.must(os.Symlink(socket, link))
	return link
}

// badHook configures a webhook with an invalid rule.
func badHook(c *config.Config) {
	rights := orchestrator.Rights{Rules: []string{"("}}
	c.Webhooks.Hooks = map[string]webhook.HookSettings{"push": {JobTurn: orchestrator.JobTurn{Rights: rights}}}
}
