package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"ductor/cli"
	"ductor/internal/runner"
)

// blueprint is all that is asked of a container.
type blueprint struct {
	Config container.Config
	Host   container.HostConfig
}

// containerName is the one name of a container, and of its volume.
func (o Options) containerName() string {
	plain := strings.Map(func(r rune) rune {
		if notPlain(r) {
			return '-'
		}
		return r
	}, strings.ToLower(o.Name))
	return fmt.Sprintf("%s%s-%s", o.prefix(), strings.Trim(plain[:min(len(plain), 24)], "-"), digest([]byte(o.Name))[:8])
}

// prefix is what the names of all containers of an owner begin with.
func (o Options) prefix() string { return "ductor-" + o.Owner + "-" }

// blueprint says what container is wanted of an image, but for its limits: see Engine.resources.
func (o Options) blueprint(f fitted) (blueprint, error) {
	b := blueprint{
		Config: container.Config{
			User: o.User, Entrypoint: []string{programFile, runner.Hold, "root=" + runsDir}, WorkingDir: "/",
			Labels: map[string]string{labelOwner: o.Owner, labelName: o.Name},
		},
		Host: container.HostConfig{
			NetworkMode: container.NetworkMode(o.Network), CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"},
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
	policy, err := o.digestOf(b, f.asked)
	if err != nil {
		return b, err
	}
	b.Config.Labels[labelPolicy], b.Config.Labels[labelSettings], b.Config.Labels[labelRunner] = policy, settings, f.runner
	b.Config.Image = f.tag
	b.Config.Cmd = []string{"program=" + f.runner}
	return b, nil
}

// digestOf returns a digest of what is asked of a container and of its image.
func (o Options) digestOf(b blueprint, image string) (string, error) {
	raw, err := json.Marshal(struct {
		Base string
		blueprint
		Seeds  []Seed
		CPUs   float64 // as configured: a machine that grows makes no container outdated
		Memory int64
		PIDs   int64
	}{image, b, o.Seeds, o.CPUs, o.Memory, o.PIDs})
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
		h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeBind, Source: m.Source, Target: m.Target, ReadOnly: !m.Writable})
	}
	return nil
}

// sharedMount is a place for files of a directory of ductor's own: a volume without a name, which goes with its container,
// and in which only root may write. The directory itself is never mounted: Bring says which files of it are there.
func (o Options) sharedMount(dir string) mount.Mount {
	return mount.Mount{Type: mount.TypeVolume, Target: dir, VolumeOptions: &mount.VolumeOptions{
		Labels: map[string]string{labelOwner: o.Owner, labelName: o.Name, labelUse: "shared"},
	}}
}

// inspect finds the container of a name; false if there is none.
func (e *Engine) inspect(ctx context.Context, name string) (container.InspectResponse, bool, error) {
	asking, cancel := e.brief(ctx)
	defer cancel()
	c, err := e.api.ContainerInspect(asking, name)
	if cerrdefs.IsNotFound(err) {
		return c, false, nil
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && e.Check(ctx) == nil {
		return c, false, e.stuck(err)
	}
	return c, err == nil, e.failed("look for the sandbox's container", err)
}

// stuck says that an engine works and a container does not. Engines before 23.0 never again answer about one that is
// paused at the very moment when a program is started in it: they wait for the program, which is frozen, and hold what
// waking it needs.
func (e *Engine) stuck(err error) error {
	return &Error{
		Reason: fmt.Sprintf("Docker at %s answers, but not about the sandbox's container; it may be frozen", e.host),
		Fix:    "restart Docker there", Err: err,
	}
}

// revive starts a container that does not run. One that the engine cannot start, such as after its network was made
// anew or when the engine itself was ended while it started it, is as good as none.
func (e *Engine) revive(ctx context.Context, c container.InspectResponse) error {
	ctx, cancel := e.work(ctx)
	defer cancel()
	switch {
	case c.State.Paused:
		return e.failed("wake the sandbox's container, which was paused", e.api.ContainerUnpause(ctx, c.ID))
	case c.State.Running:
		return nil
	}
	err := e.api.ContainerStart(ctx, c.ID, container.StartOptions{})
	if err != nil && ctx.Err() == nil && !unreachable(err) {
		return &Error{
			Reason: fmt.Sprintf("the sandbox's container cannot be started: %s", cli.Shorten(lastLine(err.Error()), 200)),
			Fix:    "it is made anew for the next message", Err: err, gone: true,
		}
	}
	return e.failed("start the sandbox's container", err)
}

// remove ends a container and all that runs in it. One that is gone is no error. A paused one is woken first: some
// engines wait for ever for what is frozen to die. Volumes without a name go with it.
func (e *Engine) remove(ctx context.Context, id string) error {
	ctx, cancel := e.work(ctx)
	defer cancel()
	if err := e.api.ContainerUnpause(ctx, id); err != nil && !cerrdefs.IsConflict(err) && !cerrdefs.IsNotFound(err) && !cerrdefs.IsInternal(err) {
		return e.failed("wake a container, to remove it", err)
	}
	err := e.api.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	if cerrdefs.IsConflict(err) { // another removal is under way, or ours is, and we did not wait for its end
		return e.awaitRemoved(ctx, id)
	}
	return e.failed("remove a container", err)
}

// awaitRemoved returns when a container that is being removed is gone.
func (e *Engine) awaitRemoved(ctx context.Context, id string) error {
	look := time.NewTicker(removedLook)
	defer look.Stop()
	for {
		_, there, err := e.inspect(ctx, id)
		if err != nil || !there {
			return err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return e.failed("remove a container", context.Cause(ctx))
		}
	}
}

const removedLook = 50 * time.Millisecond

// state says why nothing runs in a container, or that it does not answer.
func state(c container.InspectResponse, there bool) *Error {
	switch {
	case !there:
		return &Error{Reason: "the sandbox's container was removed", Fix: "it is made anew for the next message", gone: true}
	case c.State.Paused:
		return &Error{Reason: "the sandbox's container was paused", Fix: "it is woken for the next message"}
	case c.State.OOMKilled && !c.State.Running:
		return &Error{Reason: "the sandbox ran out of memory and was ended", Fix: "give it a higher memory limit", gone: true}
	case !c.State.Running:
		return &Error{Reason: "the sandbox's container was stopped", Fix: "it is started for the next message", gone: true}
	}
	return nil
}
