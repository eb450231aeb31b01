package heartbeat_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ductor/cli"
	"ductor/heartbeat"
	"ductor/orchestrator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var here = orchestrator.ConversationID{Chat: 7, Topic: 3}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// memory is a Store as internal/store is one, without a disk. A crash is an error from hurt, before or after
// the effect.
type memory struct {
	mu    sync.Mutex
	jobs  []heartbeat.Standing
	runs  map[heartbeat.RunID]*heartbeat.Run
	order []*heartbeat.Run // as recorded
	open  []*heartbeat.Run // something is to be done about them
	hurt  func(op string) error
	after func(op string) error
}

func (m *memory) do(op string, f func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hurt != nil {
		if err := m.hurt(op); err != nil {
			return err
		}
	}
	if err := f(); err != nil {
		return err
	}
	if m.after != nil {
		return m.after(op)
	}
	return nil
}

func (m *memory) job(id heartbeat.JobID) *heartbeat.Standing {
	for i := range m.jobs {
		if m.jobs[i].Job.ID == id {
			return &m.jobs[i]
		}
	}
	return nil
}

func (m *memory) settle() {
	m.open = slices.DeleteFunc(m.open, func(r *heartbeat.Run) bool { return !r.State.Open() && r.Told })
}

func (m *memory) SaveJob(_ context.Context, j heartbeat.Job, next, reckoned time.Time) error {
	return m.do("save", func() error {
		st := m.job(j.ID)
		if st == nil {
			m.jobs = append(m.jobs, heartbeat.Standing{})
			st = &m.jobs[len(m.jobs)-1]
		}
		st.Job, st.Next, st.Reckoned = j, next, reckoned
		return nil
	})
}

func (m *memory) DeleteJob(_ context.Context, id heartbeat.JobID) error {
	return m.do("delete", func() error {
		n := len(m.jobs)
		m.jobs = slices.DeleteFunc(m.jobs, func(st heartbeat.Standing) bool { return st.Job.ID == id })
		m.order = slices.DeleteFunc(m.order, func(r *heartbeat.Run) bool { return r.Job == id })
		m.open = slices.DeleteFunc(m.open, func(r *heartbeat.Run) bool { return r.Job == id })
		if len(m.jobs) == n {
			return heartbeat.ErrNoJob
		}
		return nil
	})
}

func (m *memory) standing(st heartbeat.Standing) heartbeat.Standing {
	for _, r := range m.open {
		if r.Job == st.Job.ID && r.State.Open() {
			st.Open++
		}
	}
	return st
}

func (m *memory) Job(_ context.Context, id heartbeat.JobID) (st heartbeat.Standing, err error) {
	err = m.do("job", func() error {
		found := m.job(id)
		if found == nil {
			return heartbeat.ErrNoJob
		}
		st = m.standing(*found)
		return nil
	})
	return st, err
}

func (m *memory) Jobs(context.Context) (all []heartbeat.Standing, err error) {
	err = m.do("jobs", func() error {
		for _, st := range m.jobs {
			all = append(all, m.standing(st))
		}
		return nil
	})
	return all, err
}

func (m *memory) RecordRuns(_ context.Context, job heartbeat.JobID, runs []heartbeat.Run, next, reckoned time.Time) (fresh []heartbeat.Run, err error) {
	err = m.do("record", func() error {
		st := m.job(job)
		if st == nil {
			return heartbeat.ErrNoJob
		}
		st.Next, st.Reckoned = next, reckoned
		for _, r := range runs {
			if m.runs[r.ID] != nil {
				continue
			}
			own := r
			m.runs[r.ID], m.order, fresh = &own, append(m.order, &own), append(fresh, r)
			if r.State.Open() || !r.Told {
				m.open = append(m.open, &own)
			} else {
				st.Last = &own
			}
		}
		return nil
	})
	return fresh, err
}

func (m *memory) MoveRun(_ context.Context, r heartbeat.Run) error {
	return m.do("move", func() error {
		if old := m.runs[r.ID]; old != nil && old.State.Open() {
			*old = r
		}
		return nil
	})
}

func (m *memory) EndRun(_ context.Context, r heartbeat.Run, news heartbeat.News) error {
	return m.do("end", func() error {
		if old := m.runs[r.ID]; old != nil && old.State.Open() {
			*old = r
			m.settle()
			st, last := m.job(r.Job), r
			st.Runs, st.CostUSD, st.News, st.Last = st.Runs+1, st.CostUSD+r.CostUSD, news, &last
		}
		return nil
	})
}

func (m *memory) ToldRun(_ context.Context, id heartbeat.RunID) error {
	return m.do("told", func() error {
		if r := m.runs[id]; r != nil {
			r.Told = true
		}
		m.settle()
		return nil
	})
}

func (m *memory) OpenRuns(context.Context) (all []heartbeat.Run, err error) {
	err = m.do("open", func() error {
		for _, r := range m.open {
			all = append(all, *r)
		}
		return nil
	})
	return all, err
}

func (m *memory) Runs(_ context.Context, job heartbeat.JobID, limit int) (all []heartbeat.Run, err error) {
	err = m.do("runs", func() error {
		for _, r := range slices.Backward(m.order) {
			if r.Job == job && len(all) < limit {
				all = append(all, *r)
			}
		}
		return nil
	})
	return all, err
}

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
	fail    bool
}

func (c *chat) Report(_ context.Context, r heartbeat.Report) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail {
		return errors.New("the disk is full")
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

// house is a scheduler with all around it.
type house struct {
	*heartbeat.Scheduler
	store *memory
	desk  *desk
	chat  *chat
	mu    sync.Mutex
	skew  time.Duration
	wall  time.Time // what the clock shows, if it is set; else that of the bubble, moved by skew
	ids   int
	stop  func()
}

func (h *house) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.wall.IsZero() {
		return h.wall
	}
	return time.Now().Add(h.skew)
}

func (h *house) move(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.skew += d
}

func (h *house) id() string {
	h.ids++
	return fmt.Sprint("j", h.ids)
}

// build makes a house whose clock shows start. Its scheduler is not running.
func build(t testing.TB, start time.Time, change ...func(*heartbeat.Options)) *house {
	h := &house{store: &memory{runs: map[heartbeat.RunID]*heartbeat.Run{}}, chat: &chat{known: map[heartbeat.RunID]bool{}}, desk: &desk{turns: map[cli.TurnID]*orchestrator.Turn{}}}
	h.skew = time.Until(start)
	h.desk.now = h.now
	h.renew(change...)
	return h
}

// renew gives the house a new scheduler over what is stored, as after a crash.
func (h *house) renew(change ...func(*heartbeat.Options)) {
	opts := heartbeat.Options{Store: h.store, Runner: h.desk, Notifier: h.chat, Now: h.now, NewID: h.id,
		Zone: time.UTC, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&opts)
	}
	h.Scheduler = heartbeat.New(opts)
}

// start runs the scheduler until halt.
func (h *house) start(t testing.TB) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.Run(ctx) }()
	h.stop = func() { cancel(); <-done }
}

// lazily has the scheduler look at the clock every few hours, so that a year is short.
func lazily(o *heartbeat.Options) { o.Nap = 6 * time.Hour }

func in(name string) func(*heartbeat.Options) {
	return func(o *heartbeat.Options) {
		loc, err := time.LoadLocation(name)
		if err != nil {
			panic(err)
		}
		o.Zone = loc
	}
}

func (h *house) add(t testing.TB, schedule string, change ...func(*heartbeat.Job)) heartbeat.Standing {
	t.Helper()
	j := heartbeat.Job{Conversation: here, Person: 9, Prompt: "look", Schedule: schedule}
	for _, f := range change {
		f(&j)
	}
	st, err := h.Add(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func (h *house) get(t testing.TB, id heartbeat.JobID) heartbeat.Standing {
	t.Helper()
	st, err := h.Get(context.Background(), id, here)
	if err != nil {
		t.Fatal(err)
	}
	return st
}
