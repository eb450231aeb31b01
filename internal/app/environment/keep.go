package environment

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"ductor/cli"
	"ductor/docker"
	"ductor/internal/rooted"
	"ductor/orchestrator"
)

const (
	cleanWait   = time.Minute
	retireEvery = time.Minute
)

// Run keeps the sandboxes in order until ctx ends: what is no longer configured goes, images are made before they are
// needed, and containers that do nothing are removed.
func (s *Sandboxes) Run(ctx context.Context) {
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
func (s *Sandboxes) begin(ctx context.Context) {
	var all sync.WaitGroup
	for _, b := range s.configured {
		if b.Launcher != nil && b.Setting.Mode == orchestrator.SandboxDocker {
			all.Go(func() { s.prepare(ctx, b) })
		}
	}
	all.Go(func() { s.clean(ctx) })
	all.Go(func() { s.leaveEngines(ctx) })
	all.Wait()
	s.cleanImages(ctx)
}

// cleanImages removes images that were made for settings of another time.
func (s *Sandboxes) cleanImages(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cleanWait)
	defer cancel()
	var keep []string // of all engines: two of them may be one
	for _, b := range s.configured {
		if b.Launcher == nil {
			continue
		}
		images, err := b.Launcher.Images(ctx)
		if err != nil {
			return // it was said why; nothing is removed that may be wanted
		}
		keep = append(keep, images...)
	}
	for _, e := range s.engines {
		if removed, err := e.CleanImages(ctx, Owner(s.cfg), keep); err != nil {
			s.log.Warn("remove old images of sandboxes", "engine", e.Host(), "err", err)
		} else if removed > 0 {
			s.log.Info("old images of sandboxes were removed", "engine", e.Host(), "count", removed)
		}
	}
}

// clean removes containers of projects that have no sandbox any more.
func (s *Sandboxes) clean(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cleanWait)
	defer cancel()
	ids := s.engineIDs(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	for e := range ids {
		all.Go(func() {
			removed, err := e.Clean(ctx, Owner(s.cfg), s.keeps(e, ids))
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
func (s *Sandboxes) engineIDs(ctx context.Context) map[*docker.Engine]string {
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
func (s *Sandboxes) levelOf(e *docker.Engine) slog.Level {
	if slices.ContainsFunc(s.configured, func(b *Sandbox) bool { return b.Engine == e && b.matters() }) {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// keeps says which sandboxes may be in an engine: its own, those of another way to it, and those of an engine that does
// not say who it is. A project has one for all conversations, or one for each.
func (s *Sandboxes) keeps(e *docker.Engine, ids map[*docker.Engine]string) func(name string) bool {
	return func(name string) bool {
		in := cli.Sandbox(name)
		b := s.project(in)
		if b == nil || b.alone() != (in.Alone() != "") {
			return false
		}
		id, known := ids[b.Engine]
		return !known || id == ids[e]
	}
}

func (s *Sandboxes) retire(ctx context.Context) {
	for _, b := range s.All() {
		if b.Launcher == nil || b.Setting.Idle == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, cleanWait)
		gone, err := b.Launcher.Retire(ctx, b.Setting.Idle)
		cancel()
		switch {
		case err != nil:
			s.log.Debug("look for idle sandboxes", "sandbox", b.Name, "err", err)
		case gone:
			s.log.Info("a sandbox was removed, for nothing ran in it", "sandbox", b.Name)
		}
	}
}

// prepare makes the image of a sandbox that has none yet: that takes longer than a turn should wait.
func (s *Sandboxes) prepare(ctx context.Context, b *Sandbox) {
	looking, cancel := context.WithTimeout(ctx, cleanWait)
	status, err := b.Launcher.Status(looking)
	cancel()
	if err == nil && status.ImageIs != docker.StateThere {
		s.log.Info("the image of a sandbox is made, which may take minutes", "sandbox", b.Name, "image", status.Image, "is", status.ImageIs)
		if b.alone() {
			err = b.Launcher.PrepareImage(ctx)
		} else {
			err = b.Launcher.Prepare(ctx)
		}
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.log.Warn("a sandbox cannot be used", "sandbox", b.Name, "err", err)
	default:
		s.log.Info("sandbox", "name", b.Name, "engine", status.Host, "image", status.Image)
	}
}

// enginesFile is a list of the engines that were used, so that what is left in one that no sandbox has any more is
// removed.
const enginesFile = "engines.json"

func (s *Sandboxes) enginesPath() string { return s.path(filepath.Join(dockerDir, enginesFile)) }

// formerEngines are those that were used, and that no sandbox has any more.
func (s *Sandboxes) formerEngines() ([]docker.EngineOptions, error) {
	raw, err := os.ReadFile(s.enginesPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []docker.EngineOptions
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(o docker.EngineOptions) bool { return s.engines[o] != nil }), nil
}

// noteEngines keeps those that are used, and former ones in which something may be left.
func (s *Sandboxes) noteEngines(former []docker.EngineOptions) error {
	all := append(slices.Collect(maps.Keys(s.engines)), former...)
	slices.SortFunc(all, func(a, b docker.EngineOptions) int { return cmp.Compare(a.Host+a.Cert, b.Host+b.Cert) })
	raw, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return rooted.ReplaceFile(s.enginesPath(), raw, nil)
}

// leaveEngines removes what is left in engines that no sandbox has any more. One that cannot be reached is tried
// again at the next start.
func (s *Sandboxes) leaveEngines(ctx context.Context) {
	former, err := s.formerEngines()
	if err != nil {
		s.log.Warn("look which engines were used", "err", err)
	}
	var left []docker.EngineOptions
	ids := map[*docker.Engine]string{}
	if len(former) > 0 {
		ids = s.engineIDs(ctx)
	}
	for _, o := range former {
		if err := s.leaveEngine(ctx, o, ids); err != nil {
			s.log.Warn("remove old sandboxes", "engine", o.Host, "err", err)
			left = append(left, o)
		}
	}
	if len(former)+len(s.engines) == 0 {
		return
	}
	if err := s.noteEngines(left); err != nil {
		s.log.Warn("note which engines are used", "err", err)
	}
}

var errUnknownEngine = errors.New("an engine that is in use does not say who it is, and it may be this one")

func (s *Sandboxes) leaveEngine(ctx context.Context, o docker.EngineOptions, used map[*docker.Engine]string) error {
	e, err := docker.Connect(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cleanWait)
	defer cancel()
	return errors.Join(s.empty(ctx, e, used), e.Close())
}

// empty removes what is left in an engine, unless it is one that is used, by another way.
func (s *Sandboxes) empty(ctx context.Context, e *docker.Engine, used map[*docker.Engine]string) error {
	id, err := e.ID(ctx)
	if err != nil {
		return err
	}
	for _, other := range s.engines {
		switch used[other] {
		case id:
			return nil
		case "":
			return errUnknownEngine
		}
	}
	removed, err := e.Clean(ctx, Owner(s.cfg), nil)
	if removed > 0 {
		s.log.Info("old sandboxes were removed", "engine", e.Host(), "count", removed)
	}
	if err != nil {
		return err
	}
	_, err = e.CleanImages(ctx, Owner(s.cfg), nil)
	return err
}
