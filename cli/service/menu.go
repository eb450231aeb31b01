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

type modelList struct {
	models []cli.Model
	err    error
}

// authAnswer is a provider's log-in state, or the reason why its environment is unavailable.
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

// ask prepares the environment and asks a provider whether its agent is usable. If a sandbox seems to lack the agent,
// ask tries once more, because the sandbox may have been removed during the first attempt.
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
	// Only the sandbox's image can provide the agent, so advice for this host would not help.
	if at.sandbox != "" && a.auth.State == cli.NotFound {
		a.auth.Fix = ""
	}
	return a
}

// Menu lists the agents of an environment, in the order of the providers, with their log-in states and models. For each
// agent, it uses the account in accounts. Menu creates the sandbox if needed. If the environment is unknown, it returns
// no agents.
//
// Menu queries all agents at the same time, each for at most MenuWait, and caches answers for MenuTTL. If a query
// fails, the agent's entry has Err and no models.
//
// If waitFor is not empty, Menu waits only for these agents. If ctx comes from cli.AtOnce, Menu waits for no agent. In
// both cases, the entries of agents that have not answered have the Err ErrLoading.
func (s *Service) Menu(
	ctx context.Context, in cli.Sandbox, accounts cli.Accounts, waitFor ...cli.Agent,
) []cli.MenuEntry {
	at := s.runEnvs.get(in)
	if at == nil {
		return nil
	}
	agents := at.entries()
	entries := make([]cli.MenuEntry, len(agents))
	var asked sync.WaitGroup
	for i, e := range agents {
		asking := ctx
		if len(waitFor) > 0 && !slices.Contains(waitFor, e.agent()) {
			asking = cli.AtOnce(ctx)
		}
		entry, failure := s.at(in, e.agent(), accounts[e.agent()])
		if failure != nil {
			entries[i] = cli.MenuEntry{Agent: e.agent(), Account: accounts[e.agent()], Err: failure}
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

// Accounts describes each account of an agent in an environment and whether it is logged in, the default account first.
// Err is set if the environment does not have the account. Accounts waits like Menu, and loads no models.
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

func unusable(agent cli.Agent, auth cli.Auth) *cli.Failure {
	switch {
	case auth.Problem != nil:
		return auth.Problem
	case auth.State == cli.NotFound:
		return &cli.Failure{Kind: cli.NotInstalled, Agent: agent, Reason: auth.Fix}
	}
	return &cli.Failure{Kind: cli.NotLoggedIn, Agent: agent, Reason: auth.Fix}
}

// sandboxWait limits how long a caller waits for a sandbox to report which agents are usable. Building the sandbox's
// image can take minutes. So if the sandbox does not answer in time, no caller waits for the sandbox until silentFor
// has passed.
const (
	sandboxWait = 2 * time.Second
	silentFor   = time.Minute
)

// Default returns the agent for conversations in which the user has chosen none. This is the configured agent if it is
// usable. Otherwise Default returns the first usable fallback, together with the Failure of the configured agent. If no
// fallback is usable either, Default returns this Failure as err. Agents that are not configured as a fallback are only
// used if a user chooses them.
//
// Default also returns the configured agent in these cases:
//
//   - A sandbox is unavailable or does not answer soon. The turn then waits for the sandbox and reports the problem.
//   - The agent takes too long to answer, and no fallback is usable. The turn then gives the agent more time.
//
// If ctx comes from cli.AtOnce, an agent that has not answered yet counts as usable.
func (s *Service) Default(ctx context.Context, in cli.Sandbox,
	accounts cli.Accounts) (agent cli.Agent, instead *cli.Failure, err error) {
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
		e, failure := s.at(in, agent, accounts[agent])
		switch {
		case failure != nil && agent == s.opts.Default:
			return agent, nil, nil // the turn reports the failure
		case failure != nil:
			first = cmp.Or(first, failure)
			continue
		}
		answer, err := e.auth.get(asked)
		switch {
		case err != nil && ctx.Err() == nil && asked.Err() != nil:
			s.recordSilence(asked, at)
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
	// The environment has none of the preferred agents. The turn will report this.
	if first == nil {
		return s.opts.Default, nil, nil
	}
	if first.Kind == cli.TimedOut {
		return first.Agent, nil, nil
	}
	return "", nil, first
}

// Substitute returns the first usable agent of an environment, but none of those in excluded. It returns "" if there is
// none. For each agent, it uses the account in accounts. configured is true if the returned agent is the default or a
// configured fallback. Substitute does not wait long for a sandbox.
func (s *Service) Substitute(ctx context.Context, in cli.Sandbox, accounts cli.Accounts,
	excluded []cli.Agent) (substitute cli.Agent, configured bool) {
	at := s.runEnvs.get(in)
	if at == nil {
		return "", false
	}
	asked, cancel := s.patience(ctx, at)
	defer cancel()
	for _, e := range s.order(at) {
		entry, failure := s.at(in, e.agent(), accounts[e.agent()])
		if failure != nil || slices.Contains(excluded, e.agent()) {
			continue
		}
		if answer, err := entry.auth.get(asked); err == nil && answer.err == nil &&
			answer.auth.State == cli.Authenticated {
			return e.agent(), slices.Contains(s.preferred(), e.agent())
		}
	}
	return "", false
}

// patience returns ctx with a deadline for waiting for a sandbox. If the sandbox recently did not answer, the deadline
// is now. For this host, patience returns ctx itself.
func (s *Service) patience(ctx context.Context, at *runEnv) (context.Context, context.CancelFunc) {
	switch {
	case at.sandbox == "":
		return ctx, func() {}
	case s.isSilent(at):
		return context.WithTimeout(ctx, 0)
	}
	return context.WithTimeout(ctx, sandboxWait)
}

func (s *Service) isSilent(at *runEnv) bool {
	since := at.silent.Load()
	return since != 0 && s.opts.Now().Sub(time.Unix(0, since)) < silentFor
}

// recordSilence records that a sandbox did not answer a caller in time. It also starts queries of the sandbox's agents
// for later callers, without waiting for the answers. ctx is already done.
func (s *Service) recordSilence(ctx context.Context, at *runEnv) {
	if !s.isSilent(at) {
		at.silent.Store(s.opts.Now().UnixNano())
	}
	for _, entry := range at.entries() {
		_, _ = entry.auth.get(ctx) // only starts a query, because ctx is already done
	}
}

// preferred lists the agents that ductor uses if the user has chosen none: the default and its fallbacks.
func (s *Service) preferred() []cli.Agent {
	return append([]cli.Agent{s.opts.Default}, s.opts.Fallback...)
}

// order returns every agent of an environment once, the preferred ones first.
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

// Refresh makes the next calls of Menu and Default query the agents again.
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

// LogIn logs an agent in. way is a Login that Logins returned. Afterwards, the service checks all agents again. LogIn
// returns ErrUnsupported if the provider offers no way to log in.
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
