package alerts

import (
	"context"
	"log/slog"
	"time"

	"ductor/orchestrator"
)

// Trouble is a current problem.
type Trouble struct {
	Key  string // identifies the problem while it lasts
	Text string // notice for the owner when the problem begins; empty if the notice could not arrive
	Over string // notice for the owner when the problem is over; "%s" stands for the time when it began
	// Since is when the problem began. If it is zero, the problem began when the Watcher found it.
	Since time.Time
	LogIn orchestrator.LogInID // the log-in that the owner can repeat by a button; empty for none
}

// Check finds the problems of one kind. Find returns known = false if it cannot determine the current state. Then the
// Watcher neither begins nor ends a problem of this kind. before reports whether a problem with the key existed until
// now.
type Check struct {
	Kind string // prefix of the keys of its problems
	Find func(ctx context.Context, before func(key string) bool) (found []Trouble, known bool, err error)
}

// Store stores the current problems.
type Store interface {
	// Alerts lists the current problems.
	Alerts(ctx context.Context) ([]orchestrator.Alert, error)
	// BeginAlert and EndAlert add or remove a problem and store its notice, in one transaction. notice may be nil.
	BeginAlert(ctx context.Context, a orchestrator.Alert, notice *orchestrator.Message) error
	EndAlert(ctx context.Context, key string, notice *orchestrator.Message) error
}

// Options configures a Watcher. All fields are required.
type Options struct {
	Store  Store
	Checks []Check
	// Compose creates a notice for the owner, with a button for a log-in, unless logIn is empty.
	Compose func(text string, logIn orchestrator.LogInID) *orchestrator.Message
	Wake    func()                   // starts sending stored notices
	Since   func(t time.Time) string // formats a time for the owner
	Now     func() time.Time
	Log     *slog.Logger
}

// Watcher runs the checks and notifies the owner.
type Watcher struct{ opts Options }

// New returns a Watcher.
func New(o Options) *Watcher { return &Watcher{o} }

// checkInterval is the time between two checks. checkTimeout limits a single check.
const (
	checkInterval = time.Minute
	checkTimeout  = 45 * time.Second
)

// Run repeats all checks until ctx ends.
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

// check runs a check, and notifies the owner of problems that began or are over.
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
