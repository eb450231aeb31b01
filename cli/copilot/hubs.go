package copilot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"ductor/cli"
)

// hubs are the live processes of a Provider, one for each environment.
type hubs struct {
	mu   sync.Mutex
	live map[string]*hub
	turn map[string]chan struct{} // per key: held by who starts a process
	left []*hub                   // those of an earlier ductor
}

// hubKeyMark begins the keys of SDK servers, by which a later ductor tells them from processes that speak ACP.
const hubKeyMark = "sdk-"

// hubKey is what makes two sessions share a process: its command line and its environment. It is a digest, so
// that it tells no secret.
func hubKey(path string, args, env []string) string {
	sum := sha256.Sum256([]byte(path + "\x00" + strings.Join(args, "\x00") + "\x01" + strings.Join(env, "\x00")))
	return hubKeyMark + hex.EncodeToString(sum[:12])
}

// acquire finds the process for req or starts it. Who gets one releases it.
func (p *Provider) acquire(ctx context.Context, req cli.Request) (*hub, error) {
	args, env := serverArgs(req), p.environment(req)
	key := hubKey(p.opts.Path, args, env)
	unlock, err := p.hubs.lock(ctx, key)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if h := p.hubs.find(key); h != nil {
		return h, nil
	}
	process, err := p.opts.Launcher.Start(ctx, cli.Command{
		Path: p.opts.Path, Args: args, Env: env, For: cli.Purpose{Agent: Agent, Mode: cli.Live, Setting: key},
	})
	if err != nil {
		return nil, cli.StartFailure(Agent, err)
	}
	h := newHub(key, process, p.opts.Grace, 0, map[cli.AgentSessionID]*slot{}, nil)
	if _, err := h.connect(ctx); err != nil {
		_ = h.stop(context.WithoutCancel(ctx), 0) // why it did not begin is the better error
		return nil, err
	}
	p.hubs.add(h)
	return h, nil
}

// connect shakes hands, which may be done again, and gives the version of the program. One without the protocol is
// an error.
func (h *hub) connect(ctx context.Context) (version string, err error) {
	var hello struct {
		Protocol int    `json:"protocolVersion"`
		Version  string `json:"version"`
	}
	if err := h.call(ctx, "connect", struct{}{}, &hello); err != nil {
		return "", refusal(err)
	}
	if hello.Protocol != protocolWant {
		return "", fmt.Errorf("%w: %w", errNoServer, cli.Failf(cli.BadOutput, Agent,
			"version %s speaks protocol %d, not %d: update it, or run it one-shot", hello.Version, hello.Protocol, protocolWant))
	}
	return hello.Version, nil
}

// lock makes the caller the only one to start a process of this key.
func (hs *hubs) lock(ctx context.Context, key string) (unlock func(), err error) {
	hs.mu.Lock()
	turn := hs.turn[key]
	if turn == nil {
		turn = make(chan struct{}, 1)
		hs.turn[key] = turn
	}
	hs.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the start of copilot: %w", context.Cause(ctx))
	}
}

// find is the process of this key that can take another session; it is held for the caller.
func (hs *hubs) find(key string) *hub {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.live[key]
	if h == nil || !h.alive() {
		return nil
	}
	h.users++
	return h
}

// add enters a process, held for the caller. Nobody is to join one that is spoiled already.
func (hs *hubs) add(h *hub) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h.users++
	if h.spoiled {
		return
	}
	if had := hs.live[h.key]; had == nil || !had.alive() {
		hs.live[h.key] = h
	}
}

// release gives a process back; last says that nobody has it any more, and whether somebody let go of it.
func (hs *hubs) release(h *hub, letGo bool) (last, detached bool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h.users--
	if letGo && len(h.awaited) > 0 { // nobody asks for them any more before the next ductor
		h.awaited = nil
		h.users--
	}
	h.detached = h.detached || letGo
	if h.users > 0 {
		return false, h.detached
	}
	if hs.live[h.key] == h {
		delete(hs.live, h.key)
	}
	hs.left = slices.DeleteFunc(hs.left, func(o *hub) bool { return o == h })
	return true, h.detached
}

// ask puts one question to a process of its own, and ends it.
func (p *Provider) ask(ctx context.Context, method string, params, result any) (err error) {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	process, err := p.opts.Launcher.Start(ctx, cli.Command{
		Path: p.opts.Path, Args: serverArgs(cli.Request{}), Env: p.environment(cli.Request{}),
	})
	if err != nil {
		return cli.StartFailure(Agent, err)
	}
	h := newHub("", process, 0, 0, map[cli.AgentSessionID]*slot{}, nil)
	defer func() {
		if stopErr := h.stop(context.WithoutCancel(ctx), 0); err == nil {
			err = stopErr
		}
	}()
	if _, err := h.connect(ctx); err != nil {
		return err
	}
	return h.call(ctx, method, params, result)
}

// probeWait is how long Copilot may take to answer a question about itself, its start included.
const probeWait = 15 * time.Second
