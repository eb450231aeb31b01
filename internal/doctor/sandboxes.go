package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"ductor/docker"
	"ductor/internal/app"
	"ductor/internal/app/environment"
	"ductor/internal/config"
)

// sandboxPatience is how long a doctor waits for one sandbox.
const sandboxPatience = time.Minute

// sandboxes checks each sandbox that is in use and its agents.
func (d *doctor) sandboxes(ctx context.Context, cfg config.Config) {
	all, err := environment.OpenSandboxes(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		d.fail(sandboxes, err.Error(), "correct it in [sandbox]; docs/sandbox.md explains it")
		return
	}
	for _, b := range all.Configured() {
		if b.Setting.Mode != config.SandboxDocker {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, sandboxPatience)
		d.sandbox(ctx, cfg, b)
		cancel()
	}
	if err := all.Close(); err != nil {
		d.warn(sandboxes, err.Error(), "check the engine of sandbox.host")
	}
}

func (d *doctor) sandbox(ctx context.Context, cfg config.Config, b *environment.Sandbox) {
	what := sandbox.of(b.Name)
	if b.Err != nil {
		d.fail(what, b.Err.Error(), "correct it in [sandbox]; docs/sandbox.md explains it")
		return
	}
	d.seeds(what, b)
	if p, ok := cfg.Sandbox.Projects[b.Name]; ok {
		if info, err := os.Stat(p.Dir); err != nil || !info.IsDir() {
			d.fail(what, p.Dir+" is no directory", "make it or name another")
		}
	}
	status, err := b.Launcher.Status(ctx)
	if err != nil && status.Version != "" { // the engine answers: what is missing may be the runner, which ductor makes
		if err = b.MakeRunner(ctx); err == nil {
			status, err = b.Launcher.Status(ctx)
		}
	}
	if err != nil {
		d.fail(what, err.Error(), "start the engine and let the user of ductor use it, or set sandbox.host to another")
		return
	}
	detail := fmt.Sprintf("Docker %s (%s/%s) at %s, image %s %s, container %s", status.Version, status.OS, status.Arch, status.Host,
		status.Image, status.ImageIs, status.Is)
	switch {
	case status.ImageIs == docker.StateThere:
	case status.Failed != "":
		d.fail(what, "its image could not be made: "+status.Failed, "do that and send a message, which tries it again")
		return
	default:
		d.warn(what, detail, "send a message: the first one makes the image, which may take minutes")
		return
	}
	if err := b.Launcher.Prepare(ctx); err != nil {
		d.fail(what, err.Error(), "start the engine and let the user of ductor use it, or set sandbox.host to another")
		return
	}
	d.ok(what, detail)
	if d.judge(ctx, cfg, app.SandboxAgents(cfg, b), what+", ") == 0 {
		d.fail(what, "no agent can be used in it", "put them into its image, and see sandbox.logins and sandbox.seeds")
	}
}

// seeds warns of files that are to be copied and are not there.
func (d *doctor) seeds(what check, b *environment.Sandbox) {
	for _, s := range b.Seeds {
		if _, err := os.Stat(s.From); errors.Is(err, os.ErrNotExist) && !s.Optional {
			d.fail(what, fmt.Sprintf("sandbox.seeds: %s is not there", s.From), "make it or leave it out")
		}
	}
}
