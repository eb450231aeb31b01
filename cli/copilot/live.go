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

// destroyWait is how long a session that is closed may take to be put away by its process.
const destroyWait = 300 * time.Millisecond

// live is a session in a process that it shares with others. When the process is gone, the next turn goes on with
// the session in another.
//
// Turn and Fits are for one goroutine at a time, as cli.Session says; the rest is safe at any time.
type live struct {
	provider *Provider
	setting  setting

	mu     sync.Mutex
	server *server // nil before the first start
	opened
	state   sessionState
	turn    *liveTurn // that runs
	adopted *adopted
}

// opened is a session that is ready in a process.
type opened struct {
	id      cli.AgentSessionID
	model   cli.ModelID // that answers, as far as it is known
	applied applied
}

// applied is what the process was last told of the session.
type applied struct {
	model      cli.ModelID
	effort     cli.Effort
	permission cli.PermissionMode
}

// sessionState says what became of the last turn of a session.
type sessionState string

const (
	unused sessionState = "unused" // there was none
	idle   sessionState = "idle"
	cut    sessionState = "cut" // it runs, or was cut off
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

// open makes the session in a process, or resumes it there. If the process is given up during it, another takes its place.
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

// hold gives the session the process that it was opened in; false if it was closed before.
func (s *live) hold(h *server, o opened) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == closed {
		return false
	}
	s.server, s.opened = h, o
	return true
}

// ready gives a process with the session in it, adjusted to req, in which the turn is counted: it is not ended before the
// turn was. If the process is given up during it, another takes its place: no request was sent yet.
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
		if h != nil && s.part(h) {
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

// part takes the process from the session; false if somebody else did, who gives it back.
func (s *live) part(h *server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	had := s.server == h
	if had {
		s.server = nil
	}
	return had
}

// begin has the turn steered and decided from now on.
func (s *live) begin(t *liveTurn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn = t
	if s.state != closed {
		s.state = cut
	}
}

// end takes note how the turn ended. What came after its end goes where things between turns go. What comes of one that
// was detached is for the process that resumes it.
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

// running is the turn that runs; nil if there is none.
func (s *live) running() *liveTurn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn
}

// takeAdopted gives the turn that was adopted, once.
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

// allow tells the process the permission mode and the rules of a session. A session that is resumed
// remembers what it was told before, so that everything is said.
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

// adjust tells the process what is different in this turn.
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

// SetPermission has Copilot work in another mode from its next tool on; see cli.PermissionSetter. What a turn lets through
// by Copilot's own judgement is settled as it begins, so no mode that has that can be changed to.
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

// Fits says whether the session, as it is, can be adjusted to req. A model cannot be unchosen.
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

// Info says what is running.
func (s *live) Info() cli.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := cli.SessionInfo{Agent: Agent, Mode: cli.Live, AgentSessionID: s.id}
	if s.server != nil && s.state != closed {
		info.PID, info.Alive = s.server.PID(), s.server.Alive()
	}
	return info
}

// Close puts the session away. The process ends with its last session, with all it started.
func (s *live) Close(ctx context.Context) error {
	h, was := s.shut()
	if h == nil {
		return nil
	}
	if h.PID() != 0 && was != cut {
		wait, cancel := context.WithTimeout(ctx, destroyWait)
		_ = h.call(wait, "session.destroy", map[string]any{"sessionId": s.Info().AgentSessionID}, nil) // it is only the politer way
		cancel()
	}
	if err := h.Leave(ctx, shared.Closed); err != nil {
		return fmt.Errorf("close copilot: %w", err)
	}
	return nil
}

// Detach leaves the session, which continues with what it does.
func (s *live) Detach() {
	if h, _ := s.shut(); h != nil {
		_ = h.Leave(context.Background(), shared.Detaches) // detaching has no error
	}
}

// shut closes the session to turns and takes its process from it, once.
func (s *live) shut() (h *server, was sessionState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, was = s.server, s.state
	s.server, s.state = nil, closed
	return h, was
}

// callFailure says what an error that the process answered with means.
func callFailure(err error) error {
	var refused *rpc.Error
	if !errors.As(err, &refused) {
		return err
	}
	reason := callReason(refused)
	return &cli.Failure{Kind: textKind(reason), Agent: Agent, Reason: reason, Cause: err}
}

// callReason is the sentence in an error answer, without what the server puts before it.
func callReason(e *rpc.Error) string {
	_, reason, ok := strings.Cut(e.Message, "failed with message: ")
	if !ok {
		reason = e.Message
	}
	return cli.ShortLine(reason)
}
