package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// Ended returns a channel that is closed when the program's output has ended.
func (p *Peer) Ended() <-chan struct{} { return p.ended }

// Failure returns the failure for a turn during which the program ended. The caller must wait for Ended first.
func (p *Peer) Failure() *cli.Failure {
	p.mu.Lock()
	garbage, err := p.garbage, p.readErr
	p.mu.Unlock()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return turn.EndFailure(p.opts.Agent, p.process, exitLimit, err, garbage)
}

// Unread returns the beginning of the output that is not part of the protocol, in one line, or "" if there is none.
func (p *Peer) Unread() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.garbage.Begin()
}

// CloseInput closes the program's standard input after all queued messages are written.
func (p *Peer) CloseInput() { p.out.Close() }

// Stop ends the program with all its descendants, and waits until reading and writing have ended. Idempotent.
func (p *Peer) Stop(ctx context.Context, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, grace+stopSlack)
	defer cancel()
	err := p.process.Stop(ctx, grace)
	p.out.Drop(ErrEnded)
	_ = p.process.Stdin().Close() // unblocks a write; an error means that it was closed before
	return errors.Join(err, p.wait(ctx))
}

// Detach writes all queued messages and detaches from the program, which continues to run. It waits until reading and
// writing have ended.
func (p *Peer) Detach() error {
	p.out.Flush(flushLimit)
	p.process.Detach()
	p.out.Drop(cli.ErrDetached)
	ctx, cancel := context.WithTimeout(context.Background(), stopSlack)
	defer cancel()
	return p.wait(ctx)
}

func (p *Peer) wait(ctx context.Context) error {
	for _, done := range []<-chan struct{}{p.ended, p.out.Done()} {
		select {
		case <-done:
		case <-ctx.Done():
			return fmt.Errorf("end %s: %w", p.opts.Agent, context.Cause(ctx))
		}
	}
	return nil
}
