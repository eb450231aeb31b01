package cli

import (
	"context"
	"fmt"
	"strings"
)

// AgentState is what is known of one agent before anybody asks it.
type AgentState struct {
	Agent Agent
	Mode  Mode // it is run in
	Auth  Auth
}

// Usable says whether it can be asked.
func (s AgentState) Usable() bool { return s.Auth.State == Authenticated }

// String is one line: where it was found, which version, how it is logged in or what to do, and how it is run.
func (s AgentState) String() string {
	where := strings.TrimSpace(s.Auth.Path + " " + s.Auth.Version)
	switch s.Auth.State {
	case Authenticated:
		how := string(s.Mode)
		if s.Mode == Live && s.Auth.Via != "" {
			how += " over " + s.Auth.Via
		}
		return fmt.Sprintf("%s, logged in by %s, %s", where, s.Auth.Method, how)
	case Installed:
		return fmt.Sprintf("%s is not logged in. %s", where, s.Auth.Fix)
	}
	return "not found. " + s.Auth.Fix
}

// Agents says of every agent of a place whether it can be used and how it is run, without spending a token. What is
// known already is not asked again. A sandbox is made for it; one that is not configured has no agents.
func (s *Service) Agents(ctx context.Context, in Sandbox) []AgentState {
	at := s.runEnvs.get(in)
	if at == nil {
		return nil
	}
	var all []AgentState
	for _, agent := range at.order {
		e := at.agents[agent]
		state := AgentState{Agent: agent, Auth: Auth{State: NotFound}}
		if answer, err := e.auth.get(ctx); err == nil {
			state.Auth = answer.auth
		}
		if state.Usable() {
			state.Mode, _ = s.mode(ctx, e) // then it says nothing of it
		}
		all = append(all, state)
	}
	return all
}
