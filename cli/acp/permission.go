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
	"ductor/cli/acp/toolcall"
)

// Holding contains the settings that make an agent respect a permission mode. All fields are empty if the agent
// respects the mode without settings.
type Holding struct {
	Mode   string            `toml:"mode"`   // ID of the agent's own mode
	Option string            `toml:"option"` // ID of an option of the session, other than the mode
	Value  string            `toml:"value"`  // value of Option, such as "true"
	Env    map[string]string `toml:"env"`    // added to the environment of the process
	Args   []string          `toml:"args"`   // added to the command line
}

// agentModes returns the names that agents use for a permission mode, in lower case and without punctuation. The best
// match comes first. The names for accept-edits are those for ask, because the agents' own modes for accept-edits allow
// too much.
func agentModes(mode cli.PermissionMode) []string {
	switch mode {
	case cli.Plan:
		return []string{"plan", "planning", "architect", "readonly"}
	case cli.Auto:
		return []string{"auto", "automatic", "autonomous", "agent", "code", "default"}
	case cli.Bypass:
		// The name "autopilot" is missing on purpose: in such a mode, an agent starts further turns without a prompt.
		return []string{"bypasspermissions", "yolo", "fullaccess", "dangerfullaccess", "bypass", "allowall"}
	default:
		return []string{"default", "ask", "askalways", "manual", "approve", "readonly"}
	}
}

// usualModes returns the names of modes in which agents work without additional restrictions.
func usualModes() []string {
	return append(agentModes(cli.Ask), "normal", "agent", "code", "build", "act")
}

// listed returns the entry of Holds for a permission mode. If accept-edits has no entry, the entry for ask applies: the
// agent then requests permission for edits, and ductor itself grants these requests.
func (o *Options) listed(mode cli.PermissionMode) (Holding, bool) {
	h, ok := o.Holds[cmp.Or(mode, cli.Ask)]
	if !ok && mode == cli.AcceptEdits {
		h, ok = o.Holds[cli.Ask]
	}
	return h, ok
}

// holding returns the settings that make the agent respect the permission mode of a request. offered contains the IDs
// of the modes that the agent offers. caveat is a sentence about the part of the permission mode that the agent does
// not support, or "". If the agent does not respect the permission mode at all, held is false, and ductor refuses the
// turn.
func (o *Options) holding(req cli.Request, offered []string) (h Holding, caveat string, held bool) {
	mode := req.Permission
	if h, ok := o.listed(mode); ok {
		if len(h.Env)+len(h.Args) == 0 {
			h.Mode = cmp.Or(h.Mode, oneOf(usualModes(), offered)) // do not stay in the mode of an earlier turn
		}
		return h, "", true
	}
	if o.lacks(mode) {
		return h, "not available, because this is " + o.reported.Name + ", which was started without what holds it. " +
			"Name its program " + o.reported.Command + " as the path in its table, or add holds there", false
	}
	if h.Mode = oneOf(agentModes(mode), offered); h.Mode != "" {
		return h, "", true
	}
	h.Mode = oneOf(usualModes(), offered)
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

// lacks reports whether the process was started without settings that the mode needs. This happens if the configured
// program is a wrapper around an agent in the catalogue: ductor recognizes the agent only after the start.
func (o *Options) lacks(mode cli.PermissionMode) bool {
	h, _ := (&Options{Holds: o.reported.Holds}).listed(mode)
	return mode != cli.Bypass && len(h.Env)+len(h.Args) > 0
}

// howToHold returns a sentence that tells users what to do if the agent would not respect the permission mode of req.
func howToHold(req cli.Request) string {
	choose := "Choose auto or bypass in /permissions"
	if !req.Attended {
		choose = "Use another agent for this"
	}
	return choose + ", or add what holds it to the agent's settings, as \"How other agents are held\" on the page " +
		"about agents shows"
}

// oneOf returns the ID of the first wanted mode that the agent offers, or "" if it offers none. The names of the wanted
// modes have the form of bareMode.
func oneOf(names, offered []string) string {
	for _, want := range names {
		if i := slices.IndexFunc(offered, func(id string) bool { return bareMode(id) == want }); i >= 0 {
			return offered[i]
		}
	}
	return ""
}

var notBare = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^.*[#/]|[^a-z0-9]+`) })

// bareMode returns the ID of a mode in lower case, without punctuation and without the path of a URI.
func bareMode(id string) string { return notBare().ReplaceAllString(strings.ToLower(id), "") }

// holding returns the settings that make the session respect the permission mode of a request. It returns a Failure if
// the agent does not offer the necessary mode.
func (s *session) holding(req cli.Request) (h Holding, caveat string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, mode := s.options(), req.Permission
	h, caveat, held := o.holding(req, s.offers.mode.ids())
	switch {
	case !held && !req.TextOnly:
		return h, caveat, cli.Failf(cli.NotRun, o.Agent, "%s is %s", mode, caveat)
	case h.Mode != "" && !s.offers.mode.offers(h.Mode):
		err = cli.Failf(cli.NotRun, o.Agent, "%s needs its own mode %q, which it does not offer", mode, h.Mode)
		return h, caveat, err
	}
	return h, caveat, nil
}

// setMode makes the session respect the permission mode of a request.
func (s *session) setMode(ctx context.Context, req cli.Request) error {
	h, _, err := s.holding(req)
	if err != nil {
		return err
	}
	if err = s.choose(ctx, forMode, h.Mode); err == nil && h.Option != "" {
		err = s.set(ctx, h.Option, h.Value)
	}
	if err != nil {
		f := s.options().failure(err)
		mode := cmp.Or(h.Mode, string(req.Permission))
		f.Reason = fmt.Sprintf("its permission mode cannot be set to %s: %s", mode, f.Reason)
		return f
	}
	return nil
}

// SetPermission implements cli.PermissionSetter. The agent applies the mode from its next tool on. ductor applies the
// mode at once to the agent's requests. The error matches errors.ErrUnsupported if the agent has no suitable mode, if
// the mode needs another process, or if the turn was resumed after a restart of ductor.
func (s live) SetPermission(ctx context.Context, mode cli.PermissionMode) error {
	t, ok := s.Running().(*liveTurn)
	if !ok {
		return cli.ErrNoTurn
	}
	next, o := t.Req, t.s.options()
	next.Permission = mode
	another := o.key(next) != o.key(t.Req)
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

func (t *liveTurn) permit(mode cli.PermissionMode) {
	t.permission = mode
	t.s.workspace.SetMode(mode)
}

type verdict string

const (
	verdictAsk   verdict = "ask"
	verdictAllow verdict = "allow"
	verdictDeny  verdict = "deny"
)

// verdictOn decides a permission request, or returns verdictAsk if a user must decide. It also returns the reason of a
// denial.
//
// It returns verdictAsk for the tools in req.AllowedTools, too. ductor checks later what such a tool would do, and then
// allows the request without a user.
func verdictOn(req cli.Request, t tool, protected []string) (v verdict, why string) {
	permits := t.call.ToolKind == toolcall.KindSwitch || req.Tools.Permits(t.name)
	switch {
	// The agent reports the end of plan mode as a tool of KindSwitch. The list of permitted tools does not apply to
	// this tool.
	case t.call.ToolKind != toolcall.KindSwitch && req.Tools.Forbids(t.name):
		return verdictDeny, "this tool is not among those that may be used here"
	case req.Permission == cli.Bypass && permits:
		return verdictAllow, ""
	case req.Permission == cli.Plan &&
		(t.call.ToolKind == toolcall.KindRun || t.call.EditsFiles()):
		return verdictDeny, "the conversation is in plan mode"
	case permits && cli.Trusts(req.Servers, t.name) && !t.names(protected, req.Dir):
		return verdictAllow, ""
	case !req.Attended:
		return verdictDeny, "no user is there to allow it"
	}
	return verdictAsk, ""
}

// names reports whether the paths or the input of the tool refer to a file in files.
func (t tool) names(files []string, dir string) bool {
	about := func(path string) bool { return cli.Touches(files, dir, path) }
	return slices.ContainsFunc(t.call.Paths(), about) || cli.Names(files, dir, t.call.Input)
}

// Decide implements cli.Decider. It passes the decision to the turn's goroutine and returns without waiting for the
// reply. Waiting could cause a deadlock, because the goroutine may wait for the caller. If ductor is restarted before
// the goroutine has replied, ductor asks the user again.
//
// The agent does not receive the reason of a denial, because the protocol has no field for it.
func (t *liveTurn) Decide(_ context.Context, id cli.ApprovalID, d cli.Decision) error {
	s := t.s
	var said decided
	a, err := t.approvals.TakeIf(id, func(a *ask) (err error) {
		if said.result, said.allow, err = a.replyTo(t.Req, d); err != nil {
			return cli.Failf(cli.Refused, s.options().Agent, "%v", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	said.ask, said.endsPlanMode = a, d.Allow && a.endsPlanMode
	if !s.deliver(news{decided: &said}, 0, 0) {
		s.process.cancel(a)
		return cli.ErrNotAsked
	}
	return nil
}

// permitted returns the turn's request with the permission mode that currently applies.
func (t *liveTurn) permitted() cli.Request {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	req := t.Req
	req.Permission = cmp.Or(t.permission, req.Permission)
	return req
}
