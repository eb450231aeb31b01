package claude

import (
	"context"
	"sync"

	"ductor/cli"
)

// process is a Claude process with its last recorded mark. The caller that starts it must stop it or detach from it.
type process struct {
	cli.Process

	mu   sync.Mutex
	mark cli.Mark // the last recorded mark
}

// Begin records the mark m.
func (p *process) Begin(ctx context.Context, m cli.Mark) error {
	if err := p.Process.Begin(ctx, m); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mark = m
	return nil
}

// renote replaces the note in the mark of the running turn. It does nothing if the turn has no mark.
func (p *process) renote(ctx context.Context, turn cli.TurnID, note string) error {
	p.mu.Lock()
	m := p.mark
	p.mu.Unlock()
	if m.Turn != turn || turn == "" {
		return nil // without a recorded start, a note is useless
	}
	m.Note = note
	return p.Begin(ctx, m)
}
