package cli

import (
	"context"
	"slices"
	"sync"
	"time"
)

// troubleTTL is how long bad news is kept: whoever logs in wants to see it soon.
const troubleTTL = 5 * time.Second

// modelList is what a provider said when it was asked for its models.
type modelList struct {
	models []Model
	err    error
}

func (s *Service) newEntry(p Provider, mode Mode) *agentEntry {
	ask := func(f func(ctx context.Context)) {
		ctx, cancel := context.WithTimeout(s.base, s.opts.MenuWait)
		defer cancel()
		f(ctx)
	}
	return &agentEntry{
		provider: p, mode: mode,
		auth: &cached[Auth]{
			now: s.opts.Now, spawn: s.work.spawn,
			keep: func(a Auth) time.Duration { return s.ttl(a.State == Authenticated) },
			fetch: func() (a Auth) {
				ask(func(ctx context.Context) {
					if err := guard(p.Agent(), func() error { a = p.Auth(ctx); return nil }); err != nil {
						a = Auth{State: NotFound, Fix: err.Error()}
					}
				})
				return a
			},
		},
		models: &cached[modelList]{
			now: s.opts.Now, spawn: s.work.spawn,
			keep: func(l modelList) time.Duration { return s.ttl(l.err == nil) },
			fetch: func() (l modelList) {
				ask(func(ctx context.Context) {
					l.err = guard(p.Agent(), func() (err error) { l.models, err = p.Models(ctx); return err })
				})
				return l
			},
		},
	}
}

func (s *Service) ttl(good bool) time.Duration {
	if good {
		return s.opts.MenuTTL
	}
	return min(troubleTTL, s.opts.MenuTTL)
}

// Menu says for each agent, in the order of the providers, whether it can be used and which models it
// has. The agents are asked at the same time and each has MenuWait. What it says is at most MenuTTL old;
// an agent that cannot be asked shows Err and no models.
func (s *Service) Menu(ctx context.Context) []MenuEntry {
	entries := make([]MenuEntry, len(s.opts.Providers))
	var asked sync.WaitGroup
	for i, p := range s.opts.Providers {
		asked.Go(func() { entries[i] = s.agents[p.Agent()].menu(ctx) })
	}
	asked.Wait()
	return entries
}

func (e *agentEntry) menu(ctx context.Context) MenuEntry {
	agent := e.provider.Agent()
	entry := MenuEntry{Agent: agent}
	auth, err := e.auth.get(ctx)
	if entry.Auth = auth; err == nil && auth.State == Authenticated {
		var list modelList
		list, err = e.models.get(ctx)
		entry.Models = slices.Clone(list.models)
		if err == nil {
			err = list.err
		}
	} else if err == nil {
		err = unusable(agent, auth)
	}
	if err != nil {
		entry.Models, entry.Err = nil, err
	}
	return entry
}

// unusable is the Failure of an agent that is not Authenticated.
func unusable(agent Agent, auth Auth) *Failure {
	if auth.State == NotFound {
		return &Failure{Kind: NotInstalled, Agent: agent, Reason: auth.Fix}
	}
	return &Failure{Kind: NotLoggedIn, Agent: agent, Reason: auth.Fix}
}

// Default is the agent to use when a conversation chose none: the configured one if it can be used, else
// the first fallback that can. If none can, the error is the *Failure of the configured one.
func (s *Service) Default(ctx context.Context) (Agent, error) {
	var first error
	for _, agent := range s.order() {
		auth, err := s.agents[agent].auth.get(ctx)
		switch {
		case err != nil:
			return "", err
		case auth.State == Authenticated:
			return agent, nil
		case first == nil:
			first = unusable(agent, auth)
		}
	}
	return "", first
}

// order is every agent once: the default, the fallbacks, the others.
func (s *Service) order() []Agent {
	wanted := append([]Agent{s.opts.Default}, s.opts.Fallbacks...)
	for _, p := range s.opts.Providers {
		wanted = append(wanted, p.Agent())
	}
	var order []Agent
	for _, agent := range wanted {
		if s.agents[agent] != nil && !slices.Contains(order, agent) {
			order = append(order, agent)
		}
	}
	return order
}

// Refresh makes the next Menu and Default ask the agents anew.
func (s *Service) Refresh() {
	for _, e := range s.agents {
		e.auth.forget()
		e.models.forget()
	}
}
