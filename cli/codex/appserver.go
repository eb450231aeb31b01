package codex

import (
	"context"
	"errors"

	"ductor/cli"
	"ductor/cli/rpc"
)

// ask has f ask an app server a few questions: one that runs already, or else one that is ended afterwards. ctx
// bounds the whole.
func (p *Provider) ask(ctx context.Context, f func(*rpc.Peer) error) error {
	if h := p.join(cli.Request{}); h != nil {
		err := f(h.peer)
		if p.leave(h) {
			err = errors.Join(err, p.endServer(ctx, h))
		}
		if err != nil {
			return h.broken(err)
		}
		return nil
	}
	_, command := p.settingOf(cli.Request{})
	command.For = cli.Purpose{Agent: Agent}
	h := &server{provider: p}
	if err := p.startServer(ctx, h, command); err != nil {
		return err
	}
	err := f(h.peer)
	if err != nil {
		err = h.broken(err)
	}
	return errors.Join(err, p.endServer(ctx, h))
}

func (p *Provider) endServer(ctx context.Context, h *server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.opts.Grace+stopWait)
	defer cancel()
	return h.kill(ctx)
}

// join counts in one more user of a server that req fits and that runs; nil if there is none.
func (p *Provider) join(req cli.Request) *server {
	setting, _ := p.settingOf(req)
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.servers[setting]
	if h == nil || !isClosed(h.ready) || h.err != nil || !h.alive() {
		return nil
	}
	h.users++
	return h
}
