package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ductor/cli"
)

// agentModes returns the names that agents use for a mode, without case and punctuation, the best name first. For
// accept-edits, agents must still ask: their own modes for that would allow more than ductor does.
func agentModes(mode cli.PermissionMode) []string {
	switch mode {
	case cli.Plan:
		return []string{"plan", "planning", "architect", "readonly"}
	case cli.Auto:
		return []string{"auto", "automatic", "autonomous", "agent", "code", "default"}
	case cli.Bypass:
		// not autopilot, which continues without a prompt
		return []string{"bypasspermissions", "yolo", "fullaccess", "dangerfullaccess", "bypass", "allowall"}
	default:
		return []string{"default", "ask", "askalways", "manual", "normal", "readonly", "agent", "code"}
	}
}

// modeFor chooses the agent's own mode for a permission mode from the offered modes. If none fits, it chooses an
// ordinary mode, or "" if none is offered. caveat then explains in one sentence which part of the permission mode is
// not guaranteed. In any case ductor decides the agent's requests; see verdictOn.
func modeFor(mode cli.PermissionMode, offered []string) (own, caveat string) {
	if own = oneOf(agentModes(mode), offered); own != "" {
		return own, ""
	}
	own = oneOf(agentModes(cli.Ask), offered) // it may be in the mode of an earlier turn
	switch mode {
	case cli.Plan:
		return own, "the agent has no plan mode: what it asks for is denied, and what it does without asking is not seen"
	case cli.Bypass:
		return own, "the agent has no mode that lets everything through: what it asks for is allowed for you"
	case cli.Auto:
		return own, "the agent has no mode of its own judgement: it asks as it does without a mode"
	}
	return own, "the agent has no permission modes: what it asks for, and what not, is its own choice"
}

// oneOf returns the offered mode that matches the first possible one of names, or "".
func oneOf(names, offered []string) string {
	for _, want := range names {
		if i := slices.IndexFunc(offered, func(id string) bool { return bareMode(id) == want }); i >= 0 {
			return offered[i]
		}
	}
	return ""
}

var notBare = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^.*[#/]|[^a-z0-9]+`) })

// bareMode returns the name of a mode without case, punctuation and the leading part of an address.
func bareMode(id string) string { return notBare().ReplaceAllString(strings.ToLower(id), "") }

// setMode switches the session to the agent's mode for a permission mode.
func (s *session) setMode(ctx context.Context, mode cli.PermissionMode) error {
	s.mu.Lock()
	have := s.offers.mode
	want, _ := modeFor(mode, s.offers.modes)
	s.mu.Unlock()
	if want == "" || want == have {
		return nil
	}
	if err := s.process.call(ctx, methodSetMode, sessionParams{SessionID: string(s.id), ModeID: want}, nil); err != nil {
		f := s.process.options().failure(err)
		f.Reason = fmt.Sprintf("its permission mode cannot be set to %s: %s", want, f.Reason)
		return f
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offers.mode = want
	return nil
}

// SetPermission implements cli.PermissionSetter. The agent uses the mode from its next tool on, and ductor uses it to
// decide the agent's requests. If the agent has no suitable mode, or its modes are unknown, it may act without asking
// in some cases.
func (s live) SetPermission(ctx context.Context, mode cli.PermissionMode) error {
	t, ok := s.Running().(*liveTurn)
	if !ok {
		return cli.ErrNoTurn
	}
	t.s.mu.Lock()
	known := oneOf(agentModes(mode), t.s.offers.modes) != ""
	t.s.mu.Unlock()
	if !known {
		return fmt.Errorf("change to the mode %q: %w", mode, errors.ErrUnsupported)
	}
	if err := t.s.setMode(ctx, mode); err != nil {
		return err
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.permit(mode)
	return nil
}

// permit sets the permission mode for the remaining part of the turn. The caller holds s.mu.
func (t *liveTurn) permit(mode cli.PermissionMode) {
	t.permission = mode
	t.s.workspace.allow(mode)
}

// verdict is the decision about a permission request.
type verdict string

const (
	verdictAsk   verdict = "ask" // ask a user
	verdictAllow verdict = "allow"
	verdictDeny  verdict = "deny"
)

// verdictOn decides a permission request. why is the reason of a denial. Even if a tool list allows a tool, verdictOn
// does not allow it to touch a protected file.
func verdictOn(req cli.Request, t tool, protected []string) (v verdict, why string) {
	named := func(list []string) bool {
		return slices.Contains(list, t.name) || slices.Contains(list, t.call.ToolKind)
	}
	switch {
	case t.call.ToolKind != kindSwitch && !req.Tools.Permits(t.name): // a plan is not a tool
		return verdictDeny, "this tool is not among those that may be used here"
	case req.Permission == cli.Bypass:
		return verdictAllow, ""
	case req.Permission == cli.Plan &&
		slices.Contains([]string{kindEdit, kindDelete, kindMove, kindRun}, t.call.ToolKind):
		return verdictDeny, "the conversation is in plan mode"
	case (named(req.AllowedTools) || cli.Trusts(req.Servers, t.name)) && !t.names(protected, req.Dir):
		return verdictAllow, ""
	case !req.Attended:
		return verdictDeny, "no user is there to allow it"
	}
	return verdictAsk, ""
}

// names reports whether a tool names any of files, as its objects or in its input.
func (t tool) names(files []string, dir string) bool {
	about := func(path string) bool { return cli.Touches(files, dir, path) }
	return slices.ContainsFunc(t.paths(), about) || cli.Names(files, dir, t.call.Input)
}

// Decide implements cli.Decider. The agent does not get the reason of a denial, because the protocol has no place for
// it. The event shows that to users.
func (t *liveTurn) Decide(ctx context.Context, id cli.ApprovalID, d cli.Decision) error {
	s := t.s
	var result any
	var runs bool
	a, err := t.approvals.TakeIf(id, func(a *ask) (err error) {
		if result, runs, err = a.replyTo(t.Req, d); err != nil {
			return cli.Failf(cli.Refused, s.process.options().Agent, "%v", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if result == nil {
		a.before++
		s.deliver(news{ask: a}, 0, 0) // ask again
		return nil
	}
	if d.Allow && a.plans {
		s.mu.Lock()
		t.permit(cli.Ask)
		s.offers.mode = "" // the agent leaves the mode itself, and chooses another
		s.mu.Unlock()
	}
	written := make(chan error, 1)
	said := decided{ask: a, allow: runs}
	s.deliver(news{decided: &said}, 0, 0) // before the agent's reaction to it
	err = s.process.Peer().Reply(a.id, result, func(err error) {
		if err == nil {
			t.noteAnswered(said)
		}
		written <- err
	})
	if err != nil {
		return fmt.Errorf("answer %s: %w", s.process.options().Agent, err)
	}
	select {
	case err := <-written:
		if err != nil {
			return fmt.Errorf("answer %s: %w", s.process.options().Agent, err)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// permitted returns the request with the current permission mode.
func (t *liveTurn) permitted() cli.Request {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	req := t.Req
	req.Permission = cmp.Or(t.permission, req.Permission)
	return req
}
