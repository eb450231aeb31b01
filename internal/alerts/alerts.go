package alerts

import (
	"context"
	"log/slog"
	"time"

	"ductor/orchestrator"
)

// Trouble is a problem that currently exists.
type Trouble struct {
	Key  string // identifies the problem; does not change while the problem exists
	Text string // notice to the owner when the problem begins; if empty, ductor sends none
	Over string // notice to the owner when the problem ends; its "%s" stands for the value of Since
	// Since is the start of the problem. Zero means the time at which the Watcher finds it.
	Since time.Time
	LogIn orchestrator.LogInID // account whose log-in the owner can repeat with a button; empty for none
}

// Check finds the problems of one kind. The Watcher calls Find periodically. Find reports which problems currently
// exist. If Find cannot determine this, it returns known = false, and the Watcher changes nothing. Find can call the
// function existed to check whether the previous check found the problem with a key.
type Check struct {
	Kind string // prefix of Trouble.Key
	Find func(ctx context.Context, existed func(key string) bool) (found []Trouble, known bool, err error)
}

// Store stores the problems that currently exist.
type Store interface {
	Alerts(ctx context.Context) ([]orchestrator.Alert, error)
	// BeginAlert adds a problem, and EndAlert removes one. If notice is not nil, both also store the notice, in the
	// same transaction.
	BeginAlert(ctx context.Context, a orchestrator.Alert, notice *orchestrator.Message) error
	EndAlert(ctx context.Context, key string, notice *orchestrator.Message) error
}

// Options configures a Watcher. All fields are required.
type Options struct {
	Store  Store
	Checks []Check
	// Compose creates a notice to the owner. If logIn is not empty, the notice has a button for that log-in.
	Compose func(text string, logIn orchestrator.LogInID) *orchestrator.Message
	Wake    func()                   // called after notices were stored, so that the bot sends them
	Since   func(t time.Time) string // formats the start of a problem for the owner
	Now     func() time.Time
	Log     *slog.Logger
}

// Watcher runs checks periodically and notifies the owner of problems.
type Watcher struct{ opts Options }

// New returns a Watcher.
func New(o Options) *Watcher { return &Watcher{o} }

const (
	checkInterval = time.Minute
	checkTimeout  = 45 * time.Second
)

// Run runs all checks periodically until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		for _, c := range w.opts.Checks {
			if err := w.check(ctx, c); err != nil && ctx.Err() == nil {
				w.opts.Log.Warn("check for trouble", "kind", c.Kind, "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// check runs one check. It notifies the owner of problems that have begun or ended.
func (w *Watcher) check(ctx context.Context, c Check) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	all, err := w.opts.Store.Alerts(ctx)
	if err != nil {
		return err
	}
	last := map[string]orchestrator.Alert{}
	for _, a := range all {
		if a.Kind == c.Kind {
			last[a.Key] = a
		}
	}
	found, known, err := c.Find(ctx, func(key string) bool { _, ok := last[key]; return ok })
	if err != nil || !known {
		return err
	}
	defer w.opts.Wake()
	for _, t := range found {
		if _, lasts := last[t.Key]; lasts {
			delete(last, t.Key)
			continue
		}
		a := orchestrator.Alert{Kind: c.Kind, Key: t.Key, Since: t.Since, Over: t.Over}
		if a.Since.IsZero() {
			a.Since = w.opts.Now()
		}
		if err := w.opts.Store.BeginAlert(ctx, a, w.notice(t.Text, t.LogIn)); err != nil {
			return err
		}
		w.opts.Log.Warn("trouble began; the owner gets a notice", "trouble", t.Key)
	}
	for _, a := range last {
		if err := w.opts.Store.EndAlert(ctx, a.Key, w.notice(overText(a, w.opts.Since), "")); err != nil {
			return err
		}
	}
	return nil
}

func (w *Watcher) notice(text string, logIn orchestrator.LogInID) *orchestrator.Message {
	if text == "" {
		return nil
	}
	return w.opts.Compose(text, logIn)
}
