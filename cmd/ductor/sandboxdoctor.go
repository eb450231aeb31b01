package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"ductor/cli"
	"ductor/docker"
	"ductor/internal/config"
)

// sandboxPatience is how long a doctor waits for one sandbox.
const sandboxPatience = time.Minute

// sandboxes says of each sandbox that is in use whether it can be had, and what the agents in it are good for.
func (d *doctor) sandboxes(ctx context.Context, cfg config.Config) {
	h := &house{cfg: cfg, log: slog.New(slog.DiscardHandler)}
	var err error
	if h.boxes, err = openSandboxes(cfg, h.log); err != nil {
		d.fail("sandboxes", err.Error())
		return
	}
	for _, r := range h.boxes.rooms {
		if r.setting.Mode != config.SandboxDocker {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, sandboxPatience)
		d.sandbox(ctx, h, r)
		cancel()
	}
	if err := h.boxes.close(); err != nil {
		d.warn("sandboxes", err.Error())
	}
}

func (d *doctor) sandbox(ctx context.Context, h *house, r *room) {
	what := "sandbox " + r.name
	if r.why != nil {
		d.fail(what, r.why.Error())
		return
	}
	d.seeds(what, r)
	if p, ok := h.cfg.Sandbox.Projects[r.name]; ok {
		if info, err := os.Stat(p.Dir); err != nil || !info.IsDir() {
			d.fail(what, p.Dir+" is no directory; make it or name another")
		}
	}
	status, err := r.launcher.Status(ctx)
	if err != nil {
		d.fail(what, err.Error())
		return
	}
	detail := fmt.Sprintf("Docker %s (%s/%s) at %s, image %s %s, container %s", status.Version, status.OS, status.Arch, status.Host,
		status.Image, status.ImageIs, status.Is)
	if status.ImageIs != docker.StateThere {
		d.ok(what, detail+"; its agents are looked at when ductor runs")
		return
	}
	if err := r.launcher.Prepare(ctx); err != nil {
		d.fail(what, err.Error())
		return
	}
	d.ok(what, detail)
	if d.judge(ctx, h.cfg, h.site(r).Providers, "sandbox "+r.name+", ") == 0 {
		d.fail(what, "no agent can be used in it; put them into its image, and see sandbox.logins and sandbox.seeds")
	}
}

// seeds warns of files that are to be copied and are not there.
func (d *doctor) seeds(what string, r *room) {
	for _, s := range r.seeds {
		if _, err := os.Stat(s.From); errors.Is(err, os.ErrNotExist) && !s.Optional {
			d.fail(what, fmt.Sprintf("sandbox.seeds: %s is not there; make it or leave it out", s.From))
		}
	}
}

var _ cli.Preparer = (*docker.Launcher)(nil)
