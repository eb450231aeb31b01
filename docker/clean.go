package docker

import (
	"context"
	"errors"
	"slices"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"
)

// Clean removes the containers of an owner that are for none of names: of projects that are no longer configured,
// or of a start that broke off. It returns how many. What runs in them ends. Homes stay.
func (e *Engine) Clean(ctx context.Context, owner string, names []string) (int, error) {
	all, err := e.api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", labelOwner+"="+owner))})
	if err != nil {
		return 0, e.failed("list containers", err)
	}
	removed := 0
	var errs []error
	for _, c := range all {
		if slices.Contains(names, c.Labels[labelName]) && c.Labels[labelName] != "" {
			continue
		}
		if err := e.remove(ctx, c.ID); err != nil {
			errs = append(errs, err)
			continue
		}
		removed++
	}
	return removed, errors.Join(errs...)
}

// Homes lists the names for which an owner has a home in this engine.
func (e *Engine) Homes(ctx context.Context, owner string) ([]string, error) {
	all, err := e.api.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(filters.Arg("label", labelOwner+"="+owner))})
	if err != nil {
		return nil, e.failed("list volumes", err)
	}
	var names []string
	for _, v := range all.Volumes {
		names = append(names, v.Labels[labelName])
	}
	slices.Sort(names)
	return names, nil
}

// Forget removes a name's container and its home, with the sessions of the agents in it.
func (e *Engine) Forget(ctx context.Context, owner, name string) error {
	o := Options{Owner: owner, Name: name}
	if err := e.remove(ctx, o.containerName()); err != nil {
		return err
	}
	return e.failed("remove a volume", e.api.VolumeRemove(ctx, o.containerName(), true))
}
