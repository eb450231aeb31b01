package conversation

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"ductor/cli"
	"ductor/cli/tools"
	"ductor/internal/secrets"
	"ductor/orchestrator"
	"ductor/orchestrator/approval"
	"ductor/orchestrator/turn"
)

// attempt is one try to have the agent of a turn answer its prompt.
type attempt struct {
	*runningTurn
	req      cli.Request
	resumes  bool        // the previous process began it
	begun    atomic.Bool // the store has where it begins
	known    *turn.Knowledge
	requests *approval.Requests
}

// runAttempts runs the turn until an attempt has a result that no other attempt follows.
func (r *runningTurn) runAttempts(first cli.Request) cli.Result {
	a := &attempt{runningTurn: r, req: first, resumes: r.waiting.left == cli.RemainsRun}
	var followed followUps
	var result cli.Result
	for {
		result = a.run()
		r.begun = r.begun || a.begun.Load()
		who, ok := r.followUp(&result, &followed)
		if !ok {
			break
		}
		req, err := r.prepareAgain(who)
		if err != nil {
			r.log().Error("run a turn once more", "err", err)
			break
		}
		a = &attempt{runningTurn: r, req: req}
	}
	result.Fallback = result.Fallback || followed.repeated
	if !result.Aborted && !result.Detached && r.e.life.Err() == nil {
		r.e.opts.Breakers.Ended(r.turn.Sandbox, r.turn.Agent, result.Err)
	}
	return result
}

// run runs the attempt and returns its result.
func (a *attempt) run() cli.Result {
	a.begun.Store(a.resumes)
	a.req.Started = a.recordStart(a.turn, a.req.Dir)
	if a.resumes {
		a.watchFiles(a.turn, a.req.Dir)
	}
	a.c.asked(a.turn, a.req, &a.begun)
	a.known = turn.NewKnowledge(a.e.opts.Store, a.turn, a.req.Resume, &a.handed, a.events.Show)
	redactor := a.e.redactor(a.req)
	a.events.Redact(redactor)
	a.requests = a.e.approvals.Open(a.ctx, approval.Running{
		Turn: a.turn, Dir: a.req.Dir, Mode: a.req.Permission, Tools: toolsOf(a.turn.Agent, a.req),
		Allowed: tools.Own(a.turn.Agent, a.req.AllowedTools), Resumed: a.resumes, Secrets: redactor, Show: a.events.Show,
	})
	result := a.ask()
	a.known.Ended()
	a.requests.Drain()
	if !result.Detached {
		a.e.approvals.WithdrawTurn(a.keep, a.turn.ID)
	}
	a.requests.Close()
	if err := a.known.Wait(); err != nil {
		a.log().Error("store what an agent knows of a session", "err", err)
	}
	return redactor.Result(result)
}

// recordStart returns a callback that records where the attempt begins and that the turn runs. It retries while the disk is full, until
// the turn is cancelled.
func (a *attempt) recordStart(t orchestrator.Turn, dir string) func(context.Context, cli.Start) error {
	return func(ctx context.Context, at cli.Start) error {
		for {
			ok, err := a.e.opts.Store.StartTurn(ctx, t, at)
			switch {
			case errors.Is(err, orchestrator.ErrDiskFull) && a.e.awaitDisk(a.ctx):
				continue
			case err != nil:
				return fmt.Errorf("start turn: %w", err)
			case !ok:
				return orchestrator.ErrNotWaiting
			}
			a.begun.Store(true)
			a.watchFiles(t, dir)
			a.c.takeParts(a.keep, t)
			return nil
		}
	}
}

// watchFiles starts to watch files when the prompt leaves, so that the first words do not wait for that.
func (a *attempt) watchFiles(t orchestrator.Turn, dir string) {
	if files := a.e.opts.Snapshots; files != nil {
		a.events.WatchFiles(func() orchestrator.TurnWatch { return files.Watch(t, dir, a.resumes) })
	}
}

// event takes an event from the agent.
func (a *attempt) event(ev cli.Event) {
	a.known.Learn(a.keep, ev)
	switch ev.(type) {
	case cli.CaughtUp:
		if a.resumes {
			a.c.resumed(a.keep, a.turn)
		}
	case cli.Result, cli.PromptAccepted:
		return // the card shows the outcome once it is stored
	}
	a.events.Event(ev)
	a.requests.Take(ev) // after the card, which so shows a question before its answer
}

// ask has the agent answer, and once more in a new session if the agent no longer has the one to resume.
func (a *attempt) ask() cli.Result {
	gateway := a.e.opts.Gateway
	run := gateway.Run
	if a.resumes {
		run = gateway.Resume
	}
	if !a.resumes && a.req.Project == cli.WithoutProject {
		a.req.Project = a.requests.AskForProject(a.ctx, a.event)
	}
	result := a.prepareHistory()
	switch {
	case result.Err != nil || result.Text != "":
	case a.req.Task == cli.TaskCompact && a.req.Resume != "":
		result = a.compact(run)
	default:
		result = a.call(run, a.event)
	}
	lost := result.Err != nil && result.Err.Kind == cli.ResumeFailed && a.req.Resume != ""
	if !lost || a.req.Task != cli.TaskPrompt || a.ctx.Err() != nil {
		return result
	}
	// The agent refused before it read the prompt, so it gets the prompt only once.
	if a.e.hasAnswered(a.keep, a.session, a.turn) {
		a.events.Show(cli.Status{Kind: cli.StatusWarning, Detail: a.printer().Text("turn.session-lost")})
	}
	if err := a.beginSession(); err != nil {
		return cli.Result{Err: cli.AsFailure(a.turn.Agent, err)}
	}
	return a.call(gateway.Run, a.event)
}

// gatewayRun is Run or Resume of orchestrator.Gateway.
type gatewayRun func(context.Context, cli.Agent, cli.Request, func(cli.Event)) cli.Result

// call runs the agent and traces that.
func (a *attempt) call(run gatewayRun, emit func(cli.Event)) cli.Result {
	if a.e.opts.Tracer == nil {
		return run(a.ctx, a.turn.Agent, a.req, emit)
	}
	trace := a.e.opts.Tracer.Begin(a.turn.Agent, a.req)
	a.events.Trace(trace)
	result := run(a.ctx, a.turn.Agent, a.req, emit)
	trace.End(result)
	return result
}

// prepareHistory puts the history that the agent missed before the prompt. If the result has an error or a text, the attempt ends with it.
func (a *attempt) prepareHistory() (result cli.Result) {
	switch {
	case a.resumes: // the prompt has it
	case a.req.Task == cli.TaskCommand: // a command must come first
	case a.req.Task == cli.TaskCompact:
		if a.req.Resume == "" {
			result.Text = a.printer().Text("turn.nothing-to-compact")
		}
	default:
		result.Err = cli.AsFailure(a.turn.Agent, a.handOff())
	}
	return result
}

// beginSession changes the request so that it begins a new session of the agent, which gets the history.
func (a *attempt) beginSession() (err error) {
	if err := a.e.opts.Store.SetAgentSession(a.keep, a.turn.Session, a.turn.AgentEnv(), ""); err != nil {
		return err
	}
	if a.session, err = a.e.opts.Store.Session(a.keep, a.turn.Session); err != nil {
		return err
	}
	a.req.Resume = ""
	a.known.Forget()
	a.req.Prompt, _ = wording(a.turn.Prompt)
	return a.handOff()
}

// redactor creates a Redactor of the secrets of a request.
func (e *Engine) redactor(req cli.Request) *turn.Redactor {
	return turn.NewRedactor(e.wg.Go, func() *secrets.Set { return e.secretsOf(req) })
}

// secretsOf returns the secrets of ductor, of the project that a request works in, and of its tool servers.
func (e *Engine) secretsOf(req cli.Request) *secrets.Set {
	var set *secrets.Set
	if e.opts.Secrets != nil {
		set = e.opts.Secrets(req.Dir)
	}
	for _, s := range req.Servers {
		set = set.With(secrets.OfEnvironment(s.Environ())...)
	}
	return set
}
