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

// World is ductor with its environment, in a bubble of synctest.
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
	stops   []judge.Stop // owned by the goroutine that starts processes, until it has ended
	failure error        // error of a start; owned by the same goroutine
	ended   chan struct{}
	living  sync.WaitGroup

	mu   sync.Mutex
	life *life
	gone time.Time // end of Telegram's outage
}

// secret is in the environment of ductor and its agents, and must not appear elsewhere.
const secret = "sk-ordeal-4f1c9b7e5d2a8c6037e1"

// New creates a world below an empty directory. It does not start ductor.
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

// leave makes Telegram unreachable until a time.
func (w *World) leave(until time.Time) {
	w.log.awaits(until)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = until
}

// away reports whether Telegram is unreachable.
func (w *World) away() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Before(w.gone)
}

// called records a call to Telegram. Typing and polling do not count as activity.
func (w *World) called(c telegram.Call) {
	if c.RetryAfter > 0 {
		w.log.awaits(c.At.Add(time.Duration(c.RetryAfter) * time.Second))
	}
	switch c.Method {
	case "getUpdates":
		if c.Params["offset"] != "0" {
			w.log.said("poll", "offset %s: %d", c.Params["offset"], c.Code)
		}
	case "sendChatAction":
		w.log.said("typing", "in %v", c.Chat)
		w.log.works()
	default:
		w.log.note("call", "%s %v %v: %v %d %s", c.Method, c.Params, c.Fault, c.OK, c.Message, c.Description)
	}
}

func (w *World) path(name string) string { return filepath.Join(w.dir, name) }

// socketFiles returns the sockets in the state directory. A bubble does not support them. Directories with their
// names prevent ductor from listening, which it tolerates.
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

// askTimeout returns how long users may take to answer requests. This is shorter than the default, to save time.
func askTimeout(o scenario.Options) string {
	for _, s := range o.Settings {
		if s.Key == "permissions.ask_timeout" {
			return string(s.Value)
		}
	}
	return `"5m"`
}

// configure writes and reads the configuration. It includes the webhook if hook is true.
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

// Start starts ductor, and restarts it whenever it ends, until Stop.
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

// startNext ends the current process as planned, waits for its end, and starts the next process.
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
	w.log.awaits(time.Now().Add(end.Down))
	time.Sleep(end.Down)
	if err := w.openAgain(); err != nil {
		return err
	}
	stop.Up = time.Now()
	w.stops = append(w.stops, stop)
	return nil
}

// openAgain starts the next process. systemd retries if ductor dies at the start or its disk fails.
func (w *World) openAgain() (err error) {
	for range mostStarts {
		if err = w.open(); err == nil {
			return nil
		}
		l := w.current()
		w.log.note("failed", "start of life %d: %v", l.number, err)
		time.Sleep(restartPause) // ductor may be killed again in the meantime
		switch {
		case l.dead():
			w.stops = append(w.stops, judge.Stop{How: l.ending().How, At: time.Now(), Up: time.Now()})
			if err := w.disk.thaw(); err != nil {
				return err
			}
		case isOfDisk(err):
			w.disk.release()
		default:
			return err
		}
	}
	return err
}

// isOfDisk reports whether ductor ended because of its disk. systemd starts it again.
func isOfDisk(err error) bool {
	return errors.Is(err, orchestrator.ErrDiskFailed) || errors.Is(err, orchestrator.ErrDiskFull) ||
		errors.Is(err, orchestrator.ErrDamaged)
}

// mostStarts is the maximum number of failed starts.
const mostStarts = 1000

// quiet is how long there must be no activity before Settle returns.
const quiet = 90 * time.Second

// Settle waits until there is no activity, at most for most. If waiting is true, it also waits until agents' requests
// are answered.
func (w *World) Settle(most time.Duration, waiting bool) error {
	for began := time.Now(); w.log.quietFor(waiting) < quiet || waiting &&
		w.Telegram.PendingUpdates() > 0; time.Sleep(5 * time.Second) {
		if time.Since(began) > most {
			return fmt.Errorf("after %s things still happen", most)
		}
	}
	return nil
}

// Stop ends ductor in order, and then its agents. After it returns, nothing of the world runs.
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
	w.disk.release()
	w.disk.medium.Close()
	if closed := w.Telegram.Close(); err == nil {
		err = closed
	}
	return err
}

// Log returns the recorded events.
func (w *World) Log() []string { return w.log.all() }
