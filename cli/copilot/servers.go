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
	"ductor/cli/rpc"
)

// servers are the live processes of a Provider, one for each environment.
type servers struct {
	mu   sync.Mutex
	live map[string]*server
	turn map[string]chan struct{} // per key: held by who starts a process
	left []*server                // those of the previous ductor process
}

// serverKeyPrefix begins the keys of SDK servers, by which the next process tells them from processes that speak ACP.
const serverKeyPrefix = "sdk-"

// serverKey is what makes two sessions share a process: its command line and its environment. It is a digest, so
// that it tells no secret.
func serverKey(path string, args, env []string) string {
	sum := sha256.Sum256([]byte(path + "\x00" + strings.Join(args, "\x00") + "\x01" + strings.Join(env, "\x00")))
	return serverKeyPrefix + hex.EncodeToString(sum[:12])
}

// acquire finds the process for req or starts it. Who gets one releases it.
func (p *Provider) acquire(ctx context.Context, req cli.Request) (*server, error) {
	args, env := serverArgs(req), p.environment(req)
	key := serverKey(p.opts.Path, args, env)
	unlock, err := p.servers.lock(ctx, key)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if h := p.servers.find(key); h != nil {
		return h, nil
	}
	process, err := p.opts.Launcher.Start(ctx, cli.Command{
		Path: p.opts.Path, Args: args, Env: env, For: cli.Purpose{Agent: Agent, Mode: cli.Live, Setting: key},
	})
	if err != nil {
		return nil, cli.StartFailure(Agent, err)
	}
	h := newServer(key, process, p.opts.Grace, rpc.Options{})
	h.peer.Listen()
	if _, err := h.connect(ctx); err != nil {
		_ = h.stop(context.WithoutCancel(ctx), 0) // why it did not begin is the better error
		return nil, err
	}
	p.servers.add(h)
	return h, nil
}

// connect shakes hands, which may be done again, and gives the version of the program. One without the protocol is
// an error.
func (h *server) connect(ctx context.Context) (version string, err error) {
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
func (hs *servers) lock(ctx context.Context, key string) (unlock func(), err error) {
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
func (hs *servers) find(key string) *server {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.live[key]
	if h == nil || !h.alive() {
		return nil
	}
	h.users++
	return h
}

// add enters a process, held for the caller. No session joins one that already runs leftovers of an aborted turn.
func (hs *servers) add(h *server) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h.users++
	if h.leftovers {
		return
	}
	if had := hs.live[h.key]; had == nil || !had.alive() {
		hs.live[h.key] = h
	}
}

// release gives a process back; last says that no session has it any more, detached that a session detached from it.
func (hs *servers) release(h *server, letGo bool) (last, detached bool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h.users--
	if letGo && len(h.awaited) > 0 { // no request resumes them in this process
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
	hs.left = slices.DeleteFunc(hs.left, func(o *server) bool { return o == h })
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
	h := newServer("", process, 0, rpc.Options{})
	h.peer.Listen()
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
