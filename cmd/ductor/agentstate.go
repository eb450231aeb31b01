package main

import (
	"context"

	"ductor/cli"
)

// look finds out what one agent is good for, without spending a token.
func look(ctx context.Context, p cli.Provider, modes map[cli.Agent]cli.Mode) cli.AgentState {
	s := cli.AgentState{Agent: p.Agent(), Auth: p.Auth(ctx)}
	if s.Usable() {
		s.Mode = cli.ChooseMode(p.Modes(), modes[s.Agent])
	}
	return s
}

// tellAgents says at the start what each agent of this machine is good for, if any is to run. What is missing stops
// nobody.
func (h *house) tellAgents(ctx context.Context) {
	if !h.boxes.policy.onHost() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	for _, s := range h.service.Agents(ctx, "") {
		tell := h.log.Info
		if !s.Usable() && (s.Auth.State == cli.Installed || string(s.Agent) == h.cfg.Agents.Default) {
			tell = h.log.Warn
		}
		if ctx.Err() == nil {
			tell("agent", "name", s.Agent, "state", s.String())
		}
	}
}
