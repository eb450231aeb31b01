package real

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ductor/internal/sim/agent"
	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/scenario"
)

// patience is how long a test waits for anything. It is long because many other processes may run on the machine.
const patience = 3 * time.Minute

// monitor is the address of ductor's health endpoint. Scenarios can run at the same time with this address, because
// each container has its own loopback interface.
const monitor = "127.0.0.1:8788"

// secretOfAgents names the environment variable whose value is Evidence.Secret. The variable scenario.SecretVariable
// has the same value, and scenario.Leak makes an agent print this value.
const secretOfAgents = "ANTHROPIC_API_KEY"

// world contains ductor and its environment: Telegram, the network, agents, a disk and a project.
type world struct {
	dir     string
	srv     *telegram.Server
	line    *line
	disk    *disk
	daemon  *daemon
	builds  []string // directories that each contain a ductor and a ductor-runner
	build   int      // index of the installed build in the list builds
	secrets map[string]string
	random  *rand.Rand
	unload  func() // ends the processes that cause the load (conditions.Load)
	memory  *memoryGroup
	died    func(at time.Time) // called when ductor has ended unexpectedly
}

// newWorld creates a world: the files, the simulated Telegram and the proxy in front of Telegram. It does not start
// ductor.
func newWorld(job Job) (*world, error) {
	w := &world{dir: filepath.Join(job.Dir, "w"), builds: job.Builds, random: rand.New(rand.NewPCG(1, job.Seed)),
		secrets: map[string]string{}, unload: func() {}, died: func(time.Time) {}}
	for _, dir := range []string{"", "home", "tmp", "opt", "bin"} {
		if err := os.Mkdir(w.path(dir), 0o700); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(w.state(), 0o700); err != nil {
		return nil, err
	}
	if job.Conditions.Memory > 0 {
		w.memory = newMemoryGroup(filepath.Base(job.Dir), job.Conditions.Memory)
	}
	var err error
	if w.disk, err = newDisk(job.Conditions.Disk, w.state(), w.path("image")); err != nil {
		return nil, err
	}
	if err := w.install(0); err != nil {
		return nil, err
	}
	if err := w.installAgents(); err != nil {
		return nil, err
	}
	w.plantSecrets()
	w.srv = telegram.New(telegram.Options{Token: w.secrets["DUCTOR_TELEGRAM_TOKEN"], Limits: telegram.RealLimits()})
	if err := w.srv.Start(); err != nil {
		return nil, err
	}
	if w.line, err = newLine(w.srv.URL(), job.Seed); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }
func (w *world) home() string            { return w.path("home") }
func (w *world) config() string          { return w.path("config.toml") }
func (w *world) log() string             { return w.path("ductor.log") }
func (w *world) state() string           { return filepath.Join(w.home(), ".local", "state", "ductor") }
func (w *world) database() string        { return filepath.Join(w.state(), "ductor.db") }
func (w *world) project() string         { return filepath.Join(w.home(), "ductor") }
func (w *world) agentLog() string        { return filepath.Join(w.home(), agentLog) }

// configure writes a minimal configuration, with the settings of the scenario.
func (w *world) configure(options scenario.Options, groups string) error {
	tables := map[string][]string{}
	add := func(table, format string, args ...any) {
		tables[table] = append(tables[table], fmt.Sprintf(format, args...))
	}
	add("telegram", "token = %q", w.srv.Token())
	add("telegram", "api_base = %q", w.line.url())
	add("telegram", "allowed_users = [%d, %d, %d]", ownerID, annID, bobID)
	add("telegram", "allowed_groups = [%s]", groups)
	add(fmt.Sprintf("users.%d", bobID), "role = %q", "viewer")
	add("log", "level = %q", "debug")
	add("health", "listen = %q", monitor)
	for _, name := range agentNames[:] {
		table := "agents." + name
		if name == acpAgent {
			table = "agents.acp." + name
			add(table, "path = %q", name)
			add(table, "args = [\"--acp\"]")
			add(table, "env = [%q, %q, %q]", scenario.SecretVariable, "GEMINI_API_KEY", "SIM_ACP_NAME")
			continue
		}
		add(table, "env = [%q]", scenario.SecretVariable)
	}
	if len(options.Agents) > 0 {
		add("agents", "default = %q", options.Agents[0])
	}
	if !slices.ContainsFunc(options.Settings, func(o scenario.Setting) bool {
		return o.Key == "permissions.ask_timeout"
	}) {
		// The timeout is short, because users cannot see the buttons in a closed or blocked chat, and the scenario
		// waits for the timeout.
		add("permissions", "ask_timeout = %q", "20s")
	}
	for _, o := range options.Settings {
		if o.Key == "permissions.ask_timeout" {
			o.Value = `"20s"`
		}
		if o.Key == "agents."+acpAgent+".mode" { // agents in [agents.acp] have no mode
			continue
		}
		at := strings.LastIndex(o.Key, ".")
		add(o.Key[:at], "%s = %s", o.Key[at+1:], o.Value)
	}
	var text strings.Builder
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		fmt.Fprintf(&text, "[%s]\n%s\n\n", table, strings.Join(tables[table], "\n"))
	}
	return os.WriteFile(w.config(), []byte(text.String()), 0o600)
}

// plantSecrets creates secret keys. They must not appear in any chat, file or command line.
func (w *world) plantSecrets() {
	key := func(prefix string) string {
		return fmt.Sprintf("%s%016x%016x", prefix, w.random.Uint64(), w.random.Uint64())
	}
	w.secrets = map[string]string{
		"DUCTOR_TELEGRAM_TOKEN": key("424242:AA"),
		secretOfAgents:          key("sk-ant-api03-"),
		"OPENAI_API_KEY":        key("sk-proj-"),
		"GEMINI_API_KEY":        key("AIzaSy"),
		"COPILOT_GITHUB_TOKEN":  key("github_pat_11"),
	}
}

// install replaces the installed ductor in the same way as a package manager.
func (w *world) install(build int) error {
	for _, name := range []string{"ductor-runner", "ductor"} {
		next := w.path("opt/." + name)
		if err := os.Link(filepath.Join(w.builds[build], name), next); err != nil {
			return err
		}
		if err := os.Rename(next, w.path("opt/"+name)); err != nil {
			return err
		}
		_ = os.Remove(next) // os.Rename does nothing if both names are hard links to the same file
	}
	w.build = build
	return nil
}

// installAgents creates links to this program with the names of the scripted agents.
func (w *world) installAgents() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if _, err := agent.InstallFrom(program, w.path("bin")); err != nil {
		return err
	}
	// The agent "gem" is the scripted Gemini under another name.
	text := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\"\n", w.path("bin/"+agent.Gemini))
	return os.WriteFile(w.path("bin/"+acpAgent), []byte(text), 0o700)
}

func (w *world) environment() []string {
	env := []string{"HOME=" + w.home(), "TMPDIR=" + w.path("tmp"), "PATH=" + w.path("bin") + ":/usr/bin:/bin",
		"LANG=C.UTF-8", "TZ=UTC", "SIM_ACP_NAME=gem"}
	env = append(env, scenario.SecretVariable+"="+w.secrets[secretOfAgents])
	for name, value := range w.secrets {
		if name != "DUCTOR_TELEGRAM_TOKEN" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

type daemon struct {
	cmd   *exec.Cmd
	done  chan struct{}
	ended bool // the test has ended ductor
}

func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(w.path("opt/ductor"), args...)
	cmd.Env, cmd.Dir = w.environment(), w.home()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// start starts ductor and returns at once.
func (w *world) start() error {
	if w.up() {
		return nil
	}
	log, err := os.OpenFile(w.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	d := &daemon{cmd: w.command("run", "-c", w.config()), done: make(chan struct{})}
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if w.daemon != nil && !w.daemon.ended {
		w.died(time.Now())
	}
	if err := d.cmd.Start(); err != nil {
		return fmt.Errorf("start ductor: %w", err)
	}
	go func() { _ = d.cmd.Wait(); close(d.done) }()
	w.daemon = d
	return w.memory.join(d.cmd.Process.Pid)
}

// awaitPoll waits until ductor polls. If ductor ends, it starts ductor again, like systemd.
func (w *world) awaitPoll() error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if err := w.start(); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		err := w.srv.AwaitPoll(ctx)
		cancel()
		if err == nil && w.up() {
			return nil
		}
		if tail := w.logTail(); strings.Contains(tail, "ductor: "+w.config()) {
			return fmt.Errorf("the configuration is wrong: %s", tail)
		}
	}
	return fmt.Errorf("ductor does not poll; its log ends with\n%s", w.logTail())
}

func (w *world) up() bool {
	if w.daemon == nil {
		return false
	}
	select {
	case <-w.daemon.done:
		return false
	default:
		return true
	}
}

func (w *world) kill() {
	if w.up() {
		w.daemon.ended = true
		_ = w.daemon.cmd.Process.Kill()
		<-w.daemon.done
	}
}

// stop ends ductor normally. The exit code must be 0.
func (w *world) stop() error {
	if !w.up() {
		return nil
	}
	began := time.Now()
	w.daemon.ended = true
	_ = w.daemon.cmd.Process.Signal(syscall.SIGCONT)
	if err := w.daemon.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-w.daemon.done:
	case <-time.After(patience):
		return errors.New("ductor does not end after SIGTERM; its goroutines are in the log" + w.dump())
	}
	w.note("ductor ended %s after SIGTERM", time.Since(began).Round(time.Millisecond))
	if code := w.daemon.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("ductor ends with code %d after SIGTERM; its log ends with\n%s", code, w.logTail())
	}
	return nil
}

// dump makes ductor print its goroutines to its log, and returns them. Printing ends ductor.
func (w *world) dump() string {
	w.daemon.ended = true
	_ = w.daemon.cmd.Process.Signal(syscall.SIGQUIT)
	<-w.daemon.done
	return ""
}

func (w *world) logTail() string {
	raw, _ := os.ReadFile(w.log())
	return string(raw[max(0, len(raw)-4000):])
}

// note writes a line to the log of the driver.
func (w *world) note(format string, args ...any) {
	slog.Info(strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// close ends ductor, the proxy, Telegram, and the processes that load the CPUs. The kernel ends all other processes and
// mounts together with the container.
func (w *world) close() {
	w.unload()
	w.kill()
	w.line.close()
	_ = w.srv.Close()
}
