package service

import (
	"cmp"
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ductor/cli"
	"ductor/cli/tools"
)

// limited puts the tool lists of a request into the agent's words. The failure says why the agent cannot be held to them.
func (e *agentEntry) limited(req cli.Request) (cli.Request, *cli.Failure) {
	agent := e.provider.Agent()
	err := guard(agent, func() (err error) { req, err = tools.Limit(e.provider, req); return err })
	if err != nil {
		return req, cli.Failf(cli.Refused, agent, "%v", err)
	}
	return req, nil
}

// CannotHold says why an agent cannot be held to the tool lists of req; empty if it can.
func (s *Service) CannotHold(agent cli.Agent, req cli.Request) string {
	entry, failure := s.at(req.Sandbox, agent)
	if failure == nil {
		_, failure = entry.limited(req)
	}
	if failure == nil {
		return ""
	}
	return failure.Reason
}

// Cannot says what of a permission mode an agent does not do in a place, in the mode it is run in; see Limited.
func (s *Service) Cannot(in cli.Sandbox, agent cli.Agent, p cli.PermissionMode) (why string) {
	entry, failure := s.at(in, agent)
	if failure != nil {
		return ""
	}
	if limited, ok := entry.provider.(cli.Limited); ok {
		// What a provider that panics cannot do is not known.
		_ = guard(agent, func() error { why = limited.Cannot(s.modeSoFar(entry), p); return nil })
	}
	return why
}

// ProjectFields says what the project in a directory sets for an agent; see ReadProject. Nothing for an agent that reads no settings there.
func (s *Service) ProjectFields(in cli.Sandbox, agent cli.Agent, dir string) (fields []cli.Field, missing string) {
	entry, failure := s.at(in, agent)
	if failure != nil {
		return nil, "" // which the turn will say
	}
	reader, ok := entry.provider.(cli.ProjectReader)
	if !ok {
		return nil, ""
	}
	home, _ := os.UserHomeDir() // without one, nothing ends at it
	return cli.ReadProject(dir, home, reader.ProjectFiles())
}

// ShowSkill adds to a request for a skill what that does; see cli.SkillReader. Other requests stay as they are.
func (s *Service) ShowSkill(ctx context.Context, agent cli.Agent, req cli.Request, asked cli.ApprovalAsked) cli.ApprovalAsked {
	entry, failure := s.at(req.Sandbox, agent)
	if failure != nil {
		return asked
	}
	reader, ok := entry.provider.(cli.SkillReader)
	if !ok || asked.Tool != reader.SkillTool() {
		return asked
	}
	home, err := entry.runEnv.home(ctx, req)
	if err != nil { // the skill of another home is not shown in its place
		asked.Missing = cmp.Or(asked.Missing, "which skills there are")
		return asked
	}
	req.Home = home
	return reader.ShowSkill(ctx, req, asked)
}

// Agents says of every agent of a place whether it can be used and how it is run, without spending a token. What is
// known already is not asked again. A sandbox is made for it; one that is not configured has no agents.
func (s *Service) Agents(ctx context.Context, in cli.Sandbox) []cli.AgentState {
	at := s.runEnvs.get(in)
	if at == nil {
		return nil
	}
	var all []cli.AgentState
	for _, agent := range at.order {
		e := at.agents[agent]
		state := cli.AgentState{Agent: agent, Auth: cli.Auth{State: cli.NotFound}}
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

// ChooseMode is how an agent is run that can be run in any of can, the preferred one first: as it is wanted, if it
// can be. Empty if it cannot be run at all.
func ChooseMode(can []cli.Mode, wanted cli.Mode) cli.Mode {
	switch {
	case len(can) == 0:
		return ""
	case slices.Contains(can, wanted):
		return wanted
	}
	return can[0]
}

// askModes asks a provider for its modes, which may take a process.
func (s *Service) askModes(p cli.Provider) func(context.Context) []cli.Mode {
	var warned sync.Once
	return func(context.Context) (can []cli.Mode) {
		_ = guard(p.Agent(), func() error { can = p.Modes(); return nil }) // none, then
		want := s.opts.Modes[p.Agent()]
		if runs := ChooseMode(can, want); runs != "" && runs != want && want != "" { // an older version of it, perhaps
			warned.Do(func() {
				s.opts.Logger.Warn("an agent cannot be run in the mode that is configured", "agent", string(p.Agent()), "mode", string(want), "runs", string(runs))
			})
		}
		return can
	}
}

// mode is how an agent is run. The first call may have to ask it.
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

// modeSoFar is how an agent is run as far as that is known without asking it: as configured, else live.
func (s *Service) modeSoFar(e *agentEntry) cli.Mode {
	want := s.opts.Modes[e.provider.Agent()]
	can, _ := e.modes.latest()
	if mode := ChooseMode(can, want); mode != "" {
		return mode
	}
	return cmp.Or(want, cli.Live)
}

// StoredSessions lists the sessions that the agents of an environment keep in their own files for a directory, the newest first.
// ErrUnsupported where each session of ductor has a home of its own: what others began is in none of these. What one agent's
// files do not give does not keep back those of the others.
func (s *Service) StoredSessions(ctx context.Context, in cli.Sandbox, dir string) ([]cli.StoredSession, error) {
	at := s.runEnvs.get(in)
	switch {
	case at == nil:
		return nil, &cli.Failure{Kind: cli.NoSandbox, Sandbox: in, Reason: "it is not configured"}
	case at.homes != nil:
		return nil, errors.ErrUnsupported
	case in == "":
		dir = cli.RealPath(dir) // as agents see it
	}
	var mu sync.Mutex
	var all []cli.StoredSession
	var errs []error
	var reading sync.WaitGroup
	for agent, e := range at.agents {
		keeper, ok := e.provider.(cli.SessionKeeper)
		if !ok {
			continue
		}
		reading.Go(func() {
			var some []cli.StoredSession
			err := guard(agent, func() (err error) { some, err = keeper.StoredSessions(ctx, dir); return err })
			mu.Lock()
			defer mu.Unlock()
			if all = append(all, some...); err != nil {
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
	slices.SortFunc(all, func(a, b cli.StoredSession) int {
		return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// ResumeCommand gives the line of a shell that resumes in a terminal what req.Resume names, in req.Dir. ErrUnsupported for an agent
// that resumes nothing in a terminal.
func (s *Service) ResumeCommand(ctx context.Context, agent cli.Agent, req cli.Request) (string, error) {
	entry, failure := s.at(req.Sandbox, agent)
	if failure != nil {
		return "", failure
	}
	keeper, ok := entry.provider.(cli.SessionKeeper)
	if !ok {
		return "", errors.ErrUnsupported
	}
	home, err := entry.runEnv.home(ctx, req)
	if err != nil {
		return "", err
	}
	words := keeper.ResumeCommand(req.Resume)
	for _, l := range entry.runEnv.launchers {
		if e, ok := l.(cli.Enterer); ok && req.Sandbox != "" {
			return shellLine(append(e.Enter(req.Dir, home), words...)), nil
		}
	}
	if home != "" {
		words = append([]string{"env", "HOME=" + home}, words...)
	}
	return shellLine([]string{"cd", req.Dir}) + " && " + shellLine(words), nil
}

var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`) })

// shellLine writes words so that a shell reads them back.
func shellLine(words []string) string {
	line := make([]string, len(words))
	for i, w := range words {
		if line[i] = w; !plainWord().MatchString(w) {
			line[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(line, " ")
}
