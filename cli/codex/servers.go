package codex

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
)

// settingOf is a digest of what binds a process: two requests of the same share one. The chat is not in it, which
// each thread gets as a parameter.
func (p *Provider) settingOf(req cli.Request) (setting string, command cli.Command) {
	req.ChatID = 0
	command = cli.Command{
		Path: p.opts.Path,
		Args: append([]string{"app-server", "-c", "analytics.enabled=false"}, req.ExtraArgs...),
		Env:  p.env(req),
	}
	sum := sha256.New()
	for _, part := range slices.Concat([]string{command.Path}, command.Args, []string{""}, command.Env) {
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	setting = hex.EncodeToString(sum.Sum(nil)[:8])
	command.For = cli.Purpose{Agent: Agent, Mode: cli.Live, Setting: setting}
	return setting, command
}

// acquire gives the server that req fits, started if there is none. Who gets it releases it.
func (p *Provider) acquire(ctx context.Context, req cli.Request) (*server, error) {
	setting, command := p.settingOf(req)
	for {
		h, mine := p.reserve(setting)
		if mine {
			h.err = p.startServer(ctx, h, command)
			if h.err != nil {
				p.abandon(h)
			}
			close(h.ready)
			return h, h.err
		}
		select {
		case <-h.ready:
		case <-ctx.Done():
			var err error
			if p.leave(h) && isClosed(h.ready) && h.err == nil { // whoever had it started has left before
				err = p.endServer(ctx, h)
			}
			return nil, errors.Join(context.Cause(ctx), err)
		}
		if h.err == nil && h.alive() {
			return h, nil
		}
		p.leave(h)
		if h.err != nil && !errors.Is(h.err, errGivenUp) {
			return nil, h.err
		}
	}
}

// reserve counts in one more user of the server for setting, which is made if there is none that lives.
func (p *Provider) reserve(setting string) (h *server, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h = p.servers[setting]
	if h.usable() {
		h.users++
		return h, false
	}
	h = &server{provider: p, setting: setting, users: 1, ready: make(chan struct{})}
	p.servers[setting] = h
	return h, true
}

// usable says whether a server lives, or is on the way to; nil does not. The provider's mu is held.
func (h *server) usable() bool {
	return h != nil && !(isClosed(h.ready) && h.err == nil && !h.alive())
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// abandon takes a server that could not be started out of the table.
func (p *Provider) abandon(h *server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.servers[h.setting] == h {
		delete(p.servers, h.setting)
	}
}

// leave counts a user out, and says whether it was the last one.
func (p *Provider) leave(h *server) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.users--
	if h.users > 0 {
		return false
	}
	if p.servers[h.setting] == h {
		delete(p.servers, h.setting)
	}
	if h.left != nil && p.attached[h.left.Run] == h {
		delete(p.attached, h.left.Run)
	}
	return true
}

// errGivenUp says that who started a server was cancelled: another one may try.
var errGivenUp = errors.New("the start was given up")

// startServer starts the process and shakes hands.
func (p *Provider) startServer(ctx context.Context, h *server, command cli.Command) error {
	process, err := p.opts.Launcher.Start(ctx, command)
	if err != nil {
		return cli.StartFailure(Agent, err)
	}
	p.connect(h, process, 0, nil)
	h.peer.Listen()
	hello, cancel := context.WithTimeout(ctx, helloWait)
	defer cancel()
	err = h.shakeHands(hello)
	if err == nil {
		return nil
	}
	given := ctx.Err() != nil
	killErr := p.endServer(ctx, h)
	if given {
		return errors.Join(errGivenUp, err, killErr)
	}
	f := h.broken(err)
	if errors.Is(err, context.DeadlineExceeded) { // it was ended for that
		f = &cli.Failure{Kind: cli.BadOutput, Agent: Agent, Reason: "its app server does not answer", Cause: err}
	}
	f.Cause = errors.Join(f.Cause, killErr)
	return f
}

// helloWait is how long an app server may take from its start to its first answer, on a small box that is busy.
const helloWait = time.Minute

// broken is the Failure for a call that failed: that of the process if it is gone.
func (h *server) broken(err error) *cli.Failure {
	if errors.Is(err, rpc.ErrEnded) || isClosed(h.gone) {
		<-h.gone // soon: the process is being ended
		f := *h.failure
		return &f
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &cli.Failure{Kind: cli.BadOutput, Agent: Agent, Reason: "its app server does not answer", Cause: err}
	}
	var refused *rpc.Error
	if errors.As(err, &refused) {
		kind := kindOf(refused.Message)
		if kind == cli.UnknownFailure && (refused.Code == rpc.CodeNoMethod || refused.Code == rpc.CodeInvalidRequest) {
			kind = cli.BadOutput // a version that does not know what ductor asks: one-shot may do
		}
		return &cli.Failure{Kind: kind, Agent: Agent, Reason: reasonOf(refused.Message), Detail: cli.Shorten(refused.Message, 2000), Cause: err}
	}
	return cli.AsFailure(Agent, err)
}

func (h *server) shakeHands(ctx context.Context) error {
	hello := map[string]any{
		"clientInfo":   map[string]string{"name": "ductor", "title": "ductor", "version": "1"},
		"capabilities": map[string]any{"experimentalApi": true},
	}
	var reply struct {
		UserAgent string `json:"userAgent"` // our name/its version (its system)
	}
	if err := h.peer.Call(ctx, "initialize", hello, &reply); err != nil {
		return err
	}
	_, agent, _ := strings.Cut(reply.UserAgent, "/")
	h.version, _, _ = strings.Cut(agent, " ")
	return h.peer.Notify("initialized", nil)
}

// settings are what Codex is configured to do where a request says nothing.
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

// configured asks for the settings, once.
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
	if err := h.peer.Call(ctx, "config/read", nil, &reply); err != nil {
		var refused *rpc.Error
		if !errors.As(err, &refused) { // a version that does not tell has Codex's own defaults
			return settings{}, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.defaults = &reply.Config
	return reply.Config, nil
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func jsonOf(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}
