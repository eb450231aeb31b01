package heartbeat_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"ductor/orchestrator"
)

// memory is a Store like internal/store, but without a disk. To simulate a crash, before or after (which run around the
// effect) return an error.
type memory struct {
	mu     sync.Mutex
	jobs   []orchestrator.JobStatus
	runs   map[orchestrator.JobRunID]*orchestrator.JobRun
	order  []*orchestrator.JobRun // in the order of RecordRuns
	open   []*orchestrator.JobRun // runs that still need work
	before func(op string) error
	after  func(op string) error
}

func (m *memory) do(op string, f func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.before != nil {
		if err := m.before(op); err != nil {
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

func (m *memory) job(id orchestrator.JobID) *orchestrator.JobStatus {
	for i := range m.jobs {
		if m.jobs[i].Job.ID == id {
			return &m.jobs[i]
		}
	}
	return nil
}

func (m *memory) drop() {
	m.open = slices.DeleteFunc(m.open, func(r *orchestrator.JobRun) bool {
		return !r.State.Open() && r.Result.Notified
	})
}

func (m *memory) SaveJob(_ context.Context, j orchestrator.Job, next, planned time.Time) error {
	return m.do("save", func() error {
		st := m.job(j.ID)
		if st == nil {
			m.jobs = append(m.jobs, orchestrator.JobStatus{})
			st = &m.jobs[len(m.jobs)-1]
		}
		st.Job, st.Next, st.Planned = j, next, planned
		return nil
	})
}

func (m *memory) DeleteJob(_ context.Context, id orchestrator.JobID) error {
	return m.do("delete", func() error {
		n := len(m.jobs)
		m.jobs = slices.DeleteFunc(m.jobs, func(st orchestrator.JobStatus) bool { return st.Job.ID == id })
		maps.DeleteFunc(m.runs, func(_ orchestrator.JobRunID, r *orchestrator.JobRun) bool { return r.Job == id })
		m.order = slices.DeleteFunc(m.order, func(r *orchestrator.JobRun) bool { return r.Job == id })
		m.open = slices.DeleteFunc(m.open, func(r *orchestrator.JobRun) bool { return r.Job == id })
		if len(m.jobs) == n {
			return orchestrator.ErrNoJob
		}
		return nil
	})
}

func (m *memory) status(st orchestrator.JobStatus) orchestrator.JobStatus {
	for _, r := range m.open {
		if r.Job == st.Job.ID && r.State.Open() {
			if st.Open++; st.Open == 1 {
				oldest := *r
				st.Oldest = &oldest
			}
		}
	}
	return st
}

func (m *memory) Job(_ context.Context, id orchestrator.JobID) (st orchestrator.JobStatus, err error) {
	err = m.do("job", func() error {
		found := m.job(id)
		if found == nil {
			return orchestrator.ErrNoJob
		}
		st = m.status(*found)
		return nil
	})
	return st, err
}

func (m *memory) Jobs(context.Context) (all []orchestrator.JobStatus, err error) {
	err = m.do("jobs", func() error {
		for _, st := range m.jobs {
			all = append(all, m.status(st))
		}
		return nil
	})
	return all, err
}

func (m *memory) RecordRuns(
	_ context.Context, job orchestrator.JobID, runs []orchestrator.JobRun, next, planned time.Time,
) (fresh []orchestrator.JobRun, err error) {
	err = m.do("record", func() error {
		st := m.job(job)
		if st == nil {
			return orchestrator.ErrNoJob
		}
		st.Next, st.Planned = next, planned
		for _, r := range runs {
			if m.runs[r.ID] != nil {
				continue
			}
			own := r
			m.runs[r.ID], m.order, fresh = &own, append(m.order, &own), append(fresh, r)
			if r.State.Open() || !r.Result.Notified {
				m.open = append(m.open, &own)
			} else {
				st.Last = &own
			}
		}
		return nil
	})
	return fresh, err
}

func (m *memory) MoveRun(_ context.Context, r orchestrator.JobRun) error {
	return m.do("move", func() error {
		if old := m.runs[r.ID]; old != nil && old.State.Open() {
			*old = r
		}
		return nil
	})
}

func (m *memory) EndRun(_ context.Context, r orchestrator.JobRun, result orchestrator.JobResult) error {
	return m.do("end", func() error {
		if old := m.runs[r.ID]; old != nil && old.State.Open() {
			*old = r
			m.drop()
			st, last := m.job(r.Job), r
			st.Runs, st.CostUSD, st.JobResult, st.Last = st.Runs+1, st.CostUSD+r.Result.CostUSD, result, &last
		}
		return nil
	})
}

func (m *memory) MarkNotified(_ context.Context, id orchestrator.JobRunID) error {
	return m.do("told", func() error {
		if r := m.runs[id]; r != nil {
			r.Result.Notified = true
		}
		m.drop()
		return nil
	})
}

func (m *memory) OpenRuns(context.Context) (all []orchestrator.JobRun, err error) {
	err = m.do("open", func() error {
		for _, r := range m.open {
			all = append(all, *r)
		}
		return nil
	})
	return all, err
}

func (m *memory) Runs(_ context.Context, job orchestrator.JobID, limit int) (all []orchestrator.JobRun, err error) {
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

func (m *memory) CurrentChat(_ context.Context, chat int64) (int64, error) { return chat, nil }
