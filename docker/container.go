package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"ductor/cli"
	"ductor/internal/runner"
)

// blueprint is the complete configuration from which a container is created.
type blueprint struct {
	Config container.Config
	Host   container.HostConfig
}

// containerName returns the name of the container, which is also the name of its volume.
func (o Options) containerName() string {
	plain := strings.Map(func(r rune) rune {
		if notPlain(r) {
			return '-'
		}
		return r
	}, strings.ToLower(o.Name))
	return fmt.Sprintf("%s%s-%s", o.prefix(), strings.Trim(plain[:min(len(plain), 24)], "-"),
		digest([]byte(o.Name))[:8])
}

func (o Options) prefix() string { return "ductor-" + o.Owner + "-" }

// blueprint returns the configuration of a container with the image f. It does not contain the limits; see
// Engine.resources.
func (o Options) blueprint(f fittedImage) (blueprint, error) {
	b := blueprint{
		Config: container.Config{
			User: o.User, Entrypoint: []string{programFile, runner.Hold, "root=" + runsDir}, WorkingDir: "/",
			Labels: map[string]string{labelOwner: o.Owner, labelName: o.Name},
		},
		Host: container.HostConfig{
			NetworkMode: container.NetworkMode(o.Network), CapDrop: []string{"ALL"},
			SecurityOpt:    []string{"no-new-privileges"},
			ReadonlyRootfs: o.ReadOnlyRoot, LogConfig: container.LogConfig{Type: "none"},
			RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		},
	}
	if err := o.addMounts(&b.Host); err != nil {
		return b, err
	}
	settings, err := o.digestOf(b, "")
	if err != nil {
		return b, err
	}
	b.Config.Env = []string{"HOME=" + homeDir, "PATH=" + f.path, "TMPDIR=" + tempDir}
	policy, err := o.digestOf(b, f.source)
	if err != nil {
		return b, err
	}
	b.Config.Labels[labelPolicy], b.Config.Labels[labelSettings], b.Config.Labels[labelRunner] = policy, settings,
		f.runner
	b.Config.Image = f.tag
	b.Config.Cmd = []string{"program=" + f.runner}
	return b, nil
}

// digestOf returns a digest of the image and of all settings that cannot be changed in an existing container.
func (o Options) digestOf(b blueprint, image string) (string, error) {
	raw, err := json.Marshal(struct {
		Base string
		blueprint
		Seeds  []Seed
		CPUs   float64 // as configured; the default is not included, because it depends on the engine's machine
		Memory int64
		PIDs   int64
	}{image, b, o.Seeds, o.CPUs, o.memory(), int64(o.PIDs)})
	return digest(raw), err
}

func (o Options) addMounts(h *container.HostConfig) error {
	uid, gid, err := parseUser(o.User)
	if err != nil {
		return err
	}
	h.Tmpfs = map[string]string{}
	if o.ReadOnlyRoot {
		for _, dir := range []string{tempDir, "/var/tmp"} {
			h.Tmpfs[dir] = fmt.Sprintf("rw,exec,nosuid,nodev,mode=1777,size=%d", tmpSize)
		}
		h.Tmpfs["/run"] = "rw,nosuid,nodev,mode=1777,size=16m"
	}
	if o.StateSize > 0 {
		for _, dir := range []string{homeDir, runsDir} {
			h.Tmpfs[dir] = fmt.Sprintf("rw,exec,nosuid,nodev,mode=0700,uid=%d,gid=%d,size=%d", uid, gid, o.StateSize)
		}
	} else {
		h.Mounts = append(h.Mounts, mount.Mount{
			Type: mount.TypeVolume, Source: o.containerName(), Target: stateDir,
			VolumeOptions: &mount.VolumeOptions{Labels: map[string]string{labelOwner: o.Owner, labelName: o.Name}},
		})
	}
	for _, dir := range o.Shared {
		h.Mounts = append(h.Mounts, o.sharedMount(dir))
	}
	for _, m := range o.mounts() {
		h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeBind, Source: m.Source, Target: m.Target,
			ReadOnly: !m.Writable})
	}
	return nil
}

// mountsAll reports whether Projects and Mounts contain all directories that a container mounts. CheckMounts does not
// check others.
func (o Options) mountsAll(h *container.HostConfig) bool {
	return !slices.ContainsFunc(h.Mounts, func(has mount.Mount) bool {
		return has.Type == mount.TypeBind &&
			!slices.ContainsFunc(o.mounts(), func(m Mount) bool { return m.Source == has.Source })
	})
}

// sharedMount returns a mount of an anonymous volume for the files that Bring copies into the container. dir is the
// path of one of ductor's directories. In the container, the volume has the same path, but is empty at first. Only root
// can write to the volume, and the engine removes it with the container.
func (o Options) sharedMount(dir string) mount.Mount {
	return mount.Mount{Type: mount.TypeVolume, Target: dir, VolumeOptions: &mount.VolumeOptions{
		Labels: map[string]string{labelOwner: o.Owner, labelName: o.Name, labelUse: "shared"},
	}}
}

// inspect returns a container by its name. It returns false if the container does not exist.
func (e *Engine) inspect(ctx context.Context, name string) (container.InspectResponse, bool, error) {
	asking, cancel := e.requestContext(ctx)
	defer cancel()
	c, err := e.api.ContainerInspect(asking, name)
	if cerrdefs.IsNotFound(err) {
		return c, false, nil
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && e.Check(ctx) == nil {
		return c, false, e.containerStuck(err)
	}
	return c, err == nil, e.describe("look for the sandbox's container", err)
}

// containerStuck returns the error for an engine that answers other requests, but not a request about this container.
// Engines before version 23.0 do this if the container was paused while a program was starting: the engine then waits
// for the frozen program, and holds a lock that unpausing needs.
func (e *Engine) containerStuck(err error) error {
	return &Error{
		Reason: fmt.Sprintf("Docker at %s answers, but not about the sandbox's container; it may be frozen", e.host),
		Fix:    "restart Docker there", Err: err,
	}
}

// startContainer starts a stopped container, or unpauses a paused one.
//
// Sometimes an engine can never start a container again, for example because its network was created anew, or because
// the engine was killed during the start. In this case, Error.gone is true in the returned error. The caller must then
// create a new container.
func (e *Engine) startContainer(ctx context.Context, c container.InspectResponse) error {
	ctx, cancel := e.workContext(ctx)
	defer cancel()
	switch {
	case c.State.Paused:
		return e.describe("wake the sandbox's container, which was paused", e.api.ContainerUnpause(ctx, c.ID))
	case c.State.Running:
		return nil
	}
	err := e.api.ContainerStart(ctx, c.ID, container.StartOptions{})
	if err != nil && ctx.Err() == nil && !isConnectionError(err) {
		return &Error{
			Reason: fmt.Sprintf("the sandbox's container cannot be started: %s",
				cli.Shorten(lastLine(err.Error()), 200)),
			Fix: "your next message creates it again", Err: err, gone: true,
		}
	}
	return e.describe("start the sandbox's container", err)
}

// remove removes a container with all its processes and anonymous volumes. It returns nil if the container does not
// exist. It unpauses the container first, because some engines wait forever for frozen processes to exit.
func (e *Engine) remove(ctx context.Context, id string) error {
	ctx, cancel := e.workContext(ctx)
	defer cancel()
	if err := e.api.ContainerUnpause(ctx, id); err != nil && !cerrdefs.IsConflict(err) && !cerrdefs.IsNotFound(err) &&
		!cerrdefs.IsInternal(err) {
		return e.describe("wake a container, to remove it", err)
	}
	err := e.api.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	if cerrdefs.IsConflict(err) { // another removal is in progress, perhaps our own request that timed out
		return e.awaitRemoved(ctx, id)
	}
	return e.describe("remove a container", err)
}

// awaitRemoved waits until the engine has removed a container.
func (e *Engine) awaitRemoved(ctx context.Context, id string) error {
	look := time.NewTicker(removedPoll)
	defer look.Stop()
	for {
		_, there, err := e.inspect(ctx, id)
		if err != nil || !there {
			return err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return e.describe("remove a container", context.Cause(ctx))
		}
	}
}

const removedPoll = 50 * time.Millisecond

// stoppedError returns an error if no program can run in the container. The error contains the reason.
func stoppedError(c container.InspectResponse, there bool) *Error {
	switch {
	case !there:
		return &Error{Reason: "the sandbox's container was removed", Fix: "your next message creates it again",
			gone: true}
	case c.State.Paused:
		return &Error{Reason: "the sandbox's container was paused", Fix: "your next message resumes it"}
	case c.State.OOMKilled && !c.State.Running:
		return &Error{Reason: "the sandbox ran out of memory and was ended", Fix: "give it a higher memory limit",
			gone: true}
	case !c.State.Running:
		return &Error{Reason: "the sandbox's container was stopped", Fix: "your next message starts it",
			gone: true}
	}
	return nil
}
