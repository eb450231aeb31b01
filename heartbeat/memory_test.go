package heartbeat_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"ductor/heartbeat"
)

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
