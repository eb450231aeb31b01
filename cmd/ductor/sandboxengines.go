package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"ductor/docker"
)

// enginesFile is a list of the engines that were used, so that what is left in one that no sandbox has any more is
// removed.
const enginesFile = "engines.json"

func (s *sandboxes) enginesPath() string { return s.path(filepath.Join(dockerDir, enginesFile)) }

// formerEngines are those that were used, and that no sandbox has any more.
func (s *sandboxes) formerEngines() ([]docker.EngineOptions, error) {
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
func (s *sandboxes) noteEngines(former []docker.EngineOptions) error {
	all := append(slices.Collect(maps.Keys(s.engines)), former...)
	slices.SortFunc(all, func(a, b docker.EngineOptions) int { return cmp.Compare(a.Host+a.Cert, b.Host+b.Cert) })
	raw, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(s.enginesPath(), raw, 0o600)
}

// leaveEngines removes what is left in engines that no sandbox has any more. One that cannot be reached is tried
// again at the next start.
func (s *sandboxes) leaveEngines(ctx context.Context) {
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

func (s *sandboxes) leaveEngine(ctx context.Context, o docker.EngineOptions, used map[*docker.Engine]string) error {
	e, err := docker.Connect(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cleanWait)
	defer cancel()
	return errors.Join(s.empty(ctx, e, used), e.Close())
}

// empty removes what is left in an engine, unless it is one that is used, by another way.
func (s *sandboxes) empty(ctx context.Context, e *docker.Engine, used map[*docker.Engine]string) error {
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
	removed, err := e.Clean(ctx, s.owner(), nil)
	if removed > 0 {
		s.log.Info("old sandboxes were removed", "engine", e.Host(), "count", removed)
	}
	if err != nil {
		return err
	}
	_, err = e.CleanImages(ctx, s.owner(), nil)
	return err
}
