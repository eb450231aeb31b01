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

var _ cli.Sharer = (*Provider)(nil)
