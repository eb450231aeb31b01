package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"ductor/cli"
	"ductor/cli/tools"
)

// limited returns a copy of req in which the tool lists contain the agent's own names of tools. It returns a Failure if
// the agent cannot be restricted to these tools, or if the agent may ignore the permission mode. limited does not check
// the mode of a request with TextOnly, or of a resumed turn, whose mode was checked when the turn started.
func (e *agentEntry) limited(req cli.Request) (cli.Request, *cli.Failure) {
	agent, why := e.provider.Agent(), ""
	holder, ok := e.provider.(cli.ModeHolder)
	if ok && req.Permission != "" && req.Began.IsZero() && !req.TextOnly {
		_ = guard(agent, func() error { why = holder.Unheld(req); return nil })
	}
	if why != "" {
		return req, cli.Failf(cli.NotRun, agent, "%s is %s", req.Permission, why)
	}
	err := guard(agent, func() (err error) { req, err = tools.Limit(e.provider, req); return err })
	if err != nil {
		return req, cli.Failf(cli.NotRun, agent, "%v", err)
	}
	return req, nil
}

// CannotHold implements orchestrator.Gateway.
func (s *Service) CannotHold(agent cli.Agent, req cli.Request) string {
	entry, failure := s.at(req.Sandbox, agent, req.Accounts[agent])
	if failure == nil {
		_, failure = entry.limited(req)
	}
	if failure == nil {
		return ""
	}
	return failure.Reason
}

// Cannot explains in one sentence which part of a permission mode an agent does not support; see cli.Limited. It uses
// the mode (live or one-shot) in which the agent probably runs.
func (s *Service) Cannot(in cli.Sandbox, agent cli.Agent, p cli.PermissionMode) (why string) {
	entry, failure := s.at(in, agent, "")
	if failure != nil {
		return ""
	}
	if limited, ok := entry.provider.(cli.Limited); ok {
		// If the provider panics, Cannot reports no restriction.
		_ = guard(agent, func() error { why = limited.Cannot(s.modeSoFar(entry), p); return nil })
	}
	return why
}

// ProjectFields lists the project settings for an agent in a directory; see cli.ReadProject. It returns nothing if the
// agent does not read project settings.
func (s *Service) ProjectFields(in cli.Sandbox, agent cli.Agent, dir string) (fields []cli.Field, unread string) {
	entry, failure := s.at(in, agent, "")
	if failure != nil {
		return nil, "" // the turn will report the failure
	}
	reader, ok := entry.provider.(cli.ProjectReader)
	if !ok {
		return nil, ""
	}
	return cli.ReadProject(dir, s.home, reader.ProjectFiles())
}

// ShowSkill adds the contents of a skill to a request for approval to use the skill; see cli.SkillReader. It returns
// other requests unchanged.
func (s *Service) ShowSkill(ctx context.Context, agent cli.Agent, req cli.Request,
	asked cli.ApprovalAsked) cli.ApprovalAsked {
	entry, failure := s.at(req.Sandbox, agent, req.Accounts[agent])
	if failure != nil {
		return asked
	}
	reader, ok := entry.provider.(cli.SkillReader)
	if !ok || asked.Tool != reader.SkillTool() {
		return asked
	}
	home, err := entry.runEnv.home(ctx, req)
	// Each home has its own skills. Without the home, it is unknown which skill has this name.
	if err != nil {
		asked.Missing = cmp.Or(asked.Missing, "which skills there are")
		return asked
	}
	req.Home = home
	return reader.ShowSkill(ctx, req, asked)
}

// Agents describes every agent of an environment: whether it is usable, and in which mode it runs. It uses no tokens,
// and asks an agent only if the answer is not cached. It creates the sandbox if needed. If the environment is unknown,
// it returns no agents.
func (s *Service) Agents(ctx context.Context, in cli.Sandbox) []cli.AgentState {
	at := s.runEnvs.get(in)
	if at == nil {
		return nil
	}
	var all []cli.AgentState
	for _, e := range at.entries() {
		state := cli.AgentState{Agent: e.agent(), Auth: cli.Auth{State: cli.NotFound}}
		if answer, err := e.auth.get(ctx); err == nil {
			state.Auth = answer.auth
		}
		if state.Usable() {
			state.Mode, _ = s.mode(ctx, e) // on an error the mode is empty
		}
		all = append(all, state)
	}
	return all
}

// ChooseMode returns the mode in which an agent runs. This is the configured mode if the agent supports it. Otherwise
// it is the first supported one, because providers list the preferred mode first. If the agent supports no mode, it
// cannot run, and ChooseMode returns "".
func ChooseMode(supported []cli.Mode, configured cli.Mode) cli.Mode {
	switch {
	case len(supported) == 0:
		return ""
	case slices.Contains(supported, configured):
		return configured
	}
	return supported[0]
}

// askModes returns a function that asks a provider for its modes. The function may start a process of the agent.
func (s *Service) askModes(p cli.Provider) func(context.Context) []cli.Mode {
	var warned sync.Once
	return func(context.Context) (can []cli.Mode) {
		_ = guard(p.Agent(), func() error { can = p.Modes(); return nil }) // after a panic, the list is empty
		want := s.opts.Modes[p.Agent()]
		if runs := ChooseMode(can, want); runs != "" && runs != want && want != "" {
			warned.Do(func() {
				s.opts.Logger.Warn("an agent cannot be run in the mode that is configured",
					"agent", string(p.Agent()), "mode", string(want), "runs", string(runs))
			})
		}
		return can
	}
}

// mode returns the mode in which an agent runs. It asks the agent for its modes unless they are cached.
func (s *Service) mode(ctx context.Context, e *agentEntry) (cli.Mode, error) {
	can, err := e.modes.get(ctx)
	if err != nil {
		return "", err
	}
	agent := e.provider.Agent()
	mode := ChooseMode(can, s.opts.Modes[agent])
	if mode == "" {
		return "", cli.Failf(cli.UnknownFailure, agent, "there is no mode it can be run in")
	}
	return mode, nil
}

// modeSoFar returns the mode in which an agent probably runs. It does not ask the agent for its modes. If the modes
// are not cached, modeSoFar returns the configured mode, or cli.Live if none is configured.
func (s *Service) modeSoFar(e *agentEntry) cli.Mode {
	want := s.opts.Modes[e.provider.Agent()]
	can, _ := e.modes.latest()
	if mode := ChooseMode(can, want); mode != "" {
		return mode
	}
	return cmp.Or(want, cli.Live)
}

// StoredSessions lists the sessions for a directory that an environment's agents have stored in their own files, newest
// first. It skips an agent that fails, for example because no user is logged in. It returns ErrUnsupported if each
// session has its own home, because such a home contains only one session.
//
// If a user copied the home of one account to another account, both contain the same sessions. StoredSessions lists
// each of these sessions only once. It prefers the copy of the account that accounts contains for the agent.
func (s *Service) StoredSessions(ctx context.Context, in cli.Sandbox, accounts cli.Accounts,
	dir string) ([]cli.StoredSession, error) {
	at := s.runEnvs.get(in)
	switch {
	case at == nil:
		return nil, &cli.Failure{Kind: cli.NoSandbox, Sandbox: in, Reason: "it is not configured"}
	case at.homes != nil:
		return nil, errors.ErrUnsupported
	case in == "":
		dir = cli.RealPath(dir) // agents see the path with links resolved
	}
	var mu sync.Mutex
	var all []cli.StoredSession
	var errs []error
	var reading sync.WaitGroup
	for _, e := range at.accounts() {
		agent := e.agent()
		keeper, ok := e.provider.(cli.SessionKeeper)
		if !ok {
			continue
		}
		reading.Go(func() {
			var some []cli.StoredSession
			err := guard(agent, func() (err error) { some, err = keeper.StoredSessions(ctx, dir); return err })
			for i := range some {
				some[i].Account = e.home.Account
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, some...)
			var failure *cli.Failure
			switch {
			case errors.As(err, &failure):
				s.opts.Logger.Debug("an agent does not list its sessions", "agent", string(agent), "err", err)
			case err != nil:
				errs = append(errs, err)
			}
		})
	}
	reading.Wait()
	if err := errors.Join(errs...); err != nil {
		if len(all) == 0 {
			return nil, err
		}
		s.opts.Logger.Warn("some sessions of agents are not listed", "err", err)
	}
	all = withoutCopies(all, accounts)
	slices.SortFunc(all, func(a, b cli.StoredSession) int {
		return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// withoutCopies returns each session once. If several accounts of an agent have the session, withoutCopies prefers the
// account that accounts contains for the agent, and otherwise the first account by name.
func withoutCopies(all []cli.StoredSession, accounts cli.Accounts) []cli.StoredSession {
	rank := func(s cli.StoredSession) int {
		if s.Account == accounts[s.Agent] {
			return 0
		}
		return 1
	}
	slices.SortFunc(all, func(a, b cli.StoredSession) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.ID, b.ID), cmp.Compare(rank(a), rank(b)),
			cmp.Compare(a.Account, b.Account))
	})
	return slices.CompactFunc(all, func(a, b cli.StoredSession) bool { return a.Agent == b.Agent && a.ID == b.ID })
}

// ResumeCommand returns a shell command for a terminal that resumes the session req.Resume in req.Dir. It returns
// ErrUnsupported if the agent has no such command.
func (s *Service) ResumeCommand(ctx context.Context, agent cli.Agent, req cli.Request) (string, error) {
	entry, failure := s.at(req.Sandbox, agent, req.Accounts[agent])
	if failure != nil {
		return "", failure
	}
	keeper, ok := entry.provider.(cli.SessionKeeper)
	if !ok {
		return "", errors.ErrUnsupported
	}
	words := keeper.ResumeCommand(req.Resume)
	if len(words) == 0 {
		return "", errors.ErrUnsupported
	}
	home, err := entry.runEnv.home(ctx, req)
	if err != nil {
		return "", err
	}
	for _, l := range entry.runEnv.launchers {
		if e, ok := l.(cli.Enterer); ok && req.Sandbox != "" {
			return cli.ShellLine(append(e.Enter(req.Dir, home), words...)), nil
		}
	}
	if home != "" {
		words = append([]string{"env", "HOME=" + home}, words...)
	}
	words = entry.home.Words(words...)
	return cli.ShellLine([]string{"cd", req.Dir}) + " && " + cli.ShellLine(words), nil
}
