package claude

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"ductor/cli"
)

// process is Claude with what this package keeps beside it: the files with its system prompts, which go when
// it does, and where its turn began. Everybody who starts one stops it or detaches from it.
type process struct {
	cli.Process
	files promptFiles
	in    *input

	mu   sync.Mutex
	mark cli.Mark // recorded last
}

func newProcess(p cli.Process, files promptFiles) *process {
	return &process{Process: p, files: files, in: &input{WriteCloser: p.Stdin(), waiting: map[*byte]chan error{}}}
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

// Stdin is the process's, and knows what was written.
func (p *process) Stdin() io.WriteCloser { return p.in }

// Stop is the process's, and removes the files.
func (p *process) Stop(ctx context.Context, grace time.Duration) error {
	return errors.Join(p.Process.Stop(ctx, grace), p.files.remove())
}

// input tells when a line that somebody waits for was written. Safe for concurrent use.
type input struct {
	io.WriteCloser

	mu      sync.Mutex
	waiting map[*byte]chan error // by the first byte of the line
}

// expect is called before line is sent; the channel gets how the writing of it went.
func (i *input) expect(line []byte) <-chan error {
	written := make(chan error, 1)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waiting[&line[0]] = written
	return written
}

// forget is for a line that will not be written, or whose sender stopped waiting.
func (i *input) forget(line []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.waiting, &line[0])
}

func (i *input) Write(line []byte) (int, error) {
	n, err := i.WriteCloser.Write(line)
	if len(line) == 0 {
		return n, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if written := i.waiting[&line[0]]; written != nil {
		delete(i.waiting, &line[0])
		written <- err
	}
	return n, err
}
