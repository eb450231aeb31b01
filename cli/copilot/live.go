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
	"ductor/cli/turn"
)

// destroyWait is how long a process may take to close a session.
const destroyWait = 300 * time.Millisecond

// live is a session in a process that it shares with others. If the process is gone, the next turn continues the
// session in another.
//
// Turn and Fits are for one goroutine at a time, as cli.Session requires; everything else is safe at any time.
type live struct {
	provider *Provider
	setting  setting

	mu     sync.Mutex
	server *server // nil before the first start
	opened
	state   sessionState
	turn    *liveTurn // the running turn
	adopted *adopted
}

// opened is a session that is ready in a process.
type opened struct {
	id      cli.AgentSessionID
	model   cli.ModelID // the current model, if known
	applied applied
}

// applied has the session's settings that the process received last.
type applied struct {
	model      cli.ModelID
	effort     cli.Effort
	permission cli.PermissionMode
}

// sessionState is the state of a session's last turn.
type sessionState string

const (
	unused sessionState = "unused" // there was none
	idle   sessionState = "idle"
	cut    sessionState = "cut" // it is running, or was interrupted
	closed sessionState = "closed"
)

var (
	_ cli.Session          = (*live)(nil)
	_ cli.Decider          = (*live)(nil)
	_ cli.Steerer          = (*live)(nil)
	_ cli.PermissionSetter = (*live)(nil)
)

func newLive(p *Provider, req cli.Request) *live {
	return &live{provider: p, setting: p.settingOf(req), state: unused}
}

// open creates or resumes the session in a process. If that process is abandoned meanwhile, open uses another.
func (s *live) open(ctx context.Context, req cli.Request) error {
	if _, err := permissionOf(req.Permission); err != nil {
		return cli.Failf(cli.Refused, Agent, "%v", err)
	}
	for {
		key, command := s.provider.serverFor(req)
		h, err := s.provider.pool.Join(ctx, key, command)
		if err != nil {
			return err
		}
		o, err := s.enter(ctx, h, req)
		entered := err == nil
		if entered && s.hold(h, o) {
			return nil
		}
		if entered {
			err = cli.Failf(cli.UnknownFailure, Agent, "the session is closed")
		}
		again := !entered && h.GivenUp() && ctx.Err() == nil
		err = errors.Join(cli.AsFailure(Agent, err), h.Leave(context.WithoutCancel(ctx), shared.Closed))
		if !again {
			return err
		}
	}
}

// hold assigns the session the process in which it was opened. It returns false if the session was closed before.
func (s *live) hold(h *server, o opened) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == closed {
		return false
	}
	s.server, s.opened = h, o
	return true
}

// ready returns a process with the session in it, adjusted to req. It counts the turn there, so the process does not
// end before the turn. If the process is abandoned meanwhile, ready uses another: no prompt was sent yet.
func (s *live) ready(ctx context.Context, req cli.Request) (*server, error) {
	for opened := false; ; opened = true {
		s.mu.Lock()
		h, id, resumes := s.server, s.id, s.state != unused
		s.mu.Unlock()
		if h != nil && (opened || h.Alive()) {
			err := s.adjust(ctx, h, req)
			if err == nil && h.TurnStarted() {
				return h, nil
			}
			if err == nil {
				h.TurnEnded(ctx, shared.EndOver)
			} else if !h.GivenUp() {
				return nil, err
			}
		}
		if h != nil && s.removeServer(h) {
			if err := h.Leave(ctx, shared.Closed); err != nil {
				return nil, err
			}
		}
		if id != "" && resumes {
			req.Resume = id
		}
		if err := s.open(ctx, req); err != nil {
			return nil, err
		}
	}
}

// removeServer removes the process from the session. It returns false if another caller did; that one releases the
// process.
func (s *live) removeServer(h *server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	had := s.server == h
	if had {
		s.server = nil
	}
	return had
}

// begin makes the turn available for Steer and Decide.
func (s *live) begin(t *liveTurn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn = t
	if s.state != closed {
		s.state = cut
	}
}

// end records how the turn ended. Its later events are handled like events between turns. Events of a detached turn are
// for the process that resumes it.
func (s *live) end(t *liveTurn, how turn.End) {
	if how != turn.EndDetached {
		t.server.turns.Remove(t.p.session.AgentSessionID, t.in)
		for _, it := range append(t.loop.Rest(), t.in.Close()...) {
			t.server.betweenTurns(t.p.session.AgentSessionID, it.event)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn, s.model = nil, t.p.session.Model
	if s.state == cut && t.p.phase == ended {
		s.state = idle
	}
}

// running returns the running turn, or nil.
func (s *live) running() *liveTurn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn
}

// takeAdopted returns the adopted turn, once.
func (s *live) takeAdopted() *adopted {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.adopted
	s.adopted = nil
	return a
}

func (s *live) enter(ctx context.Context, h *server, req cli.Request) (opened, error) {
	method, id := "session.create", cli.AgentSessionID(uuid.NewString())
	if req.Resume != "" {
		method, id = "session.resume", req.Resume
	}
	params := s.provider.sessionParams(req, id)
	o := opened{id: id}
	var reply struct {
		State struct {
			Model string `json:"modelId"`
		} `json:"modelState"`
	}
	if err := h.call(ctx, method, params, &reply); err != nil {
		return opened{}, callFailure(err)
	}
	o.model = cli.ModelID(reply.State.Model)
	o.applied = applied{model: req.Model, effort: req.Effort}
	if err := s.allow(ctx, h, id, req); err != nil {
		return opened{}, callFailure(err)
	}
	o.applied.permission = req.Permission
	return o, nil
}

// allow sends the permission mode and the rules of a session to the process. A resumed session remembers earlier ones,
// so everything is sent.
func (s *live) allow(ctx context.Context, h *server, id cli.AgentSessionID, req cli.Request) error {
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

// adjust sends the changed settings of this turn to the process.
func (s *live) adjust(ctx context.Context, h *server, req cli.Request) error {
	s.mu.Lock()
	id, was := s.id, s.applied
	s.mu.Unlock()
	want := applied{model: req.Model, effort: req.Effort, permission: req.Permission}
	if want == was {
		return nil
	}
	if want.permission != was.permission {
		if err := s.allow(ctx, h, id, req); err != nil {
			return callFailure(err)
		}
	}
	if want.model != was.model || want.effort != was.effort {
		if err := s.switchModel(ctx, h, id, req); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.applied = want
	s.mu.Unlock()
	return nil
}

func (s *live) switchModel(ctx context.Context, h *server, id cli.AgentSessionID, req cli.Request) error {
	params := map[string]any{"sessionId": id, "modelId": modelOf(req, s.provider.environment(req))}
	if req.Effort != "" {
		params["reasoningEffort"] = req.Effort
	}
	var reply struct {
		Model   string `json:"modelId"`
		Status  string `json:"status"`
		Message string `json:"message"`
	}
	err := h.call(ctx, "session.model.switchTo", params, &reply)
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

// SetPermission implements cli.PermissionSetter. Copilot uses the mode from its next tool on. Whether a turn accepts
// the judgement of Copilot is fixed at its start, so a change to a mode that does is rejected.
func (s *live) SetPermission(ctx context.Context, mode cli.PermissionMode) error {
	p, err := permissionOf(mode)
	if err != nil || p.judged {
		return fmt.Errorf("change to the mode %q: %w", mode, errors.ErrUnsupported)
	}
	t := s.running()
	if t == nil {
		return cli.ErrNoTurn
	}
	if err := s.allow(ctx, t.server, t.p.session.AgentSessionID, cli.Request{Permission: mode}); err != nil {
		return callFailure(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied.permission = mode
	return nil
}

// Fits reports whether the session can be adjusted to req. A chosen model cannot be unset.
func (s *live) Fits(req cli.Request) bool {
	want := s.provider.settingOf(req)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == closed || s.setting.digest != want.digest {
		return false
	}
	if s.applied.model != "" && modelOf(req, s.provider.environment(req)) == "" || s.applied.effort != "" && req.Effort == "" {
		return false
	}
	if s.state == unused {
		return want.begin == s.setting.begin
	}
	return req.Resume == s.id
}

// Info describes the running process.
func (s *live) Info() cli.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := cli.SessionInfo{Agent: Agent, Mode: cli.Live, AgentSessionID: s.id}
	if s.server != nil && s.state != closed {
		info.PID, info.Alive = s.server.PID(), s.server.Alive()
	}
	return info
}

// Close closes the session. The process ends with its last session, with everything it started.
func (s *live) Close(ctx context.Context) error {
	h, was := s.shut()
	if h == nil {
		return nil
	}
	if h.PID() != 0 && was != cut {
		wait, cancel := context.WithTimeout(ctx, destroyWait)
		// only for politeness
		_ = h.call(wait, "session.destroy", map[string]any{"sessionId": s.Info().AgentSessionID}, nil)
		cancel()
	}
	if err := h.Leave(ctx, shared.Closed); err != nil {
		return fmt.Errorf("close copilot: %w", err)
	}
	return nil
}

// Detach leaves the session, whose work continues.
func (s *live) Detach() {
	if h, _ := s.shut(); h != nil {
		_ = h.Leave(context.Background(), shared.Detaches) // detaching never fails
	}
}

// shut prevents further turns and removes the process from the session, once.
func (s *live) shut() (h *server, was sessionState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, was = s.server, s.state
	s.server, s.state = nil, closed
	return h, was
}

// callFailure returns the failure for an error that the process answered with.
func callFailure(err error) error {
	var refused *rpc.Error
	if !errors.As(err, &refused) {
		return err
	}
	reason := callReason(refused)
	return &cli.Failure{Kind: textKind(reason), Agent: Agent, Reason: reason, Cause: err}
}

// callReason returns the sentence in an error answer, without the server's prefix.
func callReason(e *rpc.Error) string {
	_, reason, ok := strings.Cut(e.Message, "failed with message: ")
	if !ok {
		reason = e.Message
	}
	return cli.ShortLine(reason)
}
