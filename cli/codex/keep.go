package codex

import (
	"context"
	"encoding/json"
	"errors"

	"ductor/cli"
)

var _ cli.Keeper = (*Provider)(nil)

// Keep takes over an app server in which no turn runs. Its connection was opened by the previous process and stays as it
// is, for Codex takes no second greeting. What its threads' tools left running is ended: it could not be told any more
// whose it is.
func (p *Provider) Keep(ctx context.Context, left cli.LeftRun) (cli.Kept, error) {
	raw, rests := left.Rested()
	var note restNote
	if !rests || json.Unmarshal([]byte(raw), &note) != nil || note.Version == "" {
		return cli.Kept{}, cli.Failf(cli.UnknownFailure, Agent, "it is unknown what runs in it")
	}
	h := p.reserveFor(left, note.Version)
	if h == nil {
		return cli.Kept{}, cli.Failf(cli.UnknownFailure, Agent, "another one took its place")
	}
	err := p.takeOver(ctx, h)
	if err != nil {
		p.abandon(h)
		h.err = errors.Join(errGivenUp, err) // who waits for it starts another
	}
	close(h.ready)
	if err != nil {
		return cli.Kept{}, err
	}
	return p.kept(h), nil
}

// kept is a server of which one user is the caller.
func (p *Provider) kept(h *server) cli.Kept {
	return cli.Kept{
		PID: h.process.PID(), Alive: h.alive,
		Close: func(ctx context.Context) error {
			if !p.leave(h) {
				return nil
			}
			return h.kill(ctx)
		},
		Detach: func() {
			h.leaving()
			if p.leave(h) {
				h.detach()
			}
		},
	}
}

// reserveFor makes the server of a run, with one user; nil if there is another one for its setting.
func (p *Provider) reserveFor(left cli.LeftRun, version string) *server {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.servers[left.Setting].usable() {
		return nil
	}
	h := &server{provider: p, setting: left.Setting, users: 1, ready: make(chan struct{}), left: &left, version: version}
	p.servers[left.Setting] = h
	return h
}

// takeOver attaches at the end of what the process said, and sees to it that nothing goes on in it.
func (p *Provider) takeOver(ctx context.Context, h *server) error {
	if now := p.version(ctx); now != h.version {
		return cli.Failf(cli.UnknownFailure, Agent, "it is version %s, and %q is installed", h.version, now)
	}
	process, err := p.opts.Launcher.Attach(ctx, h.left.Run, h.left.OutputEnd)
	if err != nil {
		return cli.StartFailure(Agent, err)
	}
	p.connect(h, process, h.left.OutputEnd, h.left)
	h.peer.Listen()
	err = h.unloadAll(ctx)
	if err == nil {
		err = p.sweep(ctx, threadVar+"="+string(h.left.Run)+"-")
	}
	if err != nil {
		h.detach()
	}
	return err
}

// unloadAll has Codex forget the threads that it has loaded. It is an error if one of them is at work.
func (h *server) unloadAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, helloWait)
	defer cancel()
	threads, err := h.loaded(ctx)
	if err != nil {
		return err
	}
	for _, id := range threads {
		if err := h.unloadThread(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func (h *server) unloadThread(ctx context.Context, id cli.AgentSessionID) error {
	thread := map[string]any{"threadId": id}
	var reply struct {
		Thread struct {
			Status struct {
				Type string `json:"type"`
			} `json:"status"`
		} `json:"thread"`
	}
	if err := h.peer.Call(ctx, "thread/read", thread, &reply); notRefused(err) != nil {
		return err
	}
	if status := reply.Thread.Status.Type; status == "active" {
		return cli.Failf(cli.UnknownFailure, Agent, "its thread %s is at work", id)
	}
	return notRefused(h.peer.Call(ctx, "thread/unsubscribe", thread, nil))
}

// maxPages is more pages of loaded threads than any process has.
const maxPages = 100

// loaded are the threads that Codex holds in memory.
func (h *server) loaded(ctx context.Context) (threads []cli.AgentSessionID, err error) {
	params := map[string]any{}
	for range maxPages {
		var page struct {
			Data []cli.AgentSessionID `json:"data"`
			Next *string              `json:"nextCursor"`
		}
		if err := h.peer.Call(ctx, "thread/loaded/list", params, &page); err != nil {
			return nil, err
		}
		threads = append(threads, page.Data...)
		if page.Next == nil {
			return threads, nil
		}
		params["cursor"] = *page.Next
	}
	return nil, cli.Failf(cli.BadOutput, Agent, "its list of threads has no end")
}
