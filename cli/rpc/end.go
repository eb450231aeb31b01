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

// Ended is closed when the program prints nothing any more.
func (p *Peer) Ended() <-chan struct{} { return p.ended }

// Failure says what the end of the program in the middle of a turn means. Use it once Ended is closed.
func (p *Peer) Failure() *cli.Failure {
	p.mu.Lock()
	garbage, err := p.garbage, p.readErr
	p.mu.Unlock()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return turn.EndFailure(p.opts.Agent, p.process, exitLimit, err, garbage)
}

// CloseInput gives the program end of file once all that was sent is written.
func (p *Peer) CloseInput() { p.out.Close() }

// Stop ends the program with all it started, and waits for both goroutines. Idempotent.
func (p *Peer) Stop(ctx context.Context, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, grace+stopSlack)
	defer cancel()
	err := p.process.Stop(ctx, grace)
	p.out.Drop(ErrEnded)
	_ = p.process.Stdin().Close() // frees a write that blocks; a second Close has no error worth telling
	return errors.Join(err, p.wait(ctx))
}

// Detach writes what was sent, gives the process up, which goes on, and waits for both goroutines.
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
