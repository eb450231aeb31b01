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

// Holding is how an agent is held to a permission mode. Empty fields change nothing. An empty Holding is for an agent
// that is held without any change.
type Holding struct {
	Mode   string            `toml:"mode"`   // the agent's own mode
	Option string            `toml:"option"` // the id of another option of its sessions, and
	Value  string            `toml:"value"`  // the value of that option, such as "true"
	Env    map[string]string `toml:"env"`    // added to the environment of its process
	Args   []string          `toml:"args"`   // added to its command line
}

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
		return []string{"default", "ask", "askalways", "manual", "approve", "readonly"}
	}
}

// usualModes returns the names of modes in which agents work without a restriction of their own.
func usualModes() []string {
	return append(agentModes(cli.Ask), "normal", "agent", "code", "build", "act")
}

// listed returns the entry of Holds for a mode. In accept-edits an agent asks as in ask, and ductor accepts edits.
func (o *Options) listed(mode cli.PermissionMode) (Holding, bool) {
	h, ok := o.Holds[cmp.Or(mode, cli.Ask)]
	if !ok && mode == cli.AcceptEdits {
		h, ok = o.Holds[cli.Ask]
	}
	return h, ok
}

// holding returns how the agent is held to the mode of a request, given its own modes. caveat explains in one sentence which part of
// the mode the agent does not support. If held is false, ductor runs no turn in the mode.
func (o *Options) holding(req cli.Request, own []string) (h Holding, caveat string, held bool) {
	mode := req.Permission
	if h, ok := o.listed(mode); ok {
		if len(h.Env)+len(h.Args) == 0 { // a mode could replace what its process was started with
			h.Mode = cmp.Or(h.Mode, oneOf(usualModes(), own)) // it may be in the mode of an earlier turn
		}
		return h, "", true
	}
	if o.lacks(mode) {
		return h, "not available, because this is " + o.reported.Name + ", which was started without what holds it. " +
			"Name its program " + o.reported.Command + " as the path in its table, or add holds there", false
	}
	if h.Mode = oneOf(agentModes(mode), own); h.Mode != "" {
		return h, "", true
	}
	h.Mode = oneOf(usualModes(), own)
	switch mode {
	case cli.Bypass:
		return h, "the agent has no mode that lets everything through: what it asks for is allowed for you", true
	case cli.Auto:
		return h, "the agent has no mode of its own judgement: its own settings decide what it asks for", true
	case cli.Plan:
		return h, "not available, because nothing keeps this agent from changing files. " + howToHold(req), false
	}
	return h, "not available, because nothing makes this agent ask. " + howToHold(req), false
}

// lacks reports whether only the environment or the arguments of the catalogue hold the agent to the mode, and its
// process was started without them. That happens if a wrapper starts a program that reports another name.
func (o *Options) lacks(mode cli.PermissionMode) bool {
	h, _ := (&Options{Holds: o.reported.Holds}).listed(mode)
	return mode != cli.Bypass && len(h.Env)+len(h.Args) > 0
}

// howToHold tells users what they can do about an agent that is not held to the mode of a request. The mode of a request
// without a user, such as a consultation, is not that of /permissions.
func howToHold(req cli.Request) string {
	choose := "Choose auto or bypass in /permissions"
	if !req.Attended {
		choose = "Use another agent for this"
	}
	return choose + ", or add what holds it to the agent's settings, as \"How other agents are held\" on the page " +
		"about agents shows"
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

// holding returns how the session is held to the mode of a request. It returns a Failure if the session does not offer
// what holds it.
func (s *session) holding(req cli.Request) (h Holding, caveat string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, mode := s.process.options(), req.Permission
	h, caveat, held := o.holding(req, s.offers.mode.ids())
	switch {
	case !held && !req.TextOnly:
		return h, caveat, cli.Failf(cli.Refused, o.Agent, "%s: %s", mode, caveat)
	case h.Mode != "" && !s.offers.mode.offers(h.Mode):
		err = cli.Failf(cli.Refused, o.Agent, "%s needs its own mode %q, which it does not offer", mode, h.Mode)
		return h, caveat, err
	}
	return h, caveat, nil
}

// setMode holds the session to the permission mode of a request.
func (s *session) setMode(ctx context.Context, req cli.Request) error {
	h, _, err := s.holding(req)
	if err != nil {
		return err
	}
	if err = s.choose(ctx, forMode, h.Mode); err == nil && h.Option != "" {
		err = s.set(ctx, h.Option, h.Value)
	}
	if err != nil {
		f := s.process.options().failure(err)
		mode := cmp.Or(h.Mode, string(req.Permission))
		f.Reason = fmt.Sprintf("its permission mode cannot be set to %s: %s", mode, f.Reason)
		return f
	}
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
	next, o := t.Req, t.s.process.options()
	next.Permission = mode
	another := o.key(next) != o.key(t.Req) // a process keeps its environment and its arguments
	if _, caveat, err := t.s.holding(next); err != nil || caveat != "" || another || t.Adopted != nil {
		return fmt.Errorf("change to the mode %q: %w", mode, errors.ErrUnsupported)
	}
	if err := t.s.setMode(ctx, next); err != nil {
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
// it. The event shows that to users. The goroutine of the turn sends the reply after it has handled everything that the
// agent sent before. Decide does not wait for that, because that goroutine may wait for the caller. If the turn is
// detached before, the next process of ductor asks again.
func (t *liveTurn) Decide(_ context.Context, id cli.ApprovalID, d cli.Decision) error {
	s := t.s
	var said decided
	a, err := t.approvals.TakeIf(id, func(a *ask) (err error) {
		if said.result, said.allow, err = a.replyTo(t.Req, d); err != nil {
			return cli.Failf(cli.Refused, s.process.options().Agent, "%v", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	said.ask, said.plans = a, d.Allow && a.plans
	if !s.deliver(news{decided: &said}, 0, 0) {
		s.process.respond(a.id, a.cancelled())
		return cli.ErrNotAsked
	}
	return nil
}

// permitted returns the request with the current permission mode.
func (t *liveTurn) permitted() cli.Request {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	req := t.Req
	req.Permission = cmp.Or(t.permission, req.Permission)
	return req
}
