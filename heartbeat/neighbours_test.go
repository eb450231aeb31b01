package heartbeat_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"ductor/cli"
	"ductor/heartbeat"
	"ductor/orchestrator"
)

// desk is a Runner: turns outlive the scheduler, as the orchestrator's do. answer says how a turn ends; nil has
// it end well at once, with the answer "fine".
type desk struct {
	mu     sync.Mutex
	now    func() time.Time
	turns  map[cli.TurnID]*orchestrator.Turn
	asked  []heartbeat.Order // each turn once
	at     []time.Time       // when
	answer func(o heartbeat.Order) orchestrator.Outcome
	hang   bool // turns go on until finish
	full   bool
	busy   bool
	refuse error
	hurt   func(op string) error
	after  func(op string) error
}

func (d *desk) Ask(_ context.Context, o heartbeat.Order) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hurt != nil {
		if err := d.hurt("ask"); err != nil {
			return err
		}
	}
	switch {
	case d.turns[o.Turn] != nil:
		return nil
	case d.full:
		return fmt.Errorf("ten wait: %w", heartbeat.ErrNoRoom)
	case d.refuse != nil:
		return d.refuse
	}
	t := &orchestrator.Turn{ID: o.Turn, State: orchestrator.TurnRunning}
	if !d.hang {
		end(t, d.outcome(o))
	}
	d.turns[o.Turn] = t
	d.asked, d.at = append(d.asked, o), append(d.at, d.now())
	if d.after != nil {
		return d.after("ask")
	}
	return nil
}

func (d *desk) outcome(o heartbeat.Order) orchestrator.Outcome {
	if d.answer == nil {
		return orchestrator.Outcome{State: orchestrator.TurnDone, Text: "fine", CostUSD: 0.25}
	}
	return d.answer(o)
}

func end(t *orchestrator.Turn, o orchestrator.Outcome) { t.State, t.Outcome = o.State, o }

// finish ends all that hangs.
func (d *desk) finish(o orchestrator.Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.turns {
		if t.State == orchestrator.TurnRunning {
			end(t, o)
		}
	}
}

func (d *desk) Turn(_ context.Context, id cli.TurnID) (orchestrator.Turn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.turns[id]; t != nil {
		return *t, nil
	}
	return orchestrator.Turn{}, orchestrator.ErrNoTurn
}

func (d *desk) Busy(context.Context, orchestrator.ConversationID) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.busy, nil
}

func (d *desk) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

func (d *desk) times() []time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.at)
}

// chat is a Notifier that shows each run once.
type chat struct {
	mu      sync.Mutex
	reports []heartbeat.Report
	known   map[heartbeat.RunID]bool
	fail    error
}

func (c *chat) Report(_ context.Context, r heartbeat.Report) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return c.fail
	}
	if !c.known[r.Run.ID] {
		c.known[r.Run.ID], c.reports = true, append(c.reports, r)
	}
	return nil
}

func (c *chat) shown() []heartbeat.Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.reports)
}
