package codex

import (
	"context"
	"encoding/json"

	"ductor/cli"
)

var _ cli.Keeper = (*Provider)(nil)

// Keep takes over an app server in which no turn runs. Its connection was opened by the previous process and stays as it
// is, for Codex takes no second greeting. What its threads' tools left running is ended: it could not be told any more
// whose it is.
func (p *Provider) Keep(ctx context.Context, left cli.LeftRun) (cli.Kept, error) {
	raw, idle := left.Rested()
	var note idleNote
	if !idle || json.Unmarshal([]byte(raw), &note) != nil || note.Version == "" {
		return cli.Kept{}, cli.Failf(cli.UnknownFailure, Agent, "it is unknown what runs in it")
	}
	return p.pool.Keep(ctx, left, func(ctx context.Context, h *server) error {
		if h.version = p.version(ctx); h.version != note.Version {
			return cli.Failf(cli.UnknownFailure, Agent, "it is version %s, and %q is installed", note.Version, h.version)
		}
		if err := h.unloadAll(ctx); err != nil {
			return err
		}
		return p.sweep(ctx, threadVar+"="+string(left.Run)+"-")
	})
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
	if err := h.Peer().Call(ctx, "thread/read", thread, &reply); notRefused(err) != nil {
		return err
	}
	if status := reply.Thread.Status.Type; status == "active" {
		return cli.Failf(cli.UnknownFailure, Agent, "its thread %s is at work", id)
	}
	return notRefused(h.Peer().Call(ctx, "thread/unsubscribe", thread, nil))
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
		if err := h.Peer().Call(ctx, "thread/loaded/list", params, &page); err != nil {
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
