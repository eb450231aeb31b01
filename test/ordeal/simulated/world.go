package simulated

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/scenario"
)

// World contains ductor and its simulated environment: Telegram, agents and a disk. All code that uses a World must run
// in the same synctest bubble.
type World struct {
	Telegram *telegram.Server

	t       testing.TB
	dir     string
	cfg     config.Config
	machine *machine
	disk    *storage
	wire    http.RoundTripper
	log     *log
	town    town

	lives   int
	stops   []judge.Stop // used by the goroutine that starts ductor and, after this goroutine has ended, by Stop
	failure error        // first error of the goroutine that starts ductor
	ended   chan struct{}
	living  sync.WaitGroup

	mu        sync.Mutex
	life      *life
	awayUntil time.Time // Telegram is unreachable before this time
}

// secret is in the environment of ductor and of its agents. It must not appear anywhere else.
const secret = "sk-ordeal-4f1c9b7e5d2a8c6037e1"

// New creates a World in an empty directory. It does not start ductor.
func New(t testing.TB, dir string, s scenario.Scenario) *World {
	t.Helper()
	o := s.Options
	w := &World{t: t, dir: dir, log: newLog(dir), ended: make(chan struct{})}
	w.Telegram = telegram.New(telegram.Options{})
	w.wire = w.Telegram.Client().Transport
	w.Telegram.OnCall(w.called)
	w.town = newTown(w.Telegram, o)
	w.makeDirs()
	w.configure(o, slices.ContainsFunc(s.Steps, func(s scenario.Step) bool { return scenario.Kind(s) == "deliver" }))
	a := w.cfg.Agents
	w.machine = &machine{log: w.log, home: w.path("agents"), orphan: a.OrphanAfter, age: a.StaleAfter,
		runs: map[cli.RunID]*run{}, installed: agentsOf(o)}
	chance := rand.New(rand.NewPCG(s.Seed, 1))
	w.machine.forgets = func() bool { return chance.IntN(2) == 0 }
	w.machine.printed = func() { _ = w.current().step(scenario.AtOutput, "output") }
	w.disk = newStorage(w, s.Seed)
	return w
}

// leave makes Telegram unreachable until the given time.
func (w *World) leave(until time.Time) {
	w.log.expectAt(until)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.awayUntil = until
}

func (w *World) away() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Before(w.awayUntil)
}

// called records a call to Telegram. Polling and typing do not count as activity.
func (w *World) called(c telegram.Call) {
	if c.RetryAfter > 0 {
		w.log.expectAt(c.At.Add(time.Duration(c.RetryAfter) * time.Second))
	}
	switch c.Method {
	case "getUpdates":
		if c.Params["offset"] != "0" {
			w.log.noteQuietly("poll", "offset %s: %d", c.Params["offset"], c.Code)
		}
	case "sendChatAction":
		w.log.noteQuietly("typing", "in %v", c.Chat)
		w.log.recordTyping()
	default:
		w.log.note("call", "%s %v %v: %v %d %s", c.Method, c.Params, c.Fault, c.OK, c.Message, c.Description)
	}
}

func (w *World) path(name string) string { return filepath.Join(w.dir, name) }

// socketFiles returns the names of the sockets in ductor's state directory. testing/synctest does not support sockets.
// New creates directories with these names, so that ductor cannot listen there. ductor then works without sockets.
func socketFiles() []string { return []string{"attach.sock", "terminal.sock", "mcp.sock"} }

func (w *World) makeDirs() {
	for _, name := range []string{"home", "agents", "project", "tmp"} {
		if err := os.MkdirAll(w.path(name), 0o700); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, name := range socketFiles() {
		if err := os.MkdirAll(filepath.Join(w.path("state"), name, "none"), 0o700); err != nil {
			w.t.Fatal(err)
		}
	}
	for name, value := range map[string]string{
		"HOME": w.path("home"), "TMPDIR": w.path("tmp"), "ANTHROPIC_API_KEY": "dummy", "OPENAI_API_KEY": "dummy",
		"GEMINI_API_KEY":       "dummy",
		"COPILOT_GITHUB_TOKEN": "dummy", "IS_SANDBOX": "1", scenario.SecretVariable: secret,
	} {
		w.t.Setenv(name, value)
	}
}

func agentsOf(o scenario.Options) []string {
	if len(o.Agents) == 0 {
		return []string{"claude"}
	}
	return o.Agents
}

// askTimeout returns how long users have to decide a request. It is shorter than ductor's default, to save time.
func askTimeout(o scenario.Options) string {
	for _, s := range o.Settings {
		if s.Key == "permissions.ask_timeout" {
			return string(s.Value)
		}
	}
	return `"5m"`
}

// configure writes a configuration and reads it. If hook is true, the configuration contains a webhook.
func (w *World) configure(o scenario.Options, hook bool) {
	var b strings.Builder
	set := func(key, value string) { fmt.Fprintf(&b, "%s = %s\n", key, value) }
	set("telegram.token", fmt.Sprintf("%q", w.Telegram.Token()))
	set("telegram.api_base", `"http://telegram.invalid"`)
	set("telegram.allowed_users", fmt.Sprintf("[%d, %d, %d]", idOf(scenario.Owner), idOf(scenario.Ann),
		idOf(scenario.Bob)))
	set(fmt.Sprintf("users.%d.role", idOf(scenario.Bob)), `"viewer"`)
	set("telegram.allowed_groups", w.town.groups())
	set("telegram.group_trigger", `"all"`)
	set("storage.dir", fmt.Sprintf("%q", w.path("state")))
	set("projects.default_dir", fmt.Sprintf("%q", w.path("project")))
	set("projects.roots", fmt.Sprintf("[%q]", w.path("project")))
	set("agents.default", fmt.Sprintf("%q", agentsOf(o)[0]))
	set("permissions.ask_timeout", askTimeout(o))
	if hook {
		set("webhooks.hooks."+hookName+".auth", `"bearer"`)
		set("webhooks.hooks."+hookName+".secret", fmt.Sprintf("%q", hookSecret))
		set("webhooks.hooks."+hookName+".prompt", `"{{payload}}"`)
	}
	for _, s := range o.Settings {
		if s.Key == "permissions.ask_timeout" {
			continue
		}
		set(s.Key, string(s.Value))
	}
	file := w.path("config.toml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		w.t.Fatal(err)
	}
	cfg, err := config.Load(file)
	if err != nil {
		w.t.Fatalf("%v\n%s", err, b.String())
	}
	w.cfg = cfg
}

// Start starts ductor. Until Stop is called, a goroutine starts ductor again whenever ductor has ended.
func (w *World) Start() error {
	err := w.open()
	if err == nil {
		w.living.Go(w.startNext)
	}
	return err
}

func (w *World) setLife(l *life) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.life = l
}

func (w *World) current() *life {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.life
}

// startNext waits until the current ductor has ended, and then starts the next one. It repeats this until Stop is
// called.
func (w *World) startNext() {
	for {
		l := w.current()
		select {
		case <-w.ended:
			return
		case <-l.stopping:
		}
		if err := w.replace(l); err != nil {
			w.log.note("failure", "%v", err)
			w.failure = err
			return
		}
	}
}

func (w *World) replace(l *life) error {
	end := l.ending()
	if !l.dead() {
		l.leave()
	}
	stop := judge.Stop{How: end.How, At: time.Now()}
	if err := l.awaitEnd(); err != nil {
		return err
	}
	w.log.expectAt(time.Now().Add(end.Down))
	time.Sleep(end.Down)
	if err := w.openAgain(); err != nil {
		return err
	}
	stop.Up = time.Now()
	w.stops = append(w.stops, stop)
	return nil
}

// openAgain starts the next ductor. If the next ductor dies while it starts, or its disk fails, openAgain tries again,
// like systemd.
func (w *World) openAgain() (err error) {
	for range mostStarts {
		if err = w.open(); err == nil {
			return nil
		}
		l := w.current()
		w.log.note("failed", "start of life %d: %v", l.number, err)
		time.Sleep(restartPause) // during this pause, ductor may still die as planned
		switch {
		case l.dead():
			w.stops = append(w.stops, judge.Stop{How: l.ending().How, At: time.Now(), Up: time.Now()})
			if err := w.disk.thaw(); err != nil {
				return err
			}
		case isOfDisk(err):
			if err := w.disk.release(); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return err
}

// isOfDisk reports whether ductor has ended because of an error of its disk. systemd then restarts ductor.
func isOfDisk(err error) bool {
	return errors.Is(err, orchestrator.ErrDiskFailed) || errors.Is(err, orchestrator.ErrDiskFull) ||
		errors.Is(err, orchestrator.ErrDamaged)
}

// mostStarts limits how often openAgain tries.
const mostStarts = 1000

// quiet is how long Settle waits for another event before it returns.
const quiet = 90 * time.Second

// Settle waits until nothing happens any more, but at most for the duration limit. It returns an error if the limit is
// exceeded. If waiting is true, Settle also waits until no request of an agent is open and ductor has received all
// updates.
func (w *World) Settle(limit time.Duration, waiting bool) error {
	for began := time.Now(); w.log.quietFor(waiting) < quiet || waiting &&
		w.Telegram.PendingUpdates() > 0; time.Sleep(5 * time.Second) {
		if time.Since(began) > limit {
			return fmt.Errorf("after %s things still happen", limit)
		}
	}
	return nil
}

// Stop ends ductor normally, and then the agents. When Stop returns, all goroutines of the World have ended.
func (w *World) Stop() error {
	close(w.ended)
	w.living.Wait()
	err := w.failure
	if l := w.current(); err == nil {
		if !l.dead() {
			l.leave()
		}
		err = l.awaitEnd()
	}
	w.machine.close()
	if released := w.disk.release(); err == nil {
		err = released
	}
	w.disk.medium.Close()
	if closed := w.Telegram.Close(); err == nil {
		err = closed
	}
	return err
}

// Log returns the lines of the log of events.
func (w *World) Log() []string { return w.log.all() }
