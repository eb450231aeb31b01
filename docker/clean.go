package docker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/volume"
)

func owned(owner string) filters.Args {
	return filters.NewArgs(filters.Arg("label", labelOwner+"="+owner))
}

// containers lists them, those that do not run too. A zero filter is all.
func (e *Engine) containers(ctx context.Context, f filters.Args) ([]container.Summary, error) {
	ctx, cancel := e.brief(ctx)
	defer cancel()
	all, err := e.api.ContainerList(ctx, container.ListOptions{All: true, Filters: f})
	return all, e.failed("list containers", err)
}

// volumes lists those of an owner.
func (e *Engine) volumes(ctx context.Context, owner string) ([]*volume.Volume, error) {
	ctx, cancel := e.brief(ctx)
	defer cancel()
	all, err := e.api.VolumeList(ctx, volume.ListOptions{Filters: owned(owner)})
	return all.Volumes, e.failed("list volumes", err)
}

// Clean removes the containers of an owner whose names are not to be kept: of projects that are no longer configured,
// or of a start that broke off. It returns how many. What runs in them ends. Homes stay. To be kept are the names of every
// launcher that may have this engine, by whichever way: see ID. A nil keep keeps none.
func (e *Engine) Clean(ctx context.Context, owner string, keep func(name string) bool) (int, error) {
	all, err := e.containers(ctx, owned(owner))
	if err != nil {
		return 0, err
	}
	removed := 0
	var errs []error
	for _, c := range all {
		name := c.Labels[labelName]
		if name != "" && keep != nil && keep(name) || name == "" && e.mayBeAtWork(c) {
			continue
		}
		if err := e.remove(ctx, c.ID); err != nil {
			errs = append(errs, err)
			continue
		}
		removed++
	}
	return removed, errors.Join(append(errs, e.removeShared(ctx, owned(owner)))...)
}

// removeShared removes the copies of files that users sent (see Options.Shared) whose containers are gone: an engine leaves them
// if a container was removed by hand.
func (e *Engine) removeShared(ctx context.Context, of filters.Args) error {
	ctx, cancel := e.work(ctx)
	defer cancel()
	of.Add("label", labelUse+"="+useShared)
	of.Add("dangling", "true")
	all, err := e.api.VolumeList(ctx, volume.ListOptions{Filters: of})
	if err != nil {
		return e.failed("list volumes", err)
	}
	var errs []error
	for _, v := range all.Volumes {
		if err := e.api.VolumeRemove(ctx, v.Name, false); err != nil && !cerrdefs.IsNotFound(err) && !cerrdefs.IsConflict(err) {
			errs = append(errs, e.failed("remove a volume", err))
		}
	}
	return errors.Join(errs...)
}

// mayBeAtWork says whether a container without a name may be one that an image is being made with.
func (e *Engine) mayBeAtWork(c container.Summary) bool {
	return time.Since(time.Unix(c.Created, 0)) < workTimes*e.wait
}

// Home is what a sandbox keeps in an engine when its container goes: the home of its agents, with those of sessions.
type Home struct {
	Name string // of the sandbox
	// Used is when a program was started there last, as far as the notes of this machine know; else when it was made.
	Used time.Time
}

// Homes lists an owner's homes in this engine, by name. dir is Options.Dir, where notes about their use are; may be
// empty.
func (e *Engine) Homes(ctx context.Context, owner, dir string) ([]Home, error) {
	all, err := e.volumes(ctx, owner)
	if err != nil {
		return nil, err
	}
	var homes []Home
	for _, v := range all {
		if v.Labels[labelUse] != "" {
			continue
		}
		h := Home{Name: v.Labels[labelName]}
		h.Used, _ = time.Parse(time.RFC3339, v.CreatedAt) // zero if the engine does not say
		if used := usedAt(dir, Options{Owner: owner, Name: h.Name}.containerName()); used.After(h.Used) {
			h.Used = used
		}
		homes = append(homes, h)
	}
	slices.SortFunc(homes, func(a, b Home) int { return cmp.Compare(a.Name, b.Name) })
	return homes, nil
}

// Forget removes a name's container and its home, with the sessions of the agents in it.
func (e *Engine) Forget(ctx context.Context, owner, name string) error {
	o := Options{Owner: owner, Name: name}
	if err := e.remove(ctx, o.containerName()); err != nil {
		return err
	}
	ctx, cancel := e.work(ctx)
	defer cancel()
	return e.failed("remove a volume", e.api.VolumeRemove(ctx, o.containerName(), true))
}

// Images names the images that this sandbox wants as it is configured now, for Engine.CleanImages. What is not made
// yet is not in it.
func (l *Launcher) Images(ctx context.Context) ([]string, error) {
	name, err := l.place.sources.baseName(l.opts)
	if err != nil {
		return nil, err
	}
	info, there, err := l.place.engine.image(ctx, name)
	if err != nil || !there {
		return nil, err
	}
	if err := l.opts.makeRunner(ctx); err != nil {
		return nil, err
	}
	program, err := l.place.sources.runner(l.opts, info.Architecture)
	if err != nil {
		return nil, err
	}
	return []string{name, fittedTag(info.ID, program, l.opts.User)}, nil
}

// oldImages lists the images an owner made that are not among keep and that no container uses, of any owner.
func (e *Engine) oldImages(ctx context.Context, owner string, keep []string) (old []string, err error) {
	used, err := e.usedImages(ctx)
	if err != nil {
		return nil, err
	}
	listing, cancel := e.brief(ctx)
	defer cancel()
	f := owned(owner)
	f.Add("reference", fittedImages)
	f.Add("reference", builtImages)
	all, err := e.api.ImageList(listing, image.ListOptions{Filters: f})
	if err != nil {
		return nil, e.failed("list images", err)
	}
	for _, i := range all {
		wanted := used[i.ID] || slices.ContainsFunc(i.RepoTags, func(tag string) bool { return slices.Contains(keep, tag) })
		if !wanted {
			old = append(old, i.RepoTags...)
		}
	}
	return old, nil
}

// usedImages are those of containers, and what those were made of.
func (e *Engine) usedImages(ctx context.Context) (map[string]bool, error) {
	all, err := e.containers(ctx, filters.Args{})
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, c := range all {
		if used[c.ImageID] {
			continue
		}
		used[c.ImageID] = true
		info, there, err := e.image(ctx, c.ImageID)
		if err != nil {
			return nil, err
		}
		if there && info.Config != nil && info.Config.Labels[labelBase] != "" {
			used[info.Config.Labels[labelBase]] = true
		}
	}
	return used, nil
}

// CleanImages removes the images an owner made that are not among keep and that no container uses, and returns how many. One
// that is in use after all stays.
func (e *Engine) CleanImages(ctx context.Context, owner string, keep []string) (int, error) {
	old, err := e.oldImages(ctx, owner, keep)
	if err != nil {
		return 0, err
	}
	removed := 0
	var errs []error
	for _, tag := range old {
		err := e.removeImage(ctx, tag)
		switch {
		case err == nil:
			removed++
		case !cerrdefs.IsConflict(err) && !cerrdefs.IsNotFound(err):
			errs = append(errs, e.failed("remove the image "+tag, err))
		}
	}
	return removed, errors.Join(errs...)
}

func (e *Engine) removeImage(ctx context.Context, tag string) error {
	ctx, cancel := e.work(ctx)
	defer cancel()
	_, err := e.api.ImageRemove(ctx, tag, image.RemoveOptions{PruneChildren: true})
	return err
}
