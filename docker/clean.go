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

func ownerFilter(owner string) filters.Args {
	return filters.NewArgs(filters.Arg("label", labelOwner+"="+owner))
}

// containers lists containers, including stopped ones. An empty filter matches all.
func (e *Engine) containers(ctx context.Context, f filters.Args) ([]container.Summary, error) {
	ctx, cancel := e.requestContext(ctx)
	defer cancel()
	all, err := e.api.ContainerList(ctx, container.ListOptions{All: true, Filters: f})
	return all, e.describe("list containers", err)
}

// volumes lists the volumes of an owner.
func (e *Engine) volumes(ctx context.Context, owner string) ([]*volume.Volume, error) {
	ctx, cancel := e.requestContext(ctx)
	defer cancel()
	all, err := e.api.VolumeList(ctx, volume.ListOptions{Filters: ownerFilter(owner)})
	return all.Volumes, e.describe("list volumes", err)
}

// Clean removes the containers of an owner with all their processes, and returns their number. The owner is an
// installation of ductor; see Options.Owner. Clean leaves homes in place. It also leaves a container in place if
// isNeeded returns true for the name of its sandbox. Clean is meant for containers of projects that are no longer
// configured, and for containers that an interrupted start left behind.
//
// isNeeded must return true for every sandbox in this engine, even if the launcher of the sandbox uses another address
// of the engine (see Engine.ID). If isNeeded is nil, Clean removes all containers of the owner.
func (e *Engine) Clean(ctx context.Context, owner string, isNeeded func(name string) bool) (int, error) {
	all, err := e.containers(ctx, ownerFilter(owner))
	if err != nil {
		return 0, err
	}
	removed := 0
	var errs []error
	for _, c := range all {
		name := c.Labels[labelName]
		if name != "" && isNeeded != nil && isNeeded(name) || name == "" && e.mayBeMakingImage(c) {
			continue
		}
		if err := e.remove(ctx, c.ID); err != nil {
			errs = append(errs, err)
			continue
		}
		removed++
	}
	return removed, errors.Join(append(errs, e.removeShared(ctx, ownerFilter(owner)))...)
}

// removeShared removes the volumes for Options.Shared that no container uses. Such volumes remain if a user removes a
// container by hand.
func (e *Engine) removeShared(ctx context.Context, of filters.Args) error {
	ctx, cancel := e.workContext(ctx)
	defer cancel()
	of.Add("label", labelUse+"="+useShared)
	of.Add("dangling", "true")
	all, err := e.api.VolumeList(ctx, volume.ListOptions{Filters: of})
	if err != nil {
		return e.describe("list volumes", err)
	}
	var errs []error
	for _, v := range all.Volumes {
		if err := e.api.VolumeRemove(ctx, v.Name, false); err != nil && !cerrdefs.IsNotFound(err) &&
			!cerrdefs.IsConflict(err) {
			errs = append(errs, e.describe("remove a volume", err))
		}
	}
	return errors.Join(errs...)
}

// mayBeMakingImage reports whether a container without a sandbox name is so new that ductor may still be making an
// image with it.
func (e *Engine) mayBeMakingImage(c container.Summary) bool {
	return time.Since(time.Unix(c.Created, 0)) < workFactor*e.wait
}

// Home is the volume of a sandbox, with the home of its agents and the homes of sessions. It outlives the container.
type Home struct {
	Name string // name of the sandbox
	// Used is when a program last started in the sandbox. If this machine does not know that time, Used is when the
	// home was created.
	Used time.Time
}

// Homes lists an owner's homes in this engine, by name. dir is Options.Dir, or empty. Homes reads the times at which
// homes were used from the notes in dir.
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
		h.Used, _ = time.Parse(time.RFC3339, v.CreatedAt) // zero if the engine does not report it
		if used := usedAt(dir, Options{Owner: owner, Name: h.Name}.containerName()); used.After(h.Used) {
			h.Used = used
		}
		homes = append(homes, h)
	}
	slices.SortFunc(homes, func(a, b Home) int { return cmp.Compare(a.Name, b.Name) })
	return homes, nil
}

// Forget removes the container and the home of a sandbox. The sessions of its agents are lost.
func (e *Engine) Forget(ctx context.Context, owner, name string) error {
	o := Options{Owner: owner, Name: name}
	if err := e.remove(ctx, o.containerName()); err != nil {
		return err
	}
	ctx, cancel := e.workContext(ctx)
	defer cancel()
	return e.describe("remove a volume", e.api.VolumeRemove(ctx, o.containerName(), true))
}

// Images returns the names of the images that this sandbox needs, as far as they exist. Callers pass them to
// Engine.CleanImages.
func (l *Launcher) Images(ctx context.Context) ([]string, error) {
	name, err := l.remote.sources.baseName(l.opts)
	if err != nil {
		return nil, err
	}
	info, there, err := l.remote.engine.image(ctx, name)
	if err != nil || !there {
		return nil, err
	}
	if err := l.opts.makeRunner(ctx); err != nil {
		return nil, err
	}
	program, err := l.remote.sources.runner(l.opts, info.Architecture)
	if err != nil {
		return nil, err
	}
	return []string{name, fittedTag(info.ID, program, l.opts.User)}, nil
}

// oldImages lists those images of an owner that no container uses, not even a container of another owner. It omits the
// images whose names are in keep.
func (e *Engine) oldImages(ctx context.Context, owner string, keep []string) (old []string, err error) {
	used, err := e.usedImages(ctx)
	if err != nil {
		return nil, err
	}
	listing, cancel := e.requestContext(ctx)
	defer cancel()
	f := ownerFilter(owner)
	f.Add("reference", fittedImages)
	f.Add("reference", builtImages)
	all, err := e.api.ImageList(listing, image.ListOptions{Filters: f})
	if err != nil {
		return nil, e.describe("list images", err)
	}
	for _, i := range all {
		wanted := used[i.ID] || slices.ContainsFunc(i.RepoTags,
			func(tag string) bool { return slices.Contains(keep, tag) })
		if !wanted {
			old = append(old, i.RepoTags...)
		}
	}
	return old, nil
}

// usedImages returns the IDs of the images of all containers, and of their base images.
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

// CleanImages removes those images of an owner that no container uses, and returns their number. It does not remove the
// images whose names are in keep. If the engine reports that an image is in use, CleanImages does not remove it.
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
			errs = append(errs, e.describe("remove the image "+tag, err))
		}
	}
	return removed, errors.Join(errs...)
}

func (e *Engine) removeImage(ctx context.Context, tag string) error {
	ctx, cancel := e.workContext(ctx)
	defer cancel()
	_, err := e.api.ImageRemove(ctx, tag, image.RemoveOptions{PruneChildren: true})
	return err
}
