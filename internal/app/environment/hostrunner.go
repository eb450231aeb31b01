package environment

import (
	"context"
	"log/slog"

	"ductor/internal/config"
	"ductor/internal/runner"
)

// HostRunner says how the runner of this machine is started: by ductor-runner where it is there and of this version, otherwise by
// ductor itself, which does the same in more memory.
func HostRunner(ctx context.Context, cfg config.Config, log *slog.Logger) runner.Options {
	small := findSmall(cfg)
	if small.make != nil {
		if small.slow {
			return runner.Options{} // sandboxes alone are worth a build
		}
		if err := small.make(ctx); err != nil {
			log.Warn("ductor is the runner of its agents, since ductor-runner cannot be", "err", err)
			return runner.Options{}
		}
	}
	options, err := runner.Small(ctx, small.path)
	if err != nil {
		log.Warn("ductor is the runner of its agents, since ductor-runner cannot be; build both of one version", "err", err)
		return runner.Options{}
	}
	return options
}
