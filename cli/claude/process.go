package claude

import (
	"context"
	"sync"

	"ductor/cli"
)

// process is a Claude process. The caller must stop the process or detach from it.
type process struct {
	cli.Process

	mu   sync.Mutex
	mark cli.Mark // the last mark that Begin stored; updateNote replaces its note
}

func (p *process) Begin(ctx context.Context, m cli.Mark) error {
	if err := p.Process.Begin(ctx, m); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mark = m
	return nil
}

// updateNote replaces the stored note of a turn. It does nothing if no start of this turn is stored.
func (p *process) updateNote(ctx context.Context, turn cli.TurnID, note string) error {
	p.mu.Lock()
	m := p.mark
	p.mu.Unlock()
	if m.Turn != turn || turn == "" {
		return nil
	}
	m.Note = note
	return p.Begin(ctx, m)
}
