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

// destroyWait is how long a session that is closed may take to be put away by its process.
const destroyWait = 300 * time.Millisecond

// live is a session in a process that it shares with others. When the process is gone, the next turn goes on with
// the session in another.
//
// Turn and Fits are for one goroutine at a time, as cli.Session says; the rest is safe at any time.
type live struct {
	provider *Provider
	setting  setting

	mu      sync.Mutex
	server  *server // nil before the first start
	id      cli.AgentSessionID
	model   cli.ModelID // that answers, as far as it is known
	applied applied
	turns   int
	turn    *liveTurn // that runs
	cut     bool      // the last turn was cut off
	closed  bool
	adopted *cli.Mark
	asked   bool // of the adopted turn: its prompt had reached the process
}

// applied is what the process was last told of the session.
type applied struct {
	model      cli.ModelID
	effort     cli.Effort
	permission cli.PermissionMode
}

var (
	_ cli.Session = (*live)(nil)
	_ cli.Decider = (*live)(nil)
	_ cli.Steerer = (*live)(nil)
)

func newLive(p *Provider, req cli.Request) *live {
	return &live{provider: p, setting: p.settingOf(req)}
}

// open makes the session in a process, or goes on with it there.
func (s *live) open(ctx context.Context, req cli.Request) error {
	if _, err := permissionOf(req.Permission); err != nil {
		return cli.Failf(cli.Refused, Agent, "%v", err)
	}
	h, opened, err := s.join(ctx, req)
	if err != nil {
		return err
	}
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.server, s.id, s.model, s.applied = h, opened.id, opened.model, opened.applied
	}
	s.mu.Unlock()
	if closed {
		_ = h.Leave(context.WithoutCancel(ctx), shared.Closed) // its end is not this session's any more
		return cli.Failf(cli.UnknownFailure, Agent, "the session is closed")
	}
	return nil
}

// join makes the session in a process that is there or is started. If the process is given up during it, another takes its place.
func (s *live) join(ctx context.Context, req cli.Request) (*server, opened, error) {
	for {
		key, command := s.provider.serverFor(req)
		h, err := s.provider.pool.Join(ctx, key, command)
		if err != nil {
			return nil, opened{}, err
		}
		o, err := s.enter(ctx, h, req)
		if err == nil {
			return h, o, nil
		}
		again := h.GivenUp() && ctx.Err() == nil
		err = errors.Join(cli.AsFailure(Agent, err), h.Leave(context.WithoutCancel(ctx), shared.Closed))
		if !again {
			return nil, opened{}, err
		}
	}
}

// ready gives a process with the session in it, adjusted to req, in which the turn is counted: it is not ended before the
// turn was. If the process is given up during it, another takes its place: no request was sent yet.
func (s *live) ready(ctx context.Context, req cli.Request) (*server, error) {
	for opened := false; ; opened = true {
		s.mu.Lock()
		h, id := s.server, s.id
		s.mu.Unlock()
		if h != nil && (opened || h.Alive()) {
			err := s.adjust(ctx, h, req)
			if err == nil {
				if h.TurnStarted() {
					return h, nil
				}
				h.TurnEnded(ctx, shared.EndOver)
			}
			if err != nil && !h.GivenUp() {
				return nil, err
			}
		}
		if h != nil && s.part(h) {
			if err := h.Leave(ctx, shared.Closed); err != nil {
				return nil, err
			}
		}
		if id != "" && s.hadTurns() {
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

func (s *live) hadTurns() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turns > 0
}

// opened is a session that is ready in a process.
type opened struct {
	id      cli.AgentSessionID
	model   cli.ModelID
	applied applied
}

func (s *live) enter(ctx context.Context, h *server, req cli.Request) (opened, error) {
	method, id := "session.create", req.NewSessionID
	if req.Resume != "" {
		method, id = "session.resume", req.Resume
	}
	if id == "" {
		id = cli.AgentSessionID(uuid.NewString())
	}
	params, err := s.provider.sessionParams(req, id)
	if err != nil {
		return opened{}, err
	}
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
	if len(req.AllowedTools)+len(req.DeniedTools) == 0 {
		return nil
	}
	return h.call(ctx, "session.permissions.configure", map[string]any{"sessionId": id, "rules": map[string]any{
		"approved": rules(req.AllowedTools), "denied": rules(req.DeniedTools),
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

// Fits says whether the session, as it is, can be adjusted to req. A model cannot be unchosen.
func (s *live) Fits(req cli.Request) bool {
	want := s.provider.settingOf(req)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.setting.fits(want) {
		return false
	}
	if s.applied.model != "" && modelOf(req, s.provider.environment(req)) == "" || s.applied.effort != "" && req.Effort == "" {
		return false
	}
	if s.turns == 0 {
		return want.begin == s.setting.begin
	}
	return req.Resume == s.id
}

// Info says what is running.
func (s *live) Info() cli.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := cli.SessionInfo{Agent: Agent, Mode: cli.Live, AgentSessionID: s.id}
	if s.server != nil && !s.closed {
		info.PID, info.Alive = s.server.PID(), s.server.Alive()
	}
	return info
}

// Close puts the session away. The process ends with its last session, with all it started.
func (s *live) Close(ctx context.Context) error {
	h, cut := s.shut()
	if h == nil {
		return nil
	}
	if h.PID() != 0 && !cut {
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

// shut closes the session to turns and takes its process from it, once. cut says that its last turn was cut off.
func (s *live) shut() (h *server, cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, s.server, s.closed = s.server, nil, true
	return h, s.cut
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
