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
	"ductor/orchestrator"
)

const sandboxTimeout = time.Minute

func (d *doctor) checkSandboxes(ctx context.Context, cfg config.Config) {
	all, err := environment.OpenSandboxes(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		d.fail(sandboxes, err.Error(), "correct it in [sandbox]; docs/sandbox.md explains it")
		return
	}
	for _, b := range all.Configured() {
		if b.Setting.Mode != orchestrator.SandboxDocker && b.CheckFolders() == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, sandboxTimeout)
		d.checkSandbox(ctx, cfg, b)
		cancel()
	}
	if err := all.Close(); err != nil {
		d.warn(sandboxes, err.Error(), "check the engine of sandbox.host")
	}
}

func (d *doctor) checkSandbox(ctx context.Context, cfg config.Config, b *environment.Sandbox) {
	what := sandbox.named(b.Name)
	if b.Err != nil {
		d.fail(what, b.Err.Error(), "correct it in [sandbox]; docs/sandbox.md explains it")
		return
	}
	if err := b.CheckFolders(); err != nil {
		d.fail(what, err.Error(), "remove the link, or correct [sandbox.projects]; docs/sandbox.md explains it")
		return
	}
	d.checkSeeds(what, b)
	if p, ok := cfg.Sandbox.Projects[b.Name]; ok {
		if info, err := os.Stat(p.Dir); err != nil || !info.IsDir() {
			d.fail(what, p.Dir+" is no directory", "create it, or set another")
		}
	}
	status, err := b.Launcher.Status(ctx)
	// The sandbox engine answers, so perhaps only ductor-runner is missing. ductor can build ductor-runner.
	if err != nil && status.Version != "" {
		if err = b.MakeRunner(ctx); err == nil {
			status, err = b.Launcher.Status(ctx)
		}
	}
	if err != nil {
		d.fail(what, err.Error(), "start the engine and let the user of ductor use it, or set sandbox.host to another")
		return
	}
	detail := fmt.Sprintf("Docker %s (%s/%s) at %s, image %s %s, container %s", status.Version, status.OS,
		status.Arch, status.Host,
		status.Image, status.ImageIs, status.Is)
	switch {
	case status.ImageIs == docker.StateThere:
	case status.Failed != "":
		d.fail(what, "its image could not be made: "+status.Failed, "fix that, then send a message to try again")
		return
	default:
		d.warn(what, detail, "send a message: the first one builds the image, which may take minutes")
		return
	}
	if err := b.Launcher.Prepare(ctx); err != nil {
		d.fail(what, err.Error(), "start the engine and let the user of ductor use it, or set sandbox.host to another")
		return
	}
	d.ok(what, detail)
	if d.checkAgents(ctx, cfg, app.SandboxAgents(cfg, b), what+", ") == 0 {
		d.fail(what, "no agent can be used in it", "put them into its image, and see sandbox.logins and sandbox.seeds")
	}
}

// checkSeeds adds a finding for each required file in sandbox.seeds that does not exist on this machine.
func (d *doctor) checkSeeds(what check, b *environment.Sandbox) {
	for _, s := range b.Seeds {
		if _, err := os.Stat(s.From); errors.Is(err, os.ErrNotExist) && !s.Optional {
			d.fail(what, fmt.Sprintf("sandbox.seeds: %s is not there", s.From), "create it, or remove it from the list")
		}
	}
}
