package service

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"ductor/cli"
)

// modelList is what a provider said when it was asked for its models.
type modelList struct {
	models []cli.Model
	err    error
}

// authAnswer is what a provider found out, or why its place could not be asked.
type authAnswer struct {
	auth cli.Auth
	err  error
}

func (s *Service) newEntry(at *runEnv, p cli.Provider) *agentEntry {
	return &agentEntry{
		provider: p, runEnv: at,
		modes: newCached(s.core, s.askModes(p), func(can []cli.Mode) bool { return len(can) > 0 }),
		auth: newCached(s.core, func(ctx context.Context) authAnswer { return at.ask(ctx, p) }, func(a authAnswer) bool {
			return a.err == nil && a.auth.State == cli.Authenticated
		}),
		models: newCached(s.core, func(ctx context.Context) (l modelList) {
			l.err = guard(p.Agent(), func() (err error) { l.models, err = p.Models(ctx); return err })
			if l.err != nil && ctx.Err() != nil {
				l.err = &cli.Failure{Kind: cli.TimedOut, Agent: p.Agent(), Reason: "it did not answer in time", Cause: l.err}
			}
			return l
		}, func(l modelList) bool { return l.err == nil }),
	}
}

// ask has an agent look whether it can be used, in a place that is there. One that is not found in a sandbox
// is looked for once more: the sandbox may have gone under its feet.
func (at *runEnv) ask(ctx context.Context, p cli.Provider) authAnswer {
	a := at.askOnce(ctx, p)
	if a.err == nil && a.auth.State == cli.NotFound && at.sandbox != "" {
		a = at.askOnce(ctx, p)
	}
	return a
}

func (at *runEnv) askOnce(ctx context.Context, p cli.Provider) (a authAnswer) {
	agent := p.Agent()
	if err := guard(agent, func() error { return at.prepare(ctx) }); err != nil {
		lost := at.lost(agent, err)
		return authAnswer{auth: cli.Auth{State: cli.NotFound, Fix: lost.Error()}, err: lost}
	}
	if err := guard(agent, func() error { a.auth = p.Auth(ctx); return nil }); err != nil {
		a.auth = cli.Auth{State: cli.NotFound, Fix: err.Error()}
	}
	if at.sandbox != "" && a.auth.State == cli.NotFound { // its image has to have it: what helps on this machine does not there
		a.auth.Fix = ""
	}
	return a
}

// Menu says for each agent of a place, in the order of its providers, whether it can be used and which models it
// has. A sandbox is made for it; one that is not configured has no agents. The agents are asked at the same time and each has MenuWait. What it says is at most MenuTTL old;
// an agent that cannot be asked shows Err and no models. Err is ErrLoading where ctx is AtOnce and nothing is known yet, and of
// agents that are not among only, which is not waited for; without only all are.
func (s *Service) Menu(ctx context.Context, in cli.Sandbox, only ...cli.Agent) []cli.MenuEntry {
	at := s.runEnvs.get(in)
	if at == nil {
		return nil
	}
	entries := make([]cli.MenuEntry, len(at.order))
	var asked sync.WaitGroup
	for i, agent := range at.order {
		asking := ctx
		if len(only) > 0 && !slices.Contains(only, agent) {
			asking = cli.AtOnce(ctx)
		}
		asked.Go(func() { entries[i] = at.agents[agent].menu(asking) })
	}
	asked.Wait()
	return entries
}

func (e *agentEntry) menu(ctx context.Context) cli.MenuEntry {
	agent := e.provider.Agent()
	entry := cli.MenuEntry{Agent: agent}
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
		err = e.runEnv.named(unusable(agent, auth))
	}
	if err != nil {
		entry.Models, entry.Err = nil, err
	}
	return entry
}

// unusable is the Failure of an agent that is not Authenticated.
func unusable(agent cli.Agent, auth cli.Auth) *cli.Failure {
	switch {
	case auth.Problem != nil:
		return auth.Problem
	case auth.State == cli.NotFound:
		return &cli.Failure{Kind: cli.NotInstalled, Agent: agent, Reason: auth.Fix}
	}
	return &cli.Failure{Kind: cli.NotLoggedIn, Agent: agent, Reason: auth.Fix}
}

// sandboxWait is how long a sandbox may take to say which of its agents can be used. When somebody waited for that in
// vain, no other does for silentFor: an image that is being built takes minutes.
const (
	sandboxWait = 2 * time.Second
	silentFor   = time.Minute
)

// Default is the agent to use in a place when a conversation chose none: the configured one if it can be used, else
// the first fallback that can, and instead is the *Failure of the configured one. If none can, that is the error: an agent that is no
// fallback answers only where a user chose it. In a sandbox that
// does not say so soon, or cannot be had, it is the configured one: its turn waits for the place, and says what is
// wrong with it. So it is with one that took too long to say whether it can be used, if no fallback can: a turn waits longer. Where ctx
// is AtOnce an agent of which nothing is known yet counts as one that can be used.
func (s *Service) Default(ctx context.Context, in cli.Sandbox) (agent cli.Agent, instead *cli.Failure, err error) {
	at := s.runEnvs.get(in)
	if at == nil {
		return s.opts.Default, nil, nil
	}
	asked, cancel := s.patience(ctx, at)
	defer cancel()
	var first *cli.Failure
	for _, agent := range s.preferred() {
		if at.agents[agent] == nil {
			continue
		}
		answer, err := at.agents[agent].auth.get(asked)
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
			first = at.named(unusable(agent, answer.auth))
		}
	}
	if first == nil { // none of them is in this place: the turn says so
		return s.opts.Default, nil, nil
	}
	if first.Kind == cli.TimedOut {
		return first.Agent, nil, nil
	}
	return "", nil, first
}

// Substitute returns the first agent of a place that can be used and is none of others. It returns "" if there is none. configured
// reports whether it is the default or one of the fallbacks. Substitute does not wait for a sandbox that says nothing.
func (s *Service) Substitute(ctx context.Context, in cli.Sandbox, others []cli.Agent) (substitute cli.Agent, configured bool) {
	at := s.runEnvs.get(in)
	if at == nil {
		return "", false
	}
	asked, cancel := s.patience(ctx, at)
	defer cancel()
	for _, agent := range s.order(at) {
		if slices.Contains(others, agent) {
			continue
		}
		if answer, err := at.agents[agent].auth.get(asked); err == nil && answer.err == nil && answer.auth.State == cli.Authenticated {
			return agent, slices.Contains(s.preferred(), agent)
		}
	}
	return "", false
}

// patience bounds how long a sandbox is waited for to say which of its agents can be used.
func (s *Service) patience(ctx context.Context, at *runEnv) (context.Context, context.CancelFunc) {
	switch {
	case at.sandbox == "":
		return ctx, func() {}
	case s.isSilent(at):
		return context.WithTimeout(ctx, 0)
	}
	return context.WithTimeout(ctx, sandboxWait)
}

// isSilent says whether somebody waited in vain lately.
func (s *Service) isSilent(at *runEnv) bool {
	since := at.silent.Load()
	return since != 0 && s.opts.Now().Sub(time.Unix(0, since)) < silentFor
}

// heardNothing notes that a sandbox says nothing, and has all its agents asked until then. asked is over.
func (s *Service) heardNothing(asked context.Context, at *runEnv) {
	if !s.isSilent(at) {
		at.silent.Store(s.opts.Now().UnixNano())
	}
	for _, entry := range at.agents {
		_, _ = entry.auth.get(asked) // who asks later gets the answer
	}
}

// preferred lists the agents that may answer where a user chose none: the default, then the fallbacks.
func (s *Service) preferred() []cli.Agent {
	return append([]cli.Agent{s.opts.Default}, s.opts.Fallbacks...)
}

// order is every agent of a place once: the preferred ones, then the others.
func (s *Service) order(at *runEnv) []cli.Agent {
	var order []cli.Agent
	for _, agent := range append(s.preferred(), at.order...) {
		if at.agents[agent] != nil && !slices.Contains(order, agent) {
			order = append(order, agent)
		}
	}
	return order
}

// Refresh makes the next Menu and Default ask the agents anew.
func (s *Service) Refresh() {
	for _, at := range s.runEnvs.list() {
		for _, e := range at.agents {
			e.auth.forget()
			e.models.forget()
		}
	}
}

// CanLogIn says whether an agent of a place can be logged in from another device.
func (s *Service) CanLogIn(in cli.Sandbox, agent cli.Agent) bool {
	entry, failure := s.at(in, agent)
	if failure != nil {
		return false
	}
	_, ok := entry.provider.(cli.DeviceLogin)
	return ok
}

// LogIn logs an agent of a place in from another device; see cli.DeviceLogin. What is known of the agent is asked anew after
// that. ErrUnsupported for an agent that cannot be logged in so.
func (s *Service) LogIn(ctx context.Context, in cli.Sandbox, agent cli.Agent, show func(cli.DeviceCode)) error {
	entry, failure := s.at(in, agent)
	if failure != nil {
		return failure
	}
	login, ok := entry.provider.(cli.DeviceLogin)
	if !ok {
		return errors.ErrUnsupported
	}
	if err := entry.runEnv.prepare(ctx); err != nil {
		return entry.runEnv.lost(agent, err)
	}
	err := guard(agent, func() error { return login.LogIn(ctx, show) })
	entry.auth.forget()
	entry.models.forget()
	return err
}
