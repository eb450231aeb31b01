package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

const (
	askWait = 2 * time.Second
	lookers = 4 // runs looked at in one go
)

// List tells what runs there are, dead ones that were not collected included. A run that cannot be asked
// is in the list with what is on disk, and with its Problem. What a dead client had begun to start is waited
// for, as in Open.
func (r *Root) List(ctx context.Context) ([]Info, error) {
	r.brood.bury()
	if err := settleStrays(ctx, r.dir); err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	ids, err := r.ids()
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	all := make([]Info, len(ids))
	var wg sync.WaitGroup
	places := make(chan struct{}, lookers)
	for i, id := range ids {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			all[i] = r.look(ctx, id)
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("list runs: %w", context.Cause(ctx))
	}
	return slices.DeleteFunc(all, func(info Info) bool { return !r.there(info.ID) }), nil // collected meanwhile
}

// look tells all there is to know of one run.
func (r *Root) look(ctx context.Context, id string) Info {
	rec, err := r.record(id)
	if err != nil {
		return Info{ID: id, Problem: err.Error()}
	}
	asking, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	l, w, err := r.connect(asking, rec, hello{Role: roleAsk})
	if err == nil {
		l.close()
		return w.Info
	}
	info := r.remains(rec)
	if !errors.Is(err, ErrGone) {
		info.Problem = err.Error()
	}
	return info
}

// remains is what the disk and the process table tell of a run.
func (r *Root) remains(rec record) Info {
	info := rec.info()
	info.Supervised = rec.supervised()
	info.Alive = rec.Boot == bootID() && rec.Agent.Running()
	if s, strange, err := openSpool(r.path(rec.ID)); err != nil {
		info.Problem = err.Error()
	} else {
		info.Spooled, info.OutputEnd = s.stored(), s.end
		if len(strange) > 0 {
			info.Problem = fmt.Sprintf("damaged spool: %v", strange)
		}
	}
	if !info.Alive {
		status := r.lastStatus(rec.ID)
		info.Status = &status
	}
	return info
}

// lastStatus is status.json and the stderr file; zero when there is none.
func (r *Root) lastStatus(id string) Status {
	var status Status
	if err := readJSON(r.path(id), statusFile, &status); err != nil {
		status = Status{}
	}
	if raw, err := os.ReadFile(filepath.Join(r.path(id), stderrFile)); err == nil {
		status.Stderr = string(raw[max(len(raw)-stderrKept, 0):])
	}
	return status
}

// exhume makes a Run of what a supervisor left on disk.
func (r *Root) exhume(rec record, offset int64) (*Run, error) {
	run := &Run{root: r, info: r.remains(rec), served: make(chan struct{}), done: make(chan struct{}), gone: ErrGone}
	run.in.run, run.out.run = run, run
	run.out.disk = newDiskReader(r.path(rec.ID), offset)
	if run.out.disk.err != nil {
		return nil, run.out.disk.err
	}
	close(run.served)
	run.finish(r.lastStatus(rec.ID))
	return run, nil
}

// Prune removes runs from the disk that ended longer ago than age and that nobody collected. It returns
// how many.
func (r *Root) Prune(ctx context.Context, age time.Duration) (int, error) {
	ids, err := r.ids()
	if err != nil {
		return 0, fmt.Errorf("prune runs: %w", err)
	}
	pruned := 0
	var errs []error
	for _, id := range ids {
		rec, err := r.record(id)
		info, statErr := os.Stat(r.path(id))
		unread := err != nil && statErr == nil
		if statErr != nil || !unread && rec.supervised() || time.Since(info.ModTime()) < age {
			continue
		}
		if unread { // never begun, or damaged: no one can be asked
			err = os.RemoveAll(r.path(id))
		} else {
			err = r.Collect(ctx, id)
		}
		if errs = append(errs, err); err == nil {
			pruned++
		}
	}
	if err := errors.Join(errs...); err != nil {
		return pruned, fmt.Errorf("prune runs: %w", err)
	}
	return pruned, nil
}
