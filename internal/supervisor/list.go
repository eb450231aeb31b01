package supervisor

import (
	"context"
	"ductor/internal/proctree"
	"errors"
	"fmt"
	"io/fs"
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
	all, err := r.env.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return all, nil
}

func (g *localEnv) list(ctx context.Context) ([]Info, error) {
	g.pool.reap()
	if err := awaitOrphans(ctx, g.dir); err != nil {
		return nil, err
	}
	ids, err := g.ids()
	if err != nil {
		return nil, err
	}
	all := make([]Info, len(ids))
	var wg sync.WaitGroup
	places := make(chan struct{}, lookers)
	for i, id := range ids {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			all[i] = g.look(ctx, id)
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return slices.DeleteFunc(all, func(info Info) bool { return !g.there(info.ID) }), nil // collected during the listing
}

// look tells all there is to know of one run.
func (g *localEnv) look(ctx context.Context, id string) Info {
	rec, err := g.record(id)
	if err != nil {
		return Info{ID: id, Problem: err.Error()}
	}
	asking, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	l, w, err := g.connect(asking, rec, hello{Role: roleAsk})
	if err == nil {
		l.close()
		return w.Info
	}
	info := g.remains(rec)
	if !errors.Is(err, ErrGone) {
		info.Problem = err.Error()
	}
	return info
}

// remains is what the disk and the process table tell of a run.
func (g *localEnv) remains(rec record) Info {
	info := rec.info()
	info.Supervised = rec.supervised()
	info.Alive = rec.Boot == proctree.BootID() && rec.Agent.Running()
	if s, strange, err := openJournal(g.path(rec.ID)); err != nil {
		info.Problem = err.Error()
	} else {
		info.Spooled, info.OutputEnd = s.stored(), s.end
		if len(strange) > 0 {
			info.Problem = fmt.Sprintf("damaged spool: %v", strange)
		}
	}
	if !info.Alive {
		status := g.lastStatus(rec.ID)
		info.Status = &status
	}
	return info
}

// lastStatus is status.json and the stderr file. When there is none, nothing is known but whether memory may have been
// what the supervisor died of.
func (g *localEnv) lastStatus(id string) Status {
	var status Status
	if err := readJSON(g.path(id), statusFile, &status); err != nil {
		status = Status{Exit: Exit{OOM: g.starved(id)}}
	}
	if raw, err := os.ReadFile(filepath.Join(g.path(id), stderrFile)); err == nil {
		status.Stderr = string(raw[max(len(raw)-stderrKept, 0):])
	}
	return status
}

// starved says whether the kernel killed for want of memory where a run was, while its supervisor was there.
func (g *localEnv) starved(id string) bool {
	rec, err := g.record(id)
	return err == nil && rec.Boot == proctree.BootID() && rec.OOMKills != nil && proctree.OOMGrewSince(*rec.OOMKills)
}

// openExited makes a Run of what a supervisor left on disk.
func (r *Root) openExited(id string, offset int64) (*Run, error) {
	rec, err := r.record(id)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	rec.ID = id
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

// Prune removes runs from the disk that ended longer ago than age and that no client collected. It returns
// how many.
func (r *Root) Prune(ctx context.Context, age time.Duration) (int, error) {
	pruned, err := r.env.prune(ctx, age)
	if err != nil {
		return pruned, fmt.Errorf("prune runs: %w", err)
	}
	return pruned, nil
}

// endUnread ends what is in the control group of a run of which nothing else is known, and removes the run.
func (g *localEnv) endUnread(ctx context.Context, id string) error {
	c := noted(g.dir, g.path(id))
	if name, ok := parseCgroupName(filepath.Base(c.Path)); ok && name.owner.Running() {
		return errOwned
	}
	return errors.Join(endCgroup(ctx, c), os.RemoveAll(g.path(id)))
}

// errOwned says that the supervisor of a run that cannot be read lives, or has not quite died.
var errOwned = errors.New("its supervisor is there")

func (g *localEnv) prune(ctx context.Context, age time.Duration) (int, error) {
	ids, err := g.ids()
	if err != nil {
		return 0, err
	}
	pruned := 0
	var errs []error
	for _, id := range ids {
		rec, err := g.record(id)
		info, statErr := os.Stat(g.path(id))
		unread := err != nil && statErr == nil
		if statErr != nil || !unread && rec.supervised() || time.Since(info.ModTime()) < age {
			continue
		}
		if unread { // never begun, or damaged: no one can be asked
			err = g.endUnread(ctx, id)
		} else {
			err = g.collect(ctx, id)
		}
		switch {
		case err == nil:
			pruned++
		case !errors.Is(err, errOwned):
			errs = append(errs, err)
		}
	}
	return pruned, errors.Join(errs...)
}
