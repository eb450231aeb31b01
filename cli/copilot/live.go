package copilot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
)

// destroyWait is the maximum time for a process to close a session.
const destroyWait = 300 * time.Millisecond

// live implements cli.Session.
type live struct{ *shared.Session[news] }

var _ interface {
	cli.Session
	cli.Decider
	cli.Steerer
	cli.PermissionSetter
	cli.Commander
} = live{}

// session is one of Copilot's sessions, in a process that other sessions may share. It implements shared.AgentSession.
type session struct {
	server  *server
	live    *shared.Session[news]
	setting string // result of settingOf
	id      cli.AgentSessionID

	mu      sync.Mutex
	model   cli.ModelID // the current model; empty if unknown
	applied applied
}

// applied contains the settings that ductor last sent for the session.
type applied struct {
	model      cli.ModelID
	effort     cli.Effort
	permission cli.PermissionMode
}

func appliedOf(req cli.Request) applied { return applied{req.Model, req.Effort, req.Permission} }

func (p *Provider) join(ctx context.Context, s *shared.Session[news], req cli.Request) (
	shared.AgentSession[news], error) {
	if _, err := permissionOf(req.Permission); err != nil {
		return nil, cli.Failf(cli.Refused, Agent, "%v", err)
	}
	key, command := p.serverFor(req)
	h, err := p.pool.Join(ctx, key, command)
	if err != nil {
		return nil, err
	}
	return &session{server: h, live: s, setting: p.settingOf(req)}, nil
}

func (s *session) provider() *Provider { return s.server.provider }

func (s *session) ID() cli.AgentSessionID { return s.id }

func (s *session) Host() *shared.Process { return s.server.Process }

func (s *session) Stop(ctx context.Context, grace time.Duration) error {
	return s.server.StopAlone(ctx, grace)
}

func (s *session) Failure(err error) *cli.Failure { return cli.AsFailure(Agent, callFailure(err)) }

func (s *session) Open(ctx context.Context, req cli.Request) error {
	method := "session.create"
	if s.id = cli.AgentSessionID(uuid.NewString()); req.Resume != "" {
		method, s.id = "session.resume", req.Resume
	}
	var reply struct {
		State struct {
			Model string `json:"modelId"`
		} `json:"modelState"`
	}
	if err := s.server.call(ctx, method, s.provider().sessionParams(req, s.id), &reply); err != nil {
		return err
	}
	s.model, s.applied = cli.ModelID(reply.State.Model), appliedOf(req)
	s.server.Set(s.id, s.live)
	return s.allow(ctx, req)
}

// allow sends the permission mode and all permission rules of a session. Without them, a resumed session would use its
// earlier rules.
func (s *session) allow(ctx context.Context, req cli.Request) error {
	h, id := s.server, s.id
	p, err := permissionOf(req.Permission)
	if err != nil {
		return cli.Failf(cli.Refused, Agent, "%v", err)
	}
	if err := h.call(ctx, "session.mode.set", map[string]any{"sessionId": id, "mode": p.mode}, nil); err != nil {
		return err
	}
	if err := h.call(ctx, "session.permissions.setMode", map[string]any{"sessionId": id, "mode": p.approval}, nil); err != nil {
		return err
	}
	if req.Resume == "" && len(req.AllowedTools)+len(req.Tools.Denied) == 0 {
		return nil
	}
	return h.call(ctx, "session.permissions.configure", map[string]any{"sessionId": id, "rules": map[string]any{
		"approved": rules(req.AllowedTools), "denied": rules(req.Tools.Denied),
	}}, nil)
}

// adjust sends all settings that have changed since the previous turn.
func (s *session) adjust(ctx context.Context, req cli.Request) error {
	s.mu.Lock()
	was := s.applied
	s.mu.Unlock()
	want := appliedOf(req)
	if want.permission != was.permission {
		if err := s.allow(ctx, req); err != nil {
			return err
		}
	}
	if want.model != was.model || want.effort != was.effort {
		if err := s.switchModel(ctx, req); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied = want
	return nil
}

func (s *session) switchModel(ctx context.Context, req cli.Request) error {
	params := map[string]any{"sessionId": s.id, "modelId": modelOf(req, s.provider().environment(req))}
	if req.Effort != "" {
		params["reasoningEffort"] = req.Effort
	}
	var reply struct {
		Model   string `json:"modelId"`
		Status  string `json:"status"`
		Message string `json:"message"`
	}
	err := s.server.call(ctx, "session.model.switchTo", params, &reply)
	var refused *rpc.Error
	switch {
	case errors.As(err, &refused):
		return cli.Failf(cli.UnknownModel, Agent, "%s", callReason(refused))
	case err != nil:
		return err
	case reply.Status == "confirmation_required":
		return cli.Failf(cli.UnknownModel, Agent, "the session is too long for this model")
	}
	s.mu.Lock()
	s.model = cli.ModelID(reply.Model)
	s.mu.Unlock()
	return nil
}

// SetPermission implements cli.PermissionSetter. Copilot applies the mode to its next tool call. SetPermission rejects
// modes in which Copilot's own risk assessment decides (permission.judged), because only the start of a turn can select
// such a mode.
func (s live) SetPermission(ctx context.Context, mode cli.PermissionMode) error {
	p, err := permissionOf(mode)
	if err != nil || p.judged {
		return fmt.Errorf("change to the mode %q: %w", mode, errors.ErrUnsupported)
	}
	t, ok := s.Running().(*liveTurn)
	if !ok {
		return cli.ErrNoTurn
	}
	if err := t.s.allow(ctx, cli.Request{Permission: mode}); err != nil {
		return callFailure(err)
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.s.applied.permission = mode
	return nil
}

// Fits implements shared.AgentSession. It also returns false if a user has chosen a model or an effort and req needs
// Copilot's default, because the session cannot return to the default.
func (s *session) Fits(req cli.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setting == s.provider().settingOf(req) && (s.applied.effort == "" || req.Effort != "") &&
		(s.applied.model == "" || modelOf(req, s.provider().environment(req)) != "")
}

// Goodbye implements shared.AgentSession. It asks the process to close an idle session, and ignores a failure.
func (s *session) Goodbye(ctx context.Context, was shared.Phase) (shared.Leaving, error) {
	s.server.Remove(s.id, s.live)
	if s.server.PID() != 0 && (was == shared.PhaseNew || was == shared.PhaseIdle) {
		ctx, cancel := context.WithTimeout(ctx, destroyWait)
		defer cancel()
		_ = s.server.call(ctx, "session.destroy", map[string]any{"sessionId": s.id}, nil)
	}
	return shared.Closed, nil
}

// callFailure converts an error response of the process to a failure. It returns other errors unchanged.
func callFailure(err error) error {
	var refused *rpc.Error
	if !errors.As(err, &refused) {
		return err
	}
	reason := callReason(refused)
	return &cli.Failure{Kind: textKind(reason), Agent: Agent, Reason: reason, Cause: err}
}

// callReason returns the message of an error response, without the prefix that the server adds.
func callReason(e *rpc.Error) string {
	_, reason, ok := strings.Cut(e.Message, "failed with message: ")
	if !ok {
		reason = e.Message
	}
	return cli.ShortLine(reason)
}
