package claude

import (
	"context"
	"errors"
	"sync"
	"time"

	"ductor/cli"
)

// process is Claude with what this package keeps beside it: the files with its system prompts, which go when
// it does, and where its turn began. Everybody who starts one stops it or detaches from it.
type process struct {
	cli.Process
	files promptFiles

	mu   sync.Mutex
	mark cli.Mark // recorded last
}

func newProcess(p cli.Process, files promptFiles) *process {
	return &process{Process: p, files: files}
}

// Begin records a mark and remembers it.
func (p *process) Begin(ctx context.Context, m cli.Mark) error {
	if err := p.Process.Begin(ctx, m); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mark = m
	return nil
}

// renote records another note with the mark of the turn that runs.
func (p *process) renote(ctx context.Context, turn cli.TurnID, note string) error {
	p.mu.Lock()
	m := p.mark
	p.mu.Unlock()
	if m.Turn != turn || turn == "" {
		return nil // its beginning is not recorded, so neither is what came after
	}
	m.Note = note
	return p.Begin(ctx, m)
}

// Stop is the process's, and removes the files.
func (p *process) Stop(ctx context.Context, grace time.Duration) error {
	return errors.Join(p.Process.Stop(ctx, grace), p.files.remove())
}
