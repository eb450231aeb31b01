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

// Run maintains the sandboxes until ctx ends. It removes containers of sandboxes that are no longer configured, builds
// images before a turn needs them, and removes idle containers.
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

// begin does the maintenance that is necessary once, when ductor starts. It may take minutes.
func (s *Sandboxes) begin(ctx context.Context) {
	var all sync.WaitGroup
	for _, b := range s.configured {
		if b.Launcher != nil && b.Setting.Mode == orchestrator.SandboxDocker {
			all.Go(func() { s.prepare(ctx, b) })
		}
	}
	all.Go(func() { s.clean(ctx) })
	all.Go(func() { s.cleanFormerEngines(ctx) })
	all.Wait()
	s.cleanImages(ctx)
}

// cleanImages removes images that ductor built for earlier settings.
func (s *Sandboxes) cleanImages(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cleanWait)
	defer cancel()
	var keep []string // images in use; one list for all engines, because two addresses may lead to the same engine
	for _, b := range s.configured {
		if b.Launcher == nil {
			continue
		}
		images, err := b.Launcher.Images(ctx)
		if err != nil {
			// Without the list of this sandbox, CleanImages could remove an image that is in use. prepare logs the
			// error.
			return
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

// clean removes the containers of sandboxes that are no longer configured.
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

// engineIDs asks all engines for their IDs. The result lacks engines that do not answer.
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
				s.log.Log(ctx, s.levelOf(e), "find old sandboxes", "engine", e.Host(), "err", err)
			}
		})
	}
	all.Wait()
	return ids
}

// levelOf returns the log level for a message that says that engine e does not answer. The level is Warn only if e
// contains a sandbox that ductor should warn about; see Sandbox.matters.
func (s *Sandboxes) levelOf(e *docker.Engine) slog.Level {
	if slices.ContainsFunc(s.configured, func(b *Sandbox) bool { return b.Engine == e && b.matters() }) {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// keeps returns a function that reports whether engine e must keep the container of a sandbox. The function returns
// true for a configured sandbox if its engine is e, or has the same ID as e but another address. The function also
// returns true if the ID of the sandbox's engine is unknown, because the engine did not answer.
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
			s.log.Debug("find idle sandboxes", "sandbox", b.Name, "err", err)
		case gone:
			s.log.Info("removed an idle sandbox", "sandbox", b.Name)
		}
	}
}

// prepare builds the image of a sandbox if the image is missing, so that no turn has to wait for the build.
func (s *Sandboxes) prepare(ctx context.Context, b *Sandbox) {
	looking, cancel := context.WithTimeout(ctx, cleanWait)
	status, err := b.Launcher.Status(looking)
	cancel()
	if err == nil && status.ImageIs != docker.StateThere {
		s.log.Info("building the image of a sandbox; this may take minutes", "sandbox", b.Name, "image", status.Image,
			"is", status.ImageIs)
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

// enginesFile lists the engines that ductor has used. ductor reads it to clean up the engines that no sandbox uses any
// more.
const enginesFile = "engines.json"

func (s *Sandboxes) enginesPath() string { return s.path(filepath.Join(dockerDir, enginesFile)) }

// formerEngines returns the engines that ductor has used, but that no sandbox uses now.
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

// saveEngines stores the list of engines: those in use, and former ones that could not be cleaned up.
func (s *Sandboxes) saveEngines(former []docker.EngineOptions) error {
	all := append(slices.Collect(maps.Keys(s.engines)), former...)
	slices.SortFunc(all, func(a, b docker.EngineOptions) int { return cmp.Compare(a.Host+a.Cert, b.Host+b.Cert) })
	raw, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return rooted.ReplaceFile(s.enginesPath(), raw, nil)
}

// cleanFormerEngines cleans up the engines that no sandbox uses any more. If an engine does not answer, the next start
// of ductor tries again.
func (s *Sandboxes) cleanFormerEngines(ctx context.Context) {
	former, err := s.formerEngines()
	if err != nil {
		s.log.Warn("read which engines were used", "err", err)
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
	if err := s.saveEngines(left); err != nil {
		s.log.Warn("save which engines are used", "err", err)
	}
}

var errUnknownEngine = errors.New("an engine in use does not answer and may be the same one")

func (s *Sandboxes) leaveEngine(ctx context.Context, o docker.EngineOptions, used map[*docker.Engine]string) error {
	e, err := docker.Connect(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cleanWait)
	defer cancel()
	return errors.Join(s.empty(ctx, e, used), e.Close())
}

// empty removes ductor's containers and images from a former engine. It does nothing if a sandbox uses the same engine
// under another address.
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
