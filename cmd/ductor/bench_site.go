package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ductor/internal/sim/agent"
	"ductor/internal/sim/telegram"
	"ductor/internal/supervisor"
)

// site is a simulated Telegram in this process and a ductor in another, so that what is measured of the
// one is not spent by the other.
type site struct {
	bench   *bench
	opts    siteOptions
	srv     *telegram.Server
	dir     string
	project string // where agents work
	stamps  string // the file in which the agent notes when it wrote which delta
	runs    int
	child   *exec.Cmd
	alive   context.Context // ends when the child does
}

// siteOptions say what differs from the defaults of ductor and of an unlimited Telegram.
type siteOptions struct {
	name   string
	people int             // who may write, by the ids from 1 on; 1 when 0
	limits telegram.Limits // Telegram's
	rates  string          // the section [rate] of the configuration; empty for the defaults
	stamps bool            // the agent notes when it writes
}

// noRates takes ductor's own budgets out of a measurement that is not about them.
const noRates = "private_per_second = 100\nprivate_burst = 100\noverall_per_second = 1000\n"

func (b *bench) newSite(o siteOptions) (*site, error) {
	s := &site{bench: b, opts: o, dir: filepath.Join(b.scratch, o.name)}
	s.project, s.stamps = filepath.Join(s.dir, "project"), filepath.Join(s.dir, "stamps")
	for _, dir := range []string{"project", "bin", "home"} {
		if err := os.MkdirAll(filepath.Join(s.dir, dir), 0o700); err != nil {
			return nil, fmt.Errorf("make a site: %w", err)
		}
	}
	s.srv = telegram.New(telegram.Options{Limits: o.limits})
	if err := s.srv.Start(); err != nil {
		return nil, err
	}
	if err := s.configure(); err != nil {
		s.srv.Close()
		return nil, fmt.Errorf("configure a site: %w", err)
	}
	return s, nil
}

func (s *site) configure() error {
	programs, err := agent.Install(filepath.Join(s.dir, "bin"))
	if err != nil {
		return err
	}
	claude := programs.Claude
	if s.opts.stamps {
		claude = filepath.Join(s.dir, "bin", "stamping")
		text := fmt.Sprintf("#!/bin/sh\nexec '%s' %s '%s' \"$@\"\n", s.bench.self, benchAgentName, s.stamps)
		if err := os.WriteFile(claude, []byte(text), 0o700); err != nil {
			return err
		}
	}
	var people []string
	for id := range max(s.opts.people, 1) {
		people = append(people, strconv.Itoa(id+1))
	}
	rates := ""
	if s.opts.rates != "" {
		rates = "[rate]\n" + s.opts.rates
	}
	text := fmt.Sprintf("[telegram]\ntoken = %q\napi_base = %q\nallowed_users = [%s]\n"+
		"[agents]\nmax_live = %d\n[agents.claude]\npath = %q\nenv = [\"DUCTOR_SIM_HOME\"]\n[agents.codex]\npath = %q\n[agents.gemini]\nenabled = false\n[agents.copilot]\nenabled = false\n"+
		"[permissions]\nmode = \"bypass\"\n[projects]\nroots = [%q]\ndefault_dir = %q\n[storage]\ndir = %q\n%s",
		s.srv.Token(), s.srv.URL(), strings.Join(people, ", "), max(len(people), 4), claude, programs.Codex,
		s.project, s.project, filepath.Join(s.dir, "state"), rates)
	return os.WriteFile(s.config(), []byte(text), 0o600)
}

func (s *site) config() string { return filepath.Join(s.dir, "config.toml") }
func (s *site) log() string    { return filepath.Join(s.dir, "log") }

// private is the chat with a person; ids begin with 1.
func (s *site) private(id int) *telegram.Chat {
	return s.srv.Private(telegram.UserID(id), "Person "+strconv.Itoa(id))
}

// start starts ductor and returns when it polls.
func (s *site) start(ctx context.Context) error {
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.runs++
	args := []string{"run", "--config", s.config()}
	if dir := s.bench.profiles; dir != "" {
		args = []string{profiledRunName, filepath.Join(dir, fmt.Sprintf("%s-%d", s.opts.name, s.runs)), "--config", s.config()}
	}
	home := filepath.Join(s.dir, "home")
	s.child = exec.Command(s.bench.self, args...)
	s.child.Env = append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=none", "OPENAI_API_KEY=none"}, s.bench.env...)
	s.child.Stdout, s.child.Stderr = log, log
	s.child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := s.child.Start(); err != nil {
		return fmt.Errorf("start ductor: %w", err)
	}
	var died context.CancelFunc
	s.alive, died = context.WithCancel(context.Background())
	go func(child *exec.Cmd) {
		defer died()
		_ = child.Wait() // a ductor that is killed has no error to tell
	}(s.child)
	return s.whileAlive(ctx, "poll", s.srv.AwaitPoll)
}

// whileAlive waits for what ductor is to do, and not beyond its end.
func (s *site) whileAlive(ctx context.Context, what string, await func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.alive, func() { cancel(errors.New("it ended")) })()
	if err := await(ctx); err != nil {
		return fmt.Errorf("ductor does not %s: %w; its log: %s", what, err, s.lastWords())
	}
	return nil
}

// startWarm starts ductor and waits until what it does at first is done.
func (s *site) startWarm(ctx context.Context) error {
	if err := s.start(ctx); err != nil {
		return err
	}
	return pauseFor(ctx, 700*time.Millisecond)
}

func (s *site) lastWords() string {
	b, _ := os.ReadFile(s.log())
	return string(b[max(0, len(b)-4000):])
}

// signal ends ductor by a signal and waits until it is gone.
func (s *site) signal(sig syscall.Signal) {
	if s.child == nil {
		return
	}
	_ = s.child.Process.Signal(sig) // one that is gone already is what is wanted
	select {
	case <-s.alive.Done():
	case <-time.After(15 * time.Second):
		_ = s.child.Process.Kill()
		<-s.alive.Done()
	}
	s.child = nil
}

// close ends everything. Agents outlive a ductor that had to be killed.
func (s *site) close() {
	s.signal(syscall.SIGTERM)
	s.srv.Close()
	if err := endRuns(filepath.Join(s.dir, "state", runsDir)); err != nil {
		fmt.Fprintln(os.Stderr, "end what is left of a benchmark:", err)
	}
}

// endRuns ends every run that is kept in dir, and removes what is left of it.
func endRuns(dir string) error {
	root, err := supervisor.Open(dir, supervisor.Options{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	runs, err := root.List(ctx)
	for _, run := range runs {
		err = errors.Join(err, root.Kill(ctx, run.ID), root.Collect(ctx, run.ID))
	}
	return errors.Join(err, root.Close())
}

// cpu is the processor time ductor has spent, agents not counted.
func (s *site) cpu() (time.Duration, error) {
	const cpuClockSched = 2
	var ts unix.Timespec
	clock := ^int32(s.child.Process.Pid)<<3 | cpuClockSched // see clock_getcpuclockid(3)
	if err := unix.ClockGettime(clock, &ts); err != nil {
		return 0, fmt.Errorf("read the processor time of ductor: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}

// memory reads a size such as VmRSS or VmHWM of ductor, in bytes.
func (s *site) memory(name string) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.child.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of ductor: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("no %s of ductor", name)
}

func pauseFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
