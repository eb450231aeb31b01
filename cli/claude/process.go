package claude

import (
	"context"
	"sync"

	"ductor/cli"
)

// process is a Claude process, with the position at which its turn starts. The code that starts it must stop it or
// detach from it.
type process struct {
	cli.Process

	mu   sync.Mutex
	mark cli.Mark // the last recorded mark
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

// renote replaces the note in the mark of the running turn.
func (p *process) renote(ctx context.Context, turn cli.TurnID, note string) error {
	p.mu.Lock()
	m := p.mark
	p.mu.Unlock()
	if m.Turn != turn || turn == "" {
		return nil // its start is not recorded, so nothing after it is either
	}
	m.Note = note
	return p.Begin(ctx, m)
}
