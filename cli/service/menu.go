package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"ductor/cli"
)

// modelList is a provider's list of models, or an error.
type modelList struct {
	models []cli.Model
	err    error
}

// authAnswer is a provider's log-in state, or an error of its environment.
type authAnswer struct {
	auth cli.Auth
	err  error
}

func (s *Service) newEntry(at *runEnv, p cli.Provider, home cli.AccountHome) *agentEntry {
	return &agentEntry{
		provider: p, home: home, runEnv: at,
		modes: newCached(s.core, s.askModes(p), func(can []cli.Mode) bool { return len(can) > 0 }),
		auth: newCached(s.core, func(ctx context.Context) authAnswer { return at.ask(ctx, p, home) },
			func(a authAnswer) bool {
				return a.err == nil && a.auth.State == cli.Authenticated
			}),
		models: newCached(s.core, func(ctx context.Context) (l modelList) {
			l.err = guard(p.Agent(), func() (err error) { l.models, err = p.Models(ctx); return err })
			if l.err != nil && ctx.Err() != nil {
				l.err = &cli.Failure{Kind: cli.TimedOut, Agent: p.Agent(), Reason: "it did not answer in time",
					Cause: l.err}
			}
			return l
		}, func(l modelList) bool { return l.err == nil }),
	}
}

// ask asks a provider whether its agent is usable, in an existing environment. If a sandbox does not contain the agent,
// ask tries again once, because the sandbox may have disappeared in the meantime.
func (at *runEnv) ask(ctx context.Context, p cli.Provider, home cli.AccountHome) authAnswer {
	a := at.askOnce(ctx, p, home)
	if a.err == nil && a.auth.State == cli.NotFound && at.sandbox != "" {
		a = at.askOnce(ctx, p, home)
	}
	return a
}

func (at *runEnv) askOnce(ctx context.Context, p cli.Provider, home cli.AccountHome) (a authAnswer) {
	agent := p.Agent()
	if err := guard(agent, func() error { return at.prepare(ctx) }); err != nil {
		lost := at.lost(agent, err)
		return authAnswer{auth: cli.Auth{State: cli.NotFound, Fix: lost.Error()}, err: lost}
	}
	if err := guard(agent, func() error { a.auth = home.Auth(ctx, p); return nil }); err != nil {
		a.auth = cli.Auth{State: cli.NotFound, Fix: err.Error()}
	}
	// The sandbox's image must contain the agent, so advice for this machine would not help.
	if at.sandbox != "" && a.auth.State == cli.NotFound {
		a.auth.Fix = ""
	}
	return a
}

// Menu lists the agents of an environment, in the order of the providers, with their log-in states and models. It
// creates the sandbox if needed. It returns no agents for an unknown environment.
//
// Menu queries all agents at the same time, each for at most MenuWait. Its answers are at most MenuTTL old. If a query
// fails, the agent's entry has Err and no models. Err is ErrLoading if ctx is AtOnce and nothing is known yet. If only
// is not empty, Menu waits only for these agents, and Err of the others may be ErrLoading. of has the accounts to list.
func (s *Service) Menu(ctx context.Context, in cli.Sandbox, of cli.Accounts, only ...cli.Agent) []cli.MenuEntry {
	at := s.runEnvs.get(in)
	if at == nil {
		return nil
	}
	agents := at.entries()
	entries := make([]cli.MenuEntry, len(agents))
	var asked sync.WaitGroup
	for i, e := range agents {
		asking := ctx
		if len(only) > 0 && !slices.Contains(only, e.agent()) {
			asking = cli.AtOnce(ctx)
		}
		entry, failure := s.at(in, e.agent(), of[e.agent()])
		if failure != nil {
			entries[i] = cli.MenuEntry{Agent: e.agent(), Account: of[e.agent()], Err: failure}
			continue
		}
		asked.Go(func() { entries[i] = entry.menu(asking) })
	}
	asked.Wait()
	return entries
}

func (e *agentEntry) menu(ctx context.Context) cli.MenuEntry {
	agent := e.provider.Agent()
	entry := cli.MenuEntry{Agent: agent, Account: e.home.Account}
	answer, err := e.auth.get(ctx)
	if err == nil {
		err = answer.err
	}
	auth := answer.auth
	if entry.Auth = auth; err == nil && auth.State == cli.Authenticated {
		var list modelList
		list, err = e.models.get(ctx)
		entry.Models = slices.Clone(list.models)
		if err == nil {
			err = list.err
		}
	} else if err == nil {
		err = e.named(unusable(agent, auth))
	}
	if err != nil {
		entry.Models, entry.Err = nil, err
	}
	return entry
}

// Accounts reports whether each account of an agent of an environment is logged in, the default one first. Err is set
// if the environment does not have the account. It waits like Menu, and does not load models.
func (s *Service) Accounts(ctx context.Context, in cli.Sandbox, agent cli.Agent) (all []cli.MenuEntry) {
	first := s.runEnvs.get("").entry(agent)
	if first == nil {
		return nil
	}
	all = make([]cli.MenuEntry, len(first.others)+1)
	var asked sync.WaitGroup
	for i, e := range append([]*agentEntry{first}, first.others...) {
		all[i] = cli.MenuEntry{Agent: agent, Account: e.home.Account}
		entry, failure := s.at(in, agent, e.home.Account)
		if failure != nil {
			all[i].Err = failure
			continue
		}
		asked.Go(func() {
			answer, err := entry.auth.get(ctx)
			all[i].Auth, all[i].Err = answer.auth, cmp.Or(err, answer.err)
		})
	}
	asked.Wait()
	return all
}

// unusable returns the Failure for an agent that is not Authenticated.
func unusable(agent cli.Agent, auth cli.Auth) *cli.Failure {
	switch {
	case auth.Problem != nil:
		return auth.Problem
	case auth.State == cli.NotFound:
		return &cli.Failure{Kind: cli.NotInstalled, Agent: agent, Reason: auth.Fix}
	}
	return &cli.Failure{Kind: cli.NotLoggedIn, Agent: agent, Reason: auth.Fix}
}

// sandboxWait limits the time that a sandbox may take to list its usable agents. After a caller has waited in vain,
// other callers do not wait for the time silentFor, because building an image takes minutes.
const (
	sandboxWait = 2 * time.Second
	silentFor   = time.Minute
)

// Default returns the agent of an environment for a conversation without a chosen agent. This is the configured agent
// if it is usable. Otherwise it is the first usable fallback, and instead is the *Failure of the configured agent. If
// no fallback is usable, Default returns that Failure as the error: other agents answer only if a user chose them.
//
// Default also returns the configured agent in these cases:
//   - A sandbox is unavailable or does not answer soon. The turn then waits for the sandbox and reports the problem.
//   - The agent takes too long to answer, and no fallback is usable. A turn waits longer.
//
// If ctx is AtOnce, an agent that has not answered yet counts as usable.
func (s *Service) Default(ctx context.Context, in cli.Sandbox,
	of cli.Accounts) (agent cli.Agent, instead *cli.Failure, err error) {
	at := s.runEnvs.get(in)
	if at == nil {
		return s.opts.Default, nil, nil
	}
	asked, cancel := s.patience(ctx, at)
	defer cancel()
	var first *cli.Failure
	for _, agent := range s.preferred() {
		if at.entry(agent) == nil {
			continue
		}
		e, failure := s.at(in, agent, of[agent])
		switch {
		case failure != nil && agent == s.opts.Default:
			return agent, nil, nil // the turn reports it
		case failure != nil:
			first = cmp.Or(first, failure)
			continue
		}
		answer, err := e.auth.get(asked)
		switch {
		case err != nil && ctx.Err() == nil && asked.Err() != nil:
			s.heardNothing(asked, at)
			return s.opts.Default, nil, nil
		case errors.Is(err, cli.ErrLoading):
			return agent, first, nil
		case err != nil:
			return "", nil, err
		case answer.err != nil:
			return s.opts.Default, nil, nil
		case answer.auth.State == cli.Authenticated:
			return agent, first, nil
		case first == nil:
			first = e.named(unusable(agent, answer.auth))
		}
	}
	if first == nil { // none of these agents is in the environment: the turn reports that
		return s.opts.Default, nil, nil
	}
	if first.Kind == cli.TimedOut {
		return first.Agent, nil, nil
	}
	return "", nil, first
}

// Substitute returns the first usable agent of an environment that is not in others, or "". configured reports whether
// that agent is the default or a fallback. of has the accounts that the agents would use. Substitute does not wait for a
// sandbox that does not answer.
func (s *Service) Substitute(ctx context.Context, in cli.Sandbox, of cli.Accounts,
	others []cli.Agent) (substitute cli.Agent, configured bool) {
	at := s.runEnvs.get(in)
	if at == nil {
		return "", false
	}
	asked, cancel := s.patience(ctx, at)
	defer cancel()
	for _, e := range s.order(at) {
		entry, failure := s.at(in, e.agent(), of[e.agent()])
		if failure != nil || slices.Contains(others, e.agent()) {
			continue
		}
		if answer, err := entry.auth.get(asked); err == nil && answer.err == nil &&
			answer.auth.State == cli.Authenticated {
			return e.agent(), slices.Contains(s.preferred(), e.agent())
		}
	}
	return "", false
}

// patience limits ctx to the time for which a caller waits for a sandbox to list its usable agents.
func (s *Service) patience(ctx context.Context, at *runEnv) (context.Context, context.CancelFunc) {
	switch {
	case at.sandbox == "":
		return ctx, func() {}
	case s.isSilent(at):
		return context.WithTimeout(ctx, 0)
	}
	return context.WithTimeout(ctx, sandboxWait)
}

// isSilent reports whether a caller has recently waited in vain for the environment.
func (s *Service) isSilent(at *runEnv) bool {
	since := at.silent.Load()
	return since != 0 && s.opts.Now().Sub(time.Unix(0, since)) < silentFor
}

// heardNothing records that a sandbox does not answer, and queries all its agents in the background. asked is the
// context of the failed query.
func (s *Service) heardNothing(asked context.Context, at *runEnv) {
	if !s.isSilent(at) {
		at.silent.Store(s.opts.Now().UnixNano())
	}
	for _, entry := range at.entries() {
		_, _ = entry.auth.get(asked) // later callers get the answer
	}
}

// preferred lists the agents that may answer without a choice of the user: the default, then the fallbacks.
func (s *Service) preferred() []cli.Agent {
	return append([]cli.Agent{s.opts.Default}, s.opts.Fallback...)
}

// order returns every agent of an environment once: the preferred ones, then the others.
func (s *Service) order(at *runEnv) (ordered []*agentEntry) {
	var all []*agentEntry
	for _, agent := range s.preferred() {
		all = append(all, at.entry(agent))
	}
	for _, e := range append(all, at.entries()...) {
		if e != nil && !slices.Contains(ordered, e) {
			ordered = append(ordered, e)
		}
	}
	return ordered
}

// Refresh makes the next call of Menu and Default query the agents again.
func (s *Service) Refresh() {
	for _, at := range s.runEnvs.list() {
		for _, e := range at.accounts() {
			e.auth.forget()
			e.models.forget()
		}
	}
}

// Logins implements orchestrator.Gateway.
func (s *Service) Logins(in cli.Sandbox, agent cli.Agent, account cli.Account) []cli.Login {
	entry, failure := s.at(in, agent, account)
	if failure != nil {
		return nil
	}
	return slices.DeleteFunc(entry.home.Logins(entry.provider), func(l cli.Login) bool {
		return in != "" && l.Kind == cli.LoginByCommand
	})
}

// LogIn logs an agent in by the cli.Login with the given ID. The service then checks all agents again. LogIn returns
// ErrUnsupported if the agent has no such log-in.
func (s *Service) LogIn(ctx context.Context, in cli.Sandbox, agent cli.Agent, way cli.Login,
	show func(cli.DeviceCode)) error {
	entry, failure := s.at(in, agent, way.Account)
	if failure != nil {
		return failure
	}
	login, ok := entry.provider.(cli.LoginProvider)
	if !ok {
		return errors.ErrUnsupported
	}
	if err := entry.runEnv.prepare(ctx); err != nil {
		return entry.runEnv.lost(agent, err)
	}
	err := guard(agent, func() error { return login.LogIn(ctx, way.ID, show) })
	s.Refresh()
	return err
}
