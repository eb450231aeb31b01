package copilot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"ductor/cli"
)

// serverKeyPrefix begins the keys of SDK servers.
const serverKeyPrefix = "sdk-"

// serverKey is what makes two sessions share a process: its command line and its environment. It is a digest, so
// that it tells no secret.
func serverKey(path string, args, env []string) string {
	sum := sha256.Sum256([]byte(path + "\x00" + strings.Join(args, "\x00") + "\x01" + strings.Join(env, "\x00")))
	return serverKeyPrefix + hex.EncodeToString(sum[:12])
}

// serverFor is the command that starts a process for req, and its key.
func (p *Provider) serverFor(req cli.Request) (key string, command cli.Command) {
	args, env := serverArgs(req), p.environment(req)
	key = serverKey(p.opts.Path, args, env)
	return key, cli.Command{Path: p.opts.Path, Args: args, Env: env, For: cli.Purpose{Agent: Agent, Mode: cli.Live, Setting: key}}
}

// inquire puts one question to a process of its own, and ends it.
func (p *Provider) inquire(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	_, command := p.serverFor(cli.Request{})
	command.For = cli.Purpose{}
	h, err := p.pool.Private(ctx, command)
	if err != nil {
		return err
	}
	err = h.call(ctx, method, params, result)
	if stopErr := h.Stop(context.WithoutCancel(ctx), 0); err == nil {
		err = stopErr
	}
	return err
}

// probeWait is how long Copilot may take to answer a question about itself, its start included.
const probeWait = 15 * time.Second

// Shares is the server that a session for req would be put into; see cli.Sharer.
func (p *Provider) Shares(req cli.Request) int {
	key, _ := p.serverFor(req)
	return p.pool.PID(key)
}

var (
	_ cli.Sharer = (*Provider)(nil)
	_ cli.Keeper = (*Provider)(nil)
)

// Keep takes over a server in which no turn runs; see cli.Keeper. Sessions that are loaded in it stay as they are until
// they are resumed.
func (p *Provider) Keep(ctx context.Context, left cli.LeftRun) (cli.Kept, error) {
	if _, idle := left.Rested(); !idle || !strings.HasPrefix(left.Setting, serverKeyPrefix) {
		return cli.Kept{}, cli.Failf(cli.UnknownFailure, Agent, "it is unknown what runs in it")
	}
	return p.pool.Keep(ctx, left, p.same)
}

// same is an error unless the process answers and is of the version that is installed.
func (p *Provider) same(ctx context.Context, h *server) error {
	was, err := h.connect(ctx)
	if err != nil {
		return err
	}
	if now := p.version(ctx); now != was {
		return cli.Failf(cli.UnknownFailure, Agent, "it is version %s, and %q is installed", was, now)
	}
	return nil
}
