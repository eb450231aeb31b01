package simulated

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"ductor/cli"
	"ductor/internal/sim/agent"
	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/scenario"
)

// machine contains the running agents and their data, like a runner. Agents and data survive the end of ductor.
type machine struct {
	log       *log
	home      string // directory in which the scripted agents store their sessions
	orphan    time.Duration
	age       time.Duration
	installed []string
	forgets   func() bool // reports whether the machine loses the record of a run in a power failure
	printed   func()      // called when an agent has printed something

	mu     sync.Mutex
	pid    int
	runs   map[cli.RunID]*run
	closed bool
	events []judge.AgentEvent
	all    sync.WaitGroup
}

const shellName = "sh"

// binDir is the directory with the programs of the machine.
const binDir = "/simulated/bin"

// lookPath finds a program by its name or path.
func (m *machine) lookPath(name string) (string, error) {
	base := filepath.Base(name)
	if base != shellName && !slices.Contains(m.installed, base) || name != base && name != filepath.Join(binDir, base) {
		return "", fmt.Errorf("find %s: %w", name, fs.ErrNotExist)
	}
	return filepath.Join(binDir, base), nil
}

func (m *machine) start(id cli.RunID, cmd cli.Command) (*run, error) {
	path, err := m.lookPath(cmd.Path)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(cmp.Or(cmd.Dir, "/")); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s is no directory", cmd.Dir)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errDead
	}
	m.pid++
	r := &run{
		machine: m, id: id, purpose: cmd.For, pid: 1000 + m.pid, name: filepath.Base(path),
		signals: make(chan os.Signal, 8), done: make(chan struct{}),
	}
	r.life, r.kill = context.WithCancel(context.Background())
	m.runs[id] = r
	r.note("start", "%q in %s", cmd.Args, cmd.Dir)
	program := agent.Program{
		Args:  append([]string{r.name}, cmd.Args...),
		Env:   append(slices.Clone(cmd.Env), "DUCTOR_SIM_HOME="+m.home, scenario.SecretVariable+"="+secret),
		Dir:   cmp.Or(cmd.Dir, "/"),
		Stdin: &r.in, Stdout: outputOf{r}, Stderr: &r.stderr, Signals: r.signals, IgnoreTerm: r.ignoreTerm,
		Heard: r.recordPrompts, Wrote: r.recordWrite, Asked: r.asked, Ended: r.recordAnswer,
		Shell: func(ctx context.Context, dir, command string) (string, int) {
			ctx, end := context.WithCancel(ctx)
			defer end()
			defer context.AfterFunc(r.life, end)() // like the runner, end the command when the agent ends
			return m.shell(ctx, r, dir, command)
		},
	}
	m.all.Go(func() {
		// ductor starts this shell to kill the child processes of an agent. Simulated agents have no child processes, so the
		// shell ends at once.
		if r.name == shellName {
			r.end(cli.ExitStatus{})
			return
		}
		code := program.Run(r.life)
		r.end(cli.ExitStatus{Code: code})
	})
	return r, nil
}

func (m *machine) find(id cli.RunID) *run {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runs[id]
}

// list returns all runs, sorted by process ID.
func (m *machine) list() []*run {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*run
	for _, r := range m.runs {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *run) int { return cmp.Compare(a.pid, b.pid) })
	return all
}

func (m *machine) forget(id cli.RunID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.runs, id)
}

// close kills all runs.
func (m *machine) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	for _, r := range m.list() {
		r.killBy(cli.EndedByTerminated)
	}
	m.all.Wait()
}

// event records something that an agent has done.
func (m *machine) event(r *run, token scenario.Token, what judge.What, name string) {
	r.note("agent", "%s %s %s", token, what, name)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, judge.AgentEvent{
		At: time.Now(), Agent: r.name, Run: string(r.id), Token: token, What: what, Name: name,
	})
}

// agentEvents returns everything that agents have done.
func (m *machine) agentEvents() []judge.AgentEvent {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.events)
}

// powerOff ends all agents at once. Only data that has reached the disk remains.
func (m *machine) powerOff() {
	for _, r := range m.list() {
		r.end(cli.ExitStatus{Code: cli.CodeUnknown, By: cli.EndedUnseen})
		if m.forgets() {
			m.forget(r.id)
		}
	}
}
