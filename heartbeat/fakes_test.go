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

// runner is a heartbeat.Runner whose turns survive the scheduler. answer returns the outcome of a turn; by default it
// is done at once with the answer "fine".
type runner struct {
	mu     sync.Mutex
	now    func() time.Time
	turns  map[cli.TurnID]*orchestrator.Turn
	asked  []orchestrator.Order // each turn once
	at     []time.Time          // when
	answer func(o orchestrator.Order) orchestrator.Outcome
	hang   bool // turns run until finish
	full   bool
	busy   bool
	refuse error
	before func(op string) error
	after  func(op string) error
}

func (d *runner) SubmitOrder(_ context.Context, o orchestrator.Order) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.before != nil {
		if err := d.before("ask"); err != nil {
			return err
		}
	}
	switch {
	case d.turns[o.Turn] != nil:
		return nil
	case d.full:
		return fmt.Errorf("ten wait: %w", orchestrator.ErrQueueFull)
	case d.refuse != nil:
		return d.refuse
	}
	t := &orchestrator.Turn{ID: o.Turn, State: orchestrator.TurnRunning, Wants: o.Wants}
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

func (d *runner) outcome(o orchestrator.Order) orchestrator.Outcome {
	if d.answer == nil {
		return orchestrator.Outcome{State: orchestrator.TurnDone, Text: "fine", CostUSD: 0.25}
	}
	return d.answer(o)
}

func end(t *orchestrator.Turn, o orchestrator.Outcome) { t.State, t.Outcome = o.State, o }

// finish ends all running turns.
func (d *runner) finish(o orchestrator.Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.turns {
		if t.State == orchestrator.TurnRunning {
			end(t, o)
		}
	}
}

func (d *runner) Turn(_ context.Context, id cli.TurnID) (orchestrator.Turn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.turns[id]; t != nil {
		return *t, nil
	}
	return orchestrator.Turn{}, orchestrator.ErrNoTurn
}

func (d *runner) Busy(context.Context, orchestrator.ConversationID) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.busy, nil
}

func (d *runner) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

func (d *runner) times() []time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.at)
}

// chat is a Notifier that shows each run once.
type chat struct {
	mu      sync.Mutex
	reports []heartbeat.Report
	known   map[orchestrator.JobRunID]bool
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
