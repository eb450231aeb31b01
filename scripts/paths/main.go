// Command paths lists the functions of ductor that run for one delta of an answer, and for one abort. It runs the
// whole program on a simulated Telegram with the scripted agent, and uses coverage counters to find these functions:
//
//	go build -cover -covermode=atomic -coverpkg=ductor/... -o paths ./scripts/paths
//	paths DIR       write paths.md into DIR; fail if a path is too long
//
// It measures several deltas and several aborts. A function is listed if it runs each time. The lists also contain
// functions of timers that fire at the same time, and functions that start the next agent after an abort. They omit
// functions of simulators, libraries and the runner's process.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/coverage"
	"slices"
	"strings"
	"time"

	"ductor/bot/tgapi"
	"ductor/internal/app"
	"ductor/internal/config"
	"ductor/internal/runner"
	"ductor/internal/secrets"
	"ductor/internal/sim/agent"
	"ductor/internal/sim/telegram"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == runnerArg {
		os.Exit(runner.Main(os.Args[2:], os.Stderr))
	}
	agent.RunIfChild()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: paths DIR")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	err := run(ctx, os.Args[1])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "paths:", err)
		os.Exit(1)
	}
}

const (
	runnerArg = "runner"
	patience  = 2 * time.Minute
	// quiet is a pause before the counters are reset, so that no earlier work is still running.
	quiet = 3 * time.Second
	// rounds is how many deltas and how many aborts the command measures.
	rounds = 4
	// mostDelta is the maximum number of functions that may run for one delta, and mostAbort for one abort. The message of
	// a commit that raises a limit must name the reason.
	mostDelta, mostAbort = 340, 850
)

func run(ctx context.Context, docs string) error {
	scratch, err := os.MkdirTemp("", "ductor-paths-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	srv := telegram.New(telegram.Options{})
	if err := srv.Start(); err != nil {
		return err
	}
	defer srv.Close()
	a, err := start(ctx, srv, scratch)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- a.Run(ctx) }()
	delta, abort, err := measure(ctx, srv, scratch)
	stop()
	err = errors.Join(err, <-served)
	a.Close()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(docs, "paths.md"), page(delta, abort), 0o644); err != nil {
		return err
	}
	if len(delta) > mostDelta || len(abort) > mostAbort {
		return fmt.Errorf("a delta passes %d functions and may pass %d; an abort passes %d and may pass %d",
			len(delta), mostDelta, len(abort), mostAbort)
	}
	return nil
}

func start(ctx context.Context, srv *telegram.Server, scratch string) (*app.App, error) {
	cfg := config.Default()
	cfg.Telegram.Token, cfg.Telegram.APIBase = secrets.Value(srv.Token()), srv.URL()
	cfg.Telegram.AllowedUsers = []int64{1}
	cfg.Storage.Dir = filepath.Join(scratch, "state")
	project, bin := filepath.Join(scratch, "project"), filepath.Join(scratch, "bin")
	for _, dir := range []string{project, bin} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	cfg.Projects.DefaultDir, cfg.Projects.Roots = project, []string{project}
	programs, err := agent.Install(bin)
	if err != nil {
		return nil, err
	}
	if err := os.Setenv("DUCTOR_SIM_HOME", filepath.Join(scratch, "sim")); err != nil {
		return nil, err
	}
	cfg.Agents.Claude.Path = programs.Claude
	log := slog.New(slog.DiscardHandler)
	return app.Build(ctx, cfg, app.Options{Log: log, Scrub: tgapi.NewScrubber(srv.Token())})
}

// measure returns two lists of functions, each in the form "package function": delta lists the functions that run for
// every delta, and abort the functions that run for every abort.
func measure(ctx context.Context, srv *telegram.Server, scratch string) (delta, abort []string, err error) {
	if err := srv.AwaitPoll(ctx); err != nil {
		return nil, nil, err
	}
	chat := srv.Private(1, "You")
	say := func(text string) telegram.Message { return chat.Person().Send(chat, text) }
	say(`[[text "warm"]]`)
	if _, err := chat.AwaitText(ctx, "warm"); err != nil {
		return nil, nil, err
	}
	for round := range rounds {
		begin, end := fmt.Sprint("begin ", round), fmt.Sprint("end ", round)
		say(fmt.Sprintf(`[[text "%s%s" chunk=%d delay=6s]] [[hang]]`, begin, end, len(begin)))
		if _, err := chat.AwaitText(ctx, begin); err != nil {
			return nil, nil, err
		}
		passed, err := functionsRunBy(scratch, func() error {
			_, err := chat.AwaitText(ctx, end)
			return err
		})
		if err != nil {
			return nil, nil, err
		}
		delta = common(delta, passed)
		passed, err = functionsRunBy(scratch, func() error {
			said := say("/abort")
			_, err := chat.AwaitMessage(ctx, func(m telegram.Message) bool {
				return m.ID > said.ID && strings.Contains(m.Text, "Stopped")
			})
			return err
		})
		if err != nil {
			return nil, nil, err
		}
		abort = common(abort, passed)
	}
	return delta, abort, nil
}

// common returns the names that are in both lists. For the first round, before is nil, and common returns all names of
// the round.
func common(before, round []string) []string {
	if before == nil {
		return round
	}
	return slices.DeleteFunc(before, func(name string) bool { return !slices.Contains(round, name) })
}

// functionsRunBy calls action, and returns the functions that ran during the call.
func functionsRunBy(scratch string, action func() error) ([]string, error) {
	time.Sleep(quiet)
	dir, err := os.MkdirTemp(scratch, "counters-")
	if err != nil {
		return nil, err
	}
	if err := coverage.ClearCounters(); err != nil {
		return nil, fmt.Errorf("clear the counters; was this built with -cover -covermode=atomic?: %w", err)
	}
	if err := action(); err != nil {
		return nil, err
	}
	if err := errors.Join(coverage.WriteMetaDir(dir), coverage.WriteCountersDir(dir)); err != nil {
		return nil, err
	}
	return functionsIn(dir)
}

// line matches a line that go tool covdata func prints for a function.
var line = regexp.MustCompile(`^ductor/(\S+)/[^/]+\.go:\d+:\s+(\S+)\s+([\d.]+)%$`)

// functionsIn returns the functions of production code that ran, each as "package function".
func functionsIn(dir string) ([]string, error) {
	cmd := exec.Command("go", "tool", "covdata", "func", "-i="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("read the counters: %w", err)
	}
	var names []string
	for l := range strings.Lines(string(out)) {
		m := line.FindStringSubmatch(strings.TrimSpace(l))
		if m == nil || m[3] == "0.0" || strings.HasPrefix(m[1], "internal/sim/") ||
			strings.HasPrefix(m[1], "scripts/") {
			continue
		}
		names = append(names, m[1]+" "+m[2])
	}
	slices.Sort(names)
	return names, nil
}

func page(delta, abort []string) []byte {
	var b bytes.Buffer
	b.WriteString("# Paths\n\nThe functions that one delta of an answer and one abort pass, from the agent or from " +
		"Telegram to the chat.\n" +
		"`scripts/paths` writes this page from coverage counters.\n")
	list(&b, "A delta", delta)
	list(&b, "An abort", abort)
	return b.Bytes()
}

func list(b *bytes.Buffer, title string, names []string) {
	fmt.Fprintf(b, "\n## %s: %d functions\n\n| package | functions |\n|---|---|\n", title, len(names))
	packages := map[string][]string{}
	for _, n := range names {
		p, f, _ := strings.Cut(n, " ")
		packages[p] = append(packages[p], "`"+f+"`")
	}
	var order []string
	for p := range packages {
		order = append(order, p)
	}
	slices.SortFunc(order, cmp.Compare)
	for _, p := range order {
		fmt.Fprintf(b, "| `%s` (%d) | %s |\n", p, len(packages[p]), strings.Join(packages[p], ", "))
	}
}
