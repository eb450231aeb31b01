package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"ductor/cli"
	"ductor/internal/runner"
)

// Left implements cli.Launcher.
func (h *Launcher) Left(ctx context.Context) ([]cli.LeftRun, error) {
	infos, err := h.root.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the runs of the previous process: %w", err)
	}
	var left []cli.LeftRun
	for _, info := range infos {
		if h.isMine(cli.RunID(info.ID)) {
			continue
		}
		run := leftOf(info)
		if run.Mode == "" && run.Problem == "" {
			err := h.Discard(ctx, run.Run)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // the run may have ended meanwhile
				h.log.Warn("end a probe of the previous process", "run", run.Run, "err", err)
			}
			continue
		}
		left = append(left, run)
	}
	return left, nil
}

func (h *Launcher) isMine(id cli.RunID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs[id] != nil || h.starting[id]
}

func leftOf(info runner.Info) cli.LeftRun {
	return cli.LeftRun{
		Run: cli.RunID(info.ID), Purpose: PurposeOf(info.Labels), PID: info.PID, OutputBegin: info.Freed,
		OutputEnd: info.OutputEnd,
		Input:     cli.LeftInput{End: info.InputEnd, Closed: info.InputClosed},
		Alive:     info.Alive, Problem: info.Problem,
	}
}

// Attach implements cli.Launcher.
func (h *Launcher) Attach(ctx context.Context, left cli.LeftRun, offset int64) (cli.Process, error) {
	run, err := h.root.Attach(ctx, string(left.Run), offset)
	if err != nil {
		return nil, err
	}
	return h.hold(run, PurposeOf(run.Info().Labels), slices.Clone(left.Marks)), nil
}

// Discard implements cli.Launcher.
func (h *Launcher) Discard(ctx context.Context, id cli.RunID) error {
	if err := h.root.Kill(ctx, string(id)); err != nil {
		return err
	}
	return h.root.Collect(ctx, string(id))
}
