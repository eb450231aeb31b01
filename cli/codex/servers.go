package codex

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
)

// settingOf returns the command of a process for req, and a digest of the command. Requests with the same digest share
// a process. The digest does not cover the chat and the tool servers, because they are parameters of a thread.
func (p *Provider) settingOf(req cli.Request) (setting string, command cli.Command) {
	req.ChatID, req.Servers = 0, nil
	command = cli.Command{
		Path: p.opts.Path,
		Args: slices.Concat([]string{"app-server", "-c", "analytics.enabled=false"}, toolFlags(req), req.ExtraArgs),
		Env:  p.env(req),
	}
	setting = cli.Digest(command.Path, command.Args, command.Env)
	command.For = cli.Purpose{Agent: Agent, Mode: cli.Live, Setting: setting}
	return setting, command
}

// inquire calls f with a connection to an app server. If no app server is running, inquire starts one, and ends it
// after f has returned. ctx also limits the start.
func (p *Provider) inquire(ctx context.Context, f func(*rpc.Peer) error) error {
	setting, command := p.settingOf(cli.Request{})
	h, ok := p.pool.Running(setting)
	if !ok {
		command.For = cli.Purpose{Agent: Agent}
		var err error
		if h, err = p.pool.Private(ctx, command); err != nil {
			return err
		}
	}
	err := f(h.Peer())
	if err != nil {
		err = h.broken(err)
	}
	return errors.Join(err, h.Leave(context.WithoutCancel(ctx), shared.Unused))
}

// Shares implements cli.Sharer.
func (p *Provider) Shares(req cli.Request) int {
	setting, _ := p.settingOf(req)
	return p.pool.PID(setting)
}

var _ cli.Sharer = (*Provider)(nil)

// settings are values of the user's Codex configuration that apply if a request does not set them.
type settings struct {
	Model   string `json:"model"`
	Effort  string `json:"model_reasoning_effort"`
	Sandbox struct {
		Network     bool     `json:"network_access"`
		Roots       []string `json:"writable_roots"`
		WithoutTmp  bool     `json:"exclude_slash_tmp"`
		WithoutTemp bool     `json:"exclude_tmpdir_env_var"`
	} `json:"sandbox_workspace_write"`
}

// configured returns the settings in the user's Codex configuration. It queries them once for each process.
func (h *server) configured(ctx context.Context) (settings, error) {
	h.mu.Lock()
	known := h.defaults
	h.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	var reply struct {
		Config settings `json:"config"`
	}
	if err := h.Peer().Call(ctx, "config/read", nil, &reply); err != nil {
		var refused *rpc.Error
		if !errors.As(err, &refused) { // an older version of Codex rejects the request; the settings then stay empty
			return settings{}, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.defaults = &reply.Config
	return reply.Config, nil
}

func jsonOf(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}
