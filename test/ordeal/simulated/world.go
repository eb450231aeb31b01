package simulated

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// The users of a world.
const (
	OwnerID telegram.UserID = 1001
	AnnID   telegram.UserID = 1002
)

// World is everything around ductor, and ductor itself. It lives in a bubble of synctest.
type World struct {
	Telegram *telegram.Server
	Owner    *telegram.Chat // private
	Ann      *telegram.Chat // private, of a second user

	t       testing.TB
	dir     string
	cfg     config.Config
	machine *machine
	disk    *disk
	wire    http.RoundTripper
	log     *log
	lives   int

	mu      sync.Mutex
	life    *life
	failure error // of a start
	ended   chan struct{}
	living  sync.WaitGroup
}

// New makes a world below an empty directory. ductor is not started.
func New(t testing.TB, dir string) *World {
	t.Helper()
	w := &World{t: t, dir: dir, log: newLog(), ended: make(chan struct{})}
	w.Telegram = telegram.New(telegram.Options{})
	w.wire = w.Telegram.Client().Transport
	w.Telegram.OnCall(func(c telegram.Call) {
		if c.Method == "getUpdates" {
			w.log.said("poll", "offset %s: %d", c.Params["offset"], c.Code)
			return
		}
		w.log.note("call", "%s %v %v: %v %d %s", c.Method, c.Params, c.Fault, c.OK, c.Message, c.Description)
	})
	w.Owner = w.Telegram.Private(OwnerID, "Owner")
	w.Ann = w.Telegram.Private(AnnID, "Ann")
	w.makeDirs()
	w.configure()
	a := w.cfg.Agents
	w.machine = &machine{log: w.log, home: w.path("agents"), orphan: a.OrphanAfter, age: a.StaleAfter, runs: map[cli.RunID]*run{}}
	w.disk = &disk{dir: w.path("state"), copy: w.path("frozen")}
	return w
}

func (w *World) path(name string) string { return filepath.Join(w.dir, name) }

// socketFiles are the sockets in the state directory. A bubble cannot have them; directories in their places keep ductor from
// listening, after which all else goes on.
func socketFiles() []string { return []string{"terminal.sock", "mcp.sock"} }

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
		"HOME": w.path("home"), "TMPDIR": w.path("tmp"), "ANTHROPIC_API_KEY": "dummy", "OPENAI_API_KEY": "dummy", "GEMINI_API_KEY": "dummy",
		"COPILOT_GITHUB_TOKEN": "dummy", "IS_SANDBOX": "1",
	} {
		w.t.Setenv(name, value)
	}
}

func (w *World) configure() {
	cfg := config.Default()
	cfg.Telegram.Token = config.Secret(w.Telegram.Token())
	cfg.Telegram.APIBase = "http://telegram.invalid"
	cfg.Telegram.AllowedUsers = []int64{int64(OwnerID), int64(AnnID)}
	cfg.Storage.Dir = w.path("state")
	cfg.Projects.DefaultDir, cfg.Projects.Roots = w.path("project"), []string{w.path("project")}
	w.cfg = cfg
}

// Start starts ductor, and starts it again whenever it died, until Stop.
func (w *World) Start() error {
	l, err := w.open()
	if err != nil {
		return err
	}
	w.setLife(l)
	w.living.Go(w.revive)
	return nil
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

// downtime is how long ductor stays away after its death.
const downtime = 5 * time.Second

// revive buries a dead ductor, and starts the next.
func (w *World) revive() {
	for {
		l := w.current()
		select {
		case <-w.ended:
			return
		case <-l.alive.Done():
		}
		if err := l.bury(); err != nil {
			w.fail(err)
			return
		}
		time.Sleep(downtime)
		next, err := w.open()
		if err != nil {
			w.fail(err)
			return
		}
		w.setLife(next)
	}
}

func (w *World) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failure = err
	w.log.note("failure", "%v", err)
}

// Crash has ductor die after so many more steps; 0 is now.
func (w *World) Crash(steps int) {
	l := w.current()
	if steps == 0 {
		l.kill()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dieAt = l.steps + steps
}

// Settle waits until nothing happened for as long as quiet, and at most for most.
func (w *World) Settle(quiet, most time.Duration) error {
	for began := time.Now(); w.log.quietFor() < quiet || w.Telegram.PendingUpdates() > 0; time.Sleep(time.Second) {
		if time.Since(began) > most {
			return fmt.Errorf("after %s things still happen", most)
		}
	}
	return nil
}

// Stop ends ductor in order, and then its agents. Nothing of the world runs when it returns.
func (w *World) Stop() error {
	close(w.ended)
	w.living.Wait()
	w.mu.Lock()
	l, err := w.life, w.failure
	w.mu.Unlock()
	if err == nil {
		if l.dead() {
			err = l.bury()
		} else {
			l.leave()
		}
	}
	w.machine.close()
	if closed := w.Telegram.Close(); err == nil {
		err = closed
	}
	return err
}

// Log lists what happened.
func (w *World) Log() []string { return w.log.all() }
