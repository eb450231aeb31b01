package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/docker/dockertest"
	"ductor/internal/app"
	"ductor/internal/config"
	"ductor/internal/doctor"
	"ductor/internal/runner"
	"ductor/internal/secrets"
	"ductor/internal/sim/agent"
	"ductor/internal/sim/telegram"
	"ductor/internal/sim/toolserver"
	"ductor/internal/store"
	"ductor/internal/testprogram"
	"ductor/orchestrator"
)

// TestMain also makes the test binary the scripted agent, its runner, and ductor itself for tests that kill a
// process.
func TestMain(m *testing.M) {
	runIfAsked()
	agent.RunIfChild()
	toolserver.RunIfAsked()
	// An agent starts this program for the tools.
	if os.Getenv(beDuctor) != "" || len(os.Args) > 1 && (os.Args[1] == "mcp" || os.Args[1] == "send") {
		main()
	}
	testprogram.Split(4)
	testprogram.Checks(15)
	code := m.Run()
	dockertest.Clean()
	os.Exit(code)
}

const beDuctor = "TEST_BE_DUCTOR"

// Users, groups and topics of the tests.
const (
	owner     = 1
	neighbour = 2
	stranger  = 66
)

// patience is the time after which a test gives up waiting.
const patience = 3 * time.Minute

// town is an app with a simulated Telegram.
type town struct {
	t     testing.TB
	srv   *telegram.Server
	cfg   config.Config
	chat  *telegram.Chat // the owner's private chat
	stop  func()         // ends agents too
	leave func()         // leaves agents running for the next start

	// Parts of a daemon's configuration: the default agent, Codex's mode, the permission mode, and more lines about agents.
	agent, mode, permission, extra string
}

// newTown creates the environment of a test and starts an app in it. change may alter the configuration.
func newTown(t testing.TB, change func(*config.Config)) *town {
	t.Helper()
	town := surroundings(t, change)
	town.start()
	return town
}

func surroundings(t testing.TB, change func(*config.Config)) *town {
	t.Helper()
	srv := telegram.New(telegram.Options{CallbackTimeout: patience})
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	programs, err := agent.InstallFrom(clitest.Program(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	project := t.TempDir()
	cfg := config.Default()
	cfg.Telegram.Token = secrets.Value(srv.Token())
	cfg.Telegram.APIBase = srv.URL()
	cfg.Telegram.AllowedUsers = []int64{owner}
	cfg.Storage.Dir = filepath.Join(t.TempDir(), "state")
	cfg.Projects.DefaultDir, cfg.Projects.Roots = project, []string{project}
	a := &cfg.Agents
	a.Claude.Path, a.Codex.Path, a.Gemini.Path, a.Copilot.Path = programs.Claude, programs.Codex, programs.Gemini,
		programs.Copilot
	cfg.Rate.PrivatePerSecond, cfg.Rate.PrivateBurst, cfg.Rate.OverallPerSecond = 100, 100, 1000
	cfg.Stream.IntervalPrivate = 20 * time.Millisecond
	cfg.Stream.MaxMessages = 0 // tests expect whole answers in messages
	cfg.Stream.Display = "plain"
	t.Setenv("HOME", t.TempDir())
	t.Setenv("DUCTOR_SIM_HOME", t.TempDir())
	t.Setenv("ANTHROPIC_API_KEY", "dummy")
	t.Setenv("OPENAI_API_KEY", "dummy")
	t.Setenv("GEMINI_API_KEY", "dummy")
	t.Setenv("COPILOT_GITHUB_TOKEN", "dummy")
	if change != nil {
		change(&cfg)
	}
	return &town{t: t, srv: srv, cfg: cfg, chat: srv.Private(owner, "Owner")}
}

// start runs an app until stop or the end of the test.
func (town *town) start() { town.startOver(runner.Options{}) }

// startOver is start with options for the runner.
func (town *town) startOver(start runner.Options) {
	t := town.t
	t.Helper()
	if len(start.Command) == 0 {
		start = clitest.Runner(t)
	}
	h, err := app.Build(t.Context(), town.cfg,
		app.Options{Log: testLog(t), Scrub: tgapi.NewScrubber(town.srv.Token()), Runner: start, Examine: doctor.Report})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- h.Run(ctx) }()
	stopped := false
	end := func(how func()) {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-served; err != nil {
			t.Errorf("the app failed: %v", err)
		}
		how()
	}
	town.stop, town.leave = func() { end(h.Close) }, func() { end(h.Leave) }
	t.Cleanup(town.stop)
	if err := town.srv.AwaitPoll(town.soon()); err != nil {
		t.Fatal(err)
	}
}

func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("log: %s", p)
	return len(p), nil
}

func (town *town) soon() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	town.t.Cleanup(cancel)
	return ctx
}

// say sends a text as the owner.
func (town *town) say(format string, args ...any) telegram.Message {
	return town.chat.Person().Send(town.chat, fmt.Sprintf(format, args...))
}

// await waits until a message of the bot contains part and has stopped growing.
func (town *town) await(part string) telegram.Message {
	town.t.Helper()
	m, err := town.chat.AwaitText(town.soon(), part)
	if err != nil {
		town.fatal(err)
	}
	return m
}

// awaitIdle sends /status until nothing runs, and returns the status. A turn ends after its answer, when its files
// are compared.
func (town *town) awaitIdle() telegram.Message {
	town.t.Helper()
	for {
		said := town.say("/status")
		m := town.awaitMessage(func(m telegram.Message) bool { return m.ID > said.ID })
		if strings.Contains(m.Text, "Nothing is running") {
			return m
		}
	}
}

// fatal ends a test that waited without success. It prints the state of all processes, and then the chat, since logs
// are often truncated at the front.
func (town *town) fatal(err error) {
	town.t.Helper()
	var stacks strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
	town.t.Log(stacks.String())
	town.tellJournal(town.soon())
	town.t.Fatal(err)
}

// awaitDone waits for n complete answers, and returns the newest.
func (town *town) awaitDone(n int) telegram.Message {
	town.t.Helper()
	v, err := town.chat.Await(town.soon(), func(v telegram.View) bool { return len(ended(v)) >= n })
	if err != nil {
		town.fatal(err)
	}
	all := ended(v)
	return all[len(all)-1]
}

// ended returns the bot's messages with a footer, which are complete.
func ended(v telegram.View) (out []telegram.Message) {
	for _, m := range v.FromBot() {
		lines := strings.Split(strings.TrimSpace(m.Text), "\n")
		if slices.ContainsFunc(lines[max(0, len(lines)-2):], isFooter) { // a receipt may follow the footer
			out = append(out, m)
		}
	}
	return out
}

func isFooter(line string) bool {
	return strings.Contains(line, " · ") && (strings.HasSuffix(line, "s") || strings.Contains(line, "s · ")) &&
		!strings.ContainsAny(line, "✓✗⏳•🔐⛔")
}

// press presses a button of the newest message that has it.
func (town *town) press(name string) telegram.Answer {
	town.t.Helper()
	answer, err := town.chat.Person().Press(town.soon(), town.awaitButton(name), name)
	if err != nil {
		town.t.Fatalf("press %s: %v", name, err)
	}
	return answer
}

// runs returns the runs of this town's runner.
func (town *town) runs() []runner.Info {
	town.t.Helper()
	root, err := runner.Open(app.RunsPath(town.cfg), clitest.Runner(town.t))
	if err != nil {
		town.t.Fatal(err)
	}
	defer root.Close()
	infos, err := root.List(town.soon())
	if err != nil {
		town.t.Fatal(err)
	}
	return infos
}

// endRuns ends the agents that a daemon left running, as `ductor kill --all` does.
func (town *town) endRuns() {
	town.t.Helper()
	root, err := runner.Open(app.RunsPath(town.cfg), clitest.Runner(town.t))
	if err != nil {
		town.t.Errorf("end what was left: %v", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	runs, err := root.List(ctx)
	for _, run := range runs {
		err = errors.Join(err, root.Kill(ctx, run.ID), root.Collect(ctx, run.ID))
	}
	if err = errors.Join(err, root.Close()); err != nil {
		town.t.Errorf("end what was left: %v", err)
	}
}

// checkNoTurnProcesses fails if a process still works in the agents' directory, except agents that were opened ahead
// of a turn.
func (town *town) checkNoTurnProcesses() {
	town.t.Helper()
	var left []string
	for deadline := time.Now().Add(patience / 2); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if left = town.livingOfTurns(); len(left) == 0 {
			return
		}
	}
	town.t.Errorf("still alive: %q", left)
}

// turnOf returns the last turn that began in a run, or "".
func (town *town) turnOf(run runner.Info) cli.TurnID {
	town.t.Helper()
	db, err := store.OpenReadOnly(town.t.Context(), town.database(), store.Options{})
	if err != nil {
		town.t.Fatal(err)
	}
	defer db.Close()
	turn, _, err := db.LastStart(town.t.Context(), cli.RunID(run.ID))
	if err != nil && !errors.Is(err, orchestrator.ErrNoTurn) {
		town.t.Fatal(err)
	}
	return turn
}

func (town *town) livingOfTurns() (living []string) {
	town.t.Helper()
	ahead := map[int]bool{}
	for _, run := range town.runs() {
		if town.turnOf(run) == "" {
			ahead[run.PID] = true
		}
	}
	for pid, command := range processesIn(town.t, town.cfg.Projects.DefaultDir) {
		of := pid
		for of > 1 && !ahead[of] {
			of = parentOf(of)
		}
		if !ahead[of] {
			living = append(living, command)
		}
	}
	return living
}

// parentOf returns the parent of a process, or 0 if the process has ended.
func parentOf(pid int) int {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// checkNoProcessIn fails if a process still has its working directory in dir.
func checkNoProcessIn(t testing.TB, dir string) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(patience / 2); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if left = livingIn(t, dir); len(left) == 0 {
			return
		}
	}
	t.Errorf("still alive in %s: %q", dir, left)
}

func livingIn(t testing.TB, dir string) (living []string) {
	t.Helper()
	for _, command := range processesIn(t, dir) {
		living = append(living, command)
	}
	return living
}

// processesIn returns the command lines of the processes that have their working directory in dir.
func processesIn(t testing.TB, dir string) map[int]string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	living := map[int]string{}
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && at == dir {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			living[pid] = strings.ReplaceAll(string(cmdline), "\x00", " ")
		}
	}
	return living
}
