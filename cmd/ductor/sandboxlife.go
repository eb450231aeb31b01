package main

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"ductor/cli"
	"ductor/docker"
	"ductor/internal/config"
)

const (
	cleanWait   = time.Minute
	retireEvery = time.Minute
)

// run keeps the sandboxes in order until ctx ends: what is no longer configured goes, images are made before they are
// needed, and containers that do nothing are removed.
func (s *sandboxes) run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { s.begin(ctx) })
	tick := time.NewTicker(retireEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.retire(ctx)
		}
	}
}

// begin has all that a start has to do. It may take minutes.
func (s *sandboxes) begin(ctx context.Context) {
	var all sync.WaitGroup
	for _, r := range s.rooms {
		if r.launcher != nil && r.setting.Mode == config.SandboxDocker {
			all.Go(func() { s.prepare(ctx, r) })
		}
	}
	all.Go(func() { s.clean(ctx) })
	all.Go(func() { s.leaveEngines(ctx) })
	all.Wait()
	s.cleanImages(ctx)
}

// cleanImages removes images that were made for settings of another time.
func (s *sandboxes) cleanImages(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cleanWait)
	defer cancel()
	var keep []string // of all engines: two of them may be one
	for _, r := range s.rooms {
		if r.launcher == nil {
			continue
		}
		images, err := r.launcher.Images(ctx)
		if err != nil {
			return // it was said why; nothing is removed that may be wanted
		}
		keep = append(keep, images...)
	}
	for _, e := range s.engines {
		if removed, err := e.CleanImages(ctx, s.owner(), keep); err != nil {
			s.log.Warn("remove old images of sandboxes", "engine", e.Host(), "err", err)
		} else if removed > 0 {
			s.log.Info("old images of sandboxes were removed", "engine", e.Host(), "count", removed)
		}
	}
}

// clean removes containers of projects that have no sandbox any more.
func (s *sandboxes) clean(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cleanWait)
	defer cancel()
	ids := s.engineIDs(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	for e := range ids {
		all.Go(func() {
			removed, err := e.Clean(ctx, s.owner(), s.keeps(e, ids))
			if err != nil && ctx.Err() == nil {
				s.log.Warn("remove old sandboxes", "engine", e.Host(), "err", err)
			}
			if removed > 0 {
				s.log.Info("old sandboxes were removed", "engine", e.Host(), "count", removed)
			}
		})
	}
}

// engineIDs asks the engines who they are. One that does not answer is left out.
func (s *sandboxes) engineIDs(ctx context.Context) map[*docker.Engine]string {
	var mu sync.Mutex
	ids := map[*docker.Engine]string{}
	var all sync.WaitGroup
	for _, e := range s.engines {
		all.Go(func() {
			id, err := e.ID(ctx)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && id != "" {
				ids[e] = id
			} else if ctx.Err() == nil {
				s.log.Log(ctx, s.levelOf(e), "look for old sandboxes", "engine", e.Host(), "err", err)
			}
		})
	}
	all.Wait()
	return ids
}

// levelOf is how loud it is said that an engine is away: hardly, where nothing that matters is in it.
func (s *sandboxes) levelOf(e *docker.Engine) slog.Level {
	if slices.ContainsFunc(s.rooms, func(r *room) bool { return r.engine == e && r.matters() }) {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// keeps says which sandboxes may be in an engine: its own, those of another way to it, and those of an engine that does
// not say who it is. A project has one for all conversations, or one for each.
func (s *sandboxes) keeps(e *docker.Engine, ids map[*docker.Engine]string) func(name string) bool {
	return func(name string) bool {
		in := cli.Sandbox(name)
		r := s.project(in)
		if r == nil || r.alone() != (in.Alone() != "") {
			return false
		}
		id, known := ids[r.engine]
		return !known || id == ids[e]
	}
}

func (s *sandboxes) retire(ctx context.Context) {
	for _, r := range s.all() {
		if r.launcher == nil || r.setting.Idle == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, cleanWait)
		gone, err := r.launcher.Retire(ctx, r.setting.Idle)
		cancel()
		switch {
		case err != nil:
			s.log.Debug("look for idle sandboxes", "sandbox", r.name, "err", err)
		case gone:
			s.log.Info("a sandbox was removed, for nothing ran in it", "sandbox", r.name)
		}
	}
}

// prepare makes the image of a sandbox that has none yet: that takes longer than a turn should wait.
func (s *sandboxes) prepare(ctx context.Context, r *room) {
	looking, cancel := context.WithTimeout(ctx, cleanWait)
	status, err := r.launcher.Status(looking)
	cancel()
	if err == nil && status.ImageIs != docker.StateThere {
		s.log.Info("the image of a sandbox is made, which may take minutes", "sandbox", r.name, "image", status.Image, "is", status.ImageIs)
		if r.alone() {
			err = r.launcher.PrepareImage(ctx)
		} else {
			err = r.launcher.Prepare(ctx)
		}
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.log.Warn("a sandbox cannot be had", "sandbox", r.name, "err", err)
	default:
		s.log.Info("sandbox", "name", r.name, "engine", status.Host, "image", status.Image)
	}
}
