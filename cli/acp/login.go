package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync/atomic"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/lang"
)

// authMethods lists the ways to log in that an agent offers.
type authMethods []authMethod

// authMethod is a way to log in. Type is methodTerminal, methodVariables, or any other value if the agent itself
// performs the log-in.
type authMethod struct {
	ID   string            `json:"id"`
	Name string            `json:"name"`
	Type string            `json:"type"`
	Args []string          `json:"args"` // for methodTerminal: arguments to append to the agent's command line
	Env  map[string]string `json:"env"`  // for methodTerminal: environment variables of the command
	Vars []struct {        // for methodVariables: environment variables that contain the log-in
		Name string `json:"name"`
	} `json:"vars"`
}

// Values of authMethod.Type. Some agents send methodVariables, although the current version of the protocol does not
// define it.
const (
	methodTerminal  = "terminal"
	methodVariables = "env_var"
)

// Limits of an agent's log-in methods. Decoding omits a method beyond a limit, because a shortened method would not
// work.
const (
	maxMethods = 16
	maxWords   = 16 // arguments or variables of one method
	maxWord    = 200
)

// fits reports whether a method is within the limits.
func (m authMethod) fits() bool {
	words := append(slices.Collect(maps.Keys(m.Env)), m.ID)
	words = slices.Concat(words, slices.Collect(maps.Values(m.Env)), m.Args)
	for _, v := range m.Vars {
		words = append(words, v.Name)
	}
	long := func(word string) bool { return len(word) > maxWord }
	return max(len(m.Args), len(m.Env), len(m.Vars)) <= maxWords && !slices.ContainsFunc(words, long)
}

// UnmarshalJSON omits methods that are unreadable or beyond a limit.
func (all *authMethods) UnmarshalJSON(raw []byte) error {
	for _, one := range listOf(raw) {
		var m authMethod
		if json.Unmarshal(one, &m) == nil && m.ID != "" && m.fits() && len(*all) < maxMethods {
			*all = append(*all, m)
		}
	}
	return nil
}

// logins converts the agent's log-in methods to the type of package cli, and adds the log-in command of the catalogue.
func (o *Options) logins(methods authMethods) (all []cli.Login) {
	for _, m := range methods {
		name := cmp.Or(cli.OneLine(m.Name, maxWord), cli.OneLine(m.ID, maxWord))
		switch m.Type {
		case methodTerminal:
			all = append(all, cli.Login{Name: name, Kind: cli.LoginByCommand, Command: o.terminalLine(m)})
		case methodVariables:
			for _, v := range m.Vars {
				all = append(all, cli.Login{Name: name, Kind: cli.LoginByVariable, Variable: v.Name})
			}
		default:
			all = append(all, cli.Login{ID: m.ID, Name: name, Kind: cli.LoginByAgent})
		}
	}
	if o.known.Login != "" {
		all = append(all, cli.Login{Kind: cli.LoginByCommand, Command: o.known.Login})
	}
	return all
}

// terminalLine returns the shell command that logs in with a method of type methodTerminal.
func (o *Options) terminalLine(m authMethod) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(m.Env)) {
		words = append(words, name+"="+m.Env[name])
	}
	if len(words) > 0 {
		words = append([]string{"env"}, words...)
	}
	return cli.ShellLine(slices.Concat(words, []string{o.Path}, o.Args, m.Args))
}

// loginAdvice returns a sentence that tells the user how to log in. It describes only the first of the log-in methods.
func (o *Options) loginAdvice(logins []cli.Login) string {
	if len(logins) == 0 {
		return ""
	}
	return logins[0].Advice(o.Agent)
}

var _ cli.LoginProvider = (*Provider)(nil)

// login contains what ductor knows about an agent's log-in. A new Provider takes over the login of the Provider that it
// replaces; see Succeed.
type login struct {
	methods atomic.Pointer[[]cli.Login] // log-in methods that the last started process offered
	chosen  atomic.Pointer[string]      // ID of the method of the last successful log-in
}

// Succeed implements cli.Successor.
func (p *Provider) Succeed(former cli.Provider) {
	old, ok := former.(*Provider)
	if ok && old.opts.Path == p.opts.Path && old.opts.AuthMethod == p.opts.AuthMethod &&
		slices.Equal(old.opts.AllowEnv, p.opts.AllowEnv) && slices.Equal(old.opts.Env(), p.opts.Env()) {
		p.login = old.login
	}
}

// Logins implements cli.LoginProvider. It returns the log-in methods that the agent's most recently started process
// offered.
func (p *Provider) Logins() []cli.Login {
	if all := p.login.methods.Load(); all != nil {
		return *all
	}
	return nil
}

// LogIn implements cli.LoginProvider. It logs in through a separate process, and stores the log-in method. Some agents
// forget a log-in when their process exits. Their later processes log in by the stored method.
func (p *Provider) LogIn(ctx context.Context, id string, _ func(cli.DeviceCode)) (err error) {
	proc, err := p.private(ctx, cli.Request{Dir: p.opts.StartDir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, proc.Stop(context.WithoutCancel(ctx), p.opts.Grace)) }()
	if err = proc.logIn(ctx, id); err != nil {
		return err
	}
	if err := p.remember(id); err != nil {
		p.opts.Logger.Error("store how a user logged in an agent", "agent", p.opts.Agent, "err", err)
	}
	return nil
}

// authMethod returns the ID of a log-in method that needs no user, or "" if none is known.
func (p *Provider) authMethod(o *Options, req cli.Request) string {
	if chosen := p.remembered(); chosen != "" && p.offers(chosen) {
		return chosen
	}
	if o.AuthMethod == "" && o.quirks.AuthMethod != nil {
		if id := o.quirks.AuthMethod(o.env(req)); p.offers(id) {
			return id
		}
	}
	return o.AuthMethod
}

// offers reports whether the agent offers the log-in method with this ID. If the agent has listed no methods, offers
// returns true.
func (p *Provider) offers(id string) bool {
	all := p.Logins()
	return len(all) == 0 || slices.ContainsFunc(all, func(l cli.Login) bool {
		return l.Kind == cli.LoginByAgent && l.ID == id
	})
}

// logIn logs the process in by one of the agent's methods. Errors are *cli.Failure.
func (proc *agentProcess) logIn(ctx context.Context, id string) error {
	o := proc.options()
	if !proc.provider.offers(id) {
		return cli.Failf(cli.NotLoggedIn, o.Agent, "failure.no-login", id)
	}
	err := proc.callFor(ctx, o.Start, methodLogin, sessionParams{MethodID: id}, nil)
	var refused *rpc.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f := cli.Failf(cli.NotLoggedIn, o.Agent, "failure.login-timeout", o.Start)
		f.Cause = err
		return f
	case errors.As(err, &refused):
		f := &cli.Failure{Kind: cli.NotLoggedIn, Agent: o.Agent, Reason: ReasonOf(refused.Message), Cause: err}
		if f.Reason == "" {
			f.Own = lang.NewMessage("failure.login-refused")
		}
		return f
	case err != nil:
		return o.failure(err)
	}
	return nil
}
