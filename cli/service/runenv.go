package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"ductor/cli"
	"ductor/lang"
)

// runEnv is an environment in which agents run: this host or a sandbox.
type runEnv struct {
	sandbox   cli.Sandbox
	launchers []cli.Launcher
	homes     Homes
	agents    atomic.Pointer[[]*agentEntry] // agents in the order of the menu; see Service.SetProviders

	// silent is the time, in Unix nanoseconds, at which a caller gave up waiting for an answer of the environment. It
	// is 0 if the environment has answered since then.
	silent atomic.Int64

	look   chan struct{} // mutex; held while the runs of the previous process of ductor are listed
	unseen bool          // whether ductor still has to list and end the runs of the previous process; look guards it
}

func (s *Service) newRunEnv(sandbox cli.Sandbox, launchers []cli.Launcher, homes Homes,
	providers []cli.Provider) (*runEnv, error) {
	at := &runEnv{sandbox: sandbox, launchers: launchers, homes: homes, look: make(chan struct{}, 1)}
	var agents []*agentEntry
	for _, p := range providers {
		if slices.ContainsFunc(agents, func(e *agentEntry) bool { return e.agent() == p.Agent() }) {
			return nil, fmt.Errorf("two providers are called %q", p.Agent())
		}
		agents = append(agents, s.newEntry(at, p, cli.AccountHome{}))
	}
	at.agents.Store(&agents)
	for _, l := range launchers {
		if r, ok := l.(cli.Recording); ok {
			r.RecordBy(s.recordStart)
		}
	}
	return at, nil
}

func (at *runEnv) entries() []*agentEntry { return *at.agents.Load() }

// entry returns an agent with its default account, or nil if the environment does not have the agent.
func (at *runEnv) entry(agent cli.Agent) *agentEntry {
	all := at.entries()
	if i := slices.IndexFunc(all, func(e *agentEntry) bool { return e.agent() == agent }); i >= 0 {
		return all[i]
	}
	return nil
}

// account returns an agent with the given account, or nil if the environment has no such agent or account.
func (at *runEnv) account(agent cli.Agent, account cli.Account) *agentEntry {
	first := at.entry(agent)
	if first == nil || account == "" {
		return first
	}
	i := slices.IndexFunc(first.others, func(e *agentEntry) bool { return e.home.Account == account })
	if i < 0 {
		return nil
	}
	return first.others[i]
}

// accounts lists every account of every agent. The default account of an agent comes before its other accounts.
func (at *runEnv) accounts() (all []*agentEntry) {
	for _, e := range at.entries() {
		all = append(append(all, e), e.others...)
	}
	return all
}

// at returns an agent with the given account in an environment. It returns a Failure if the environment has no such
// agent or account. It never returns an agent of another environment or with another account.
func (s *Service) at(sandbox cli.Sandbox, agent cli.Agent, account cli.Account) (*agentEntry, *cli.Failure) {
	at := s.runEnvs.get(sandbox)
	if at == nil {
		return nil, &cli.Failure{Kind: cli.NoSandbox, Agent: agent, Sandbox: sandbox, Reason: "it is not configured"}
	}
	if at.entry(agent) == nil {
		return nil, at.named(cli.Failf(cli.NotInstalled, agent, "ductor knows no agent of this name"))
	}
	entry := at.account(agent, account)
	switch {
	case account == "" || entry != nil && at.homes == nil:
		return entry, nil
	case s.runEnvs.get("").account(agent, account) == nil:
		return nil, cli.Failf(cli.NotInstalled, agent, "it has no account %q; choose one with /account", account)
	case sandbox != "":
		return nil, at.named(cli.Failf(cli.Refused, agent,
			"the sandbox has only its default account, not %q; choose that with /account default", account))
	}
	return nil, cli.Failf(cli.Refused, agent, "each session has its own home here, with the default account; "+
		"choose that with /account default")
}

// lost converts an error to a Failure. In a sandbox, it assumes that the sandbox failed and not the agent.
func (at *runEnv) lost(agent cli.Agent, err error) *cli.Failure {
	var f *cli.Failure
	if at.sandbox == "" || errors.As(err, &f) {
		return at.named(cli.AsFailure(agent, err))
	}
	return &cli.Failure{Kind: cli.NoSandbox, Agent: agent, Sandbox: at.sandbox, Reason: err.Error(), Cause: err}
}

// named sets the environment in a failure. If an unknown process killed a program in a sandbox, a user has probably
// stopped the sandbox's container. named then reports this instead of a crash.
func (at *runEnv) named(f *cli.Failure) *cli.Failure {
	if f == nil || f.Sandbox == at.sandbox {
		return f
	}
	named := *f
	named.Sandbox = at.sandbox
	if f.Kind == cli.Crashed && errors.Is(f, cli.ErrFromOutside) {
		named.Kind, named.Reason = cli.NoSandbox, "the sandbox's container was stopped; your next message starts it"
	}
	return &named
}

// named sets the environment and the account in a failure of the agent.
func (e *agentEntry) named(f *cli.Failure) *cli.Failure {
	return e.home.Named(e.runEnv.named(f), e.provider)
}

// unended corrects the Result of a turn that was cut short. closeErr is the error of closing the turn's session. If
// closeErr shows that ductor could not reach the sandbox, the turn may still be running there. In this case, unended
// replaces Result.Aborted by a Failure that explains this.
func (at *runEnv) unended(agent cli.Agent, r cli.Result, closeErr error) cli.Result {
	var lost *cli.Failure
	if !errors.As(closeErr, &lost) || lost.Kind != cli.NoSandbox {
		return r
	}
	r.Aborted = false
	r.Err = &cli.Failure{
		Kind: cli.NoSandbox, Agent: agent, Sandbox: at.sandbox, Detail: lost.Detail, Cause: closeErr,
		Reason: "what was stopped goes on there until it can be reached: " + lost.Reason,
	}
	return r
}

func (at *runEnv) prepare(ctx context.Context) error {
	for _, l := range at.launchers {
		if p, ok := l.(cli.Preparer); ok && at.sandbox != "" {
			if err := p.Prepare(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// ready prepares the environment for a turn, and returns req with the home of its session. When ready has returned, no
// run of the previous process can disturb the turn, and the files of the prompt exist in the environment. If ctx is
// done first, ready returns at once.
func (s *Service) ready(ctx context.Context, entry *agentEntry, req cli.Request, emit func(cli.Event)) (cli.Request,
	error) {
	if err := s.sighted(ctx, entry.runEnv); err != nil {
		return req, err
	}
	return s.furnish(ctx, entry, req, emit)
}

// furnish creates the session's home, copies the prompt's files and the additional directories to the environment, and
// returns req with Home set.
func (s *Service) furnish(ctx context.Context, entry *agentEntry, req cli.Request, emit func(cli.Event)) (cli.Request,
	error) {
	at, files := entry.runEnv, append(slices.Clone(req.AddDirs), req.Files...)
	if at.homes == nil && (at.bringer() == nil || len(files) == 0) {
		return req, nil
	}
	type furnished struct {
		home string
		err  error
	}
	f, ok := awaitPlace(ctx, at, req.Lang.Printer(), emit, beside(s.work, func() (f furnished) {
		f.err = guard(entry.provider.Agent(), func() (err error) {
			if f.home, err = at.home(ctx, req); err != nil {
				return err
			}
			return at.bring(ctx, files)
		})
		return f
	}))
	if !ok {
		return req, context.Cause(ctx)
	}
	req.Home = f.home
	return req, f.err
}

var errNoSession = errors.New("it belongs to no session, so it has no home")

// home returns the home directory of the request's session.
func (at *runEnv) home(ctx context.Context, req cli.Request) (string, error) {
	switch {
	case at.homes == nil:
		return req.Home, nil
	case req.Session == "":
		return "", errNoSession
	}
	return at.homes.Home(ctx, req.Session)
}

func (at *runEnv) bringer() cli.Bringer {
	for _, l := range at.launchers {
		if b, ok := l.(cli.Bringer); ok && at.sandbox != "" {
			return b
		}
	}
	return nil
}

func (at *runEnv) bring(ctx context.Context, files []string) error {
	b := at.bringer()
	if b == nil || len(files) == 0 {
		return nil
	}
	return b.Bring(ctx, files)
}

// slowPlace is the time after which users see that a turn waits for a sandbox. Users then see an update at the same
// interval. slowPlace is shorter than the time after which a chat shows that the agent is thinking.
const slowPlace = 1500 * time.Millisecond

// preparing describes for users why the environment is not ready yet.
func (at *runEnv) preparing(p lang.Printer) string {
	for _, l := range at.launchers {
		if doing, ok := l.(cli.Preparer); ok && doing.Doing() != "" {
			return p.Text("wait.sandbox-doing", at.sandbox.Name(), doing.Doing())
		}
	}
	return p.Text("wait.sandbox", at.sandbox.Name())
}

// awaitPlace receives a value from the channel ready. It emits a status if the sandbox takes long. It returns false if
// ctx is done first.
func awaitPlace[T any](ctx context.Context, at *runEnv, p lang.Printer, emit func(cli.Event), ready <-chan T) (v T,
	ok bool) {
	var slow <-chan time.Time
	if at.sandbox != "" && emit != nil {
		tick := time.NewTicker(slowPlace)
		defer tick.Stop()
		slow = tick.C
	}
	told := ""
	for {
		select {
		case v := <-ready:
			at.silent.Store(0)
			if told != "" {
				emit(cli.Status{Kind: cli.StatusIdle})
			}
			return v, true
		case <-ctx.Done():
			return v, false
		case <-slow:
			if now := at.preparing(p); now != told {
				told = now
				emit(cli.Status{Kind: cli.StatusWaiting, Detail: now})
			}
		}
	}
}
