package alerts

import (
	"context"
	"log/slog"
	"time"

	"ductor/orchestrator"
)

// Trouble is something that is wrong now.
type Trouble struct {
	Key  string // the same as long as it lasts
	Text string // that the owner reads when it begins; empty: only its end is told, because until then nothing arrives
	Over string // that the owner reads when it is over; %s in it stands for when it began
	// Since is when it began; zero: when it is found.
	Since time.Time
}

// Check finds the troubles of one kind. known is false where nothing can be said now, so that nothing changes. before says which
// of its troubles lasted until now, by their keys.
type Check struct {
	Kind string // begins the keys of its troubles
	Find func(ctx context.Context, before func(key string) bool) (found []Trouble, known bool, err error)
}

// Store keeps the troubles that last.
type Store interface {
	// Alerts lists those that last.
	Alerts(ctx context.Context) ([]orchestrator.Alert, error)
	// BeginAlert and EndAlert change what lasts, and store the notice that says it, both or none; notice is nil for none.
	BeginAlert(ctx context.Context, a orchestrator.Alert, notice *orchestrator.Message) error
	EndAlert(ctx context.Context, key string, notice *orchestrator.Message) error
}

// Options configure a Watcher. All are required.
type Options struct {
	Store   Store
	Checks  []Check
	Compose func(text string) *orchestrator.Message // makes a notice to the owner
	Wake    func()                                  // has notices sent that were stored
	Since   func(t time.Time) string                // writes a moment for the owner
	Now     func() time.Time
	Log     *slog.Logger
}

// Watcher looks for troubles.
type Watcher struct{ opts Options }

// New makes a Watcher.
func New(o Options) *Watcher { return &Watcher{o} }

// every is how often a Watcher looks, and checkWait how long one check may take.
const (
	every     = time.Minute
	checkWait = 45 * time.Second
)

// Run looks for troubles until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		for _, c := range w.opts.Checks {
			if err := w.check(ctx, c); err != nil && ctx.Err() == nil {
				w.opts.Log.Warn("look for trouble to tell the owner of", "kind", c.Kind, "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// check tells of the troubles of one kind that began, and of those that are over.
func (w *Watcher) check(ctx context.Context, c Check) error {
	ctx, cancel := context.WithTimeout(ctx, checkWait)
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
		if err := w.opts.Store.BeginAlert(ctx, a, w.notice(t.Text)); err != nil {
			return err
		}
		w.opts.Log.Warn("a trouble begins, and the owner gets a message", "trouble", t.Key)
	}
	for _, a := range last {
		if err := w.opts.Store.EndAlert(ctx, a.Key, w.notice(over(a, w.opts.Since))); err != nil {
			return err
		}
	}
	return nil
}

func (w *Watcher) notice(text string) *orchestrator.Message {
	if text == "" {
		return nil
	}
	return w.opts.Compose(text)
}
