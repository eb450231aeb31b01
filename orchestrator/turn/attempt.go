package turn

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
	"ductor/orchestrator/handoff"
	"ductor/orchestrator/steps"
)

// attempt asks an agent once for an answer to the turn's prompt. After a failure, another attempt may follow.
type attempt struct {
	*Turn
	req        cli.Request
	resumes    bool // the attempt began before a restart of ductor
	promptSent atomic.Bool
	known      *handoff.Knowledge
	requests   *approval.Requests
}

// Run makes attempts until one succeeds or another attempt would be useless. The caller passes the request for the
// first attempt. Run returns the result of the last attempt, and whether an agent has got the prompt.
func (t *Turn) Run(first cli.Request) (result cli.Result, promptSent bool) {
	a := &attempt{Turn: t, req: first, resumes: t.start.Resumes}
	var followed followUps
	var steered cli.Steered
	for {
		result = a.run()
		t.start.Request = a.req
		result.Steered.Add(steered)
		steered = result.Steered
		promptSent = promptSent || a.promptSent.Load()
		who, ok := t.followUp(&result, &followed, a.req.Effort)
		if !ok {
			break
		}
		req, session, err := t.start.Conversation.PrepareAgain(t.record, &t.turn, who)
		if err != nil {
			t.log().Error("run a turn once more", "err", err)
			break
		}
		t.start.Session = session
		a = &attempt{Turn: t, req: req}
	}
	result.Fallback = result.Fallback || followed.repeated
	if !result.Aborted && !result.Detached && t.runner.opts.Life.Err() == nil {
		t.runner.opts.Breakers.Ended(t.turn.Sandbox, t.turn.Agent, t.turn.Entry.Account, result.Err)
	}
	return result, promptSent
}

func (a *attempt) run() cli.Result {
	a.promptSent.Store(a.resumes)
	a.req.Started = a.recordStart(a.turn, a.req.Dir)
	if a.resumes {
		a.watchFiles(a.turn, a.req.Dir)
	}
	a.start.Conversation.RequestReady(a.turn, a.req, &a.promptSent)
	req := a.req // a copy, because a.req may change while the attempt runs
	a.known = handoff.NewKnowledge(a.runner.opts.Store, a.turn, a.start.Session.AgentSessions[a.turn.AgentEnv()])
	project := a.req.Project
	// The agent was started before a restart, possibly with the settings of the project. Approvals must therefore show
	// skills of the project.
	if a.resumes {
		project = cli.WithProject
	}
	redactor := NewRedactor(a.runner.opts.Spawn, func() *secrets.Set { return a.runner.opts.Secrets(req) })
	a.Events.Redact(redactor)
	a.requests = a.runner.opts.Approvals.Open(a.ctx, approval.RunningTurn{
		Turn: a.turn, Dir: a.req.Dir, Project: project, Mode: a.req.Permission,
		Tools: ToolsOf(a.turn.Agent, a.req), Allowed: a.req.AllowedTools, Resumed: a.resumes,
		Known: redactor.Known, Learn: redactor.Learn, Show: a.Events.Show,
	})
	a.loadLimits()
	result := a.ask()
	if a.known.Accepted() && (a.handed.LeftOut > 0 || a.handed.Shortened) {
		// Usually, the first event of the answer has already shown the history. If the answer had no event, show the
		// history now.
		a.showHanded()
	}
	a.requests.Drain()
	if !result.Detached {
		a.runner.opts.Approvals.WithdrawTurn(a.record, a.turn.ID)
	}
	a.requests.Close()
	if err := a.known.Wait(); err != nil {
		a.log().Error("store an agent's knowledge of a session", "err", err)
	}
	return redactor.Result(result)
}

// recordStart returns a function that stores that the turn is running and where its output starts. While the disk is
// full, the function tries again, until the turn is cancelled.
func (a *attempt) recordStart(t orchestrator.Turn, dir string) func(context.Context, cli.Start) error {
	return func(ctx context.Context, at cli.Start) error {
		for {
			t.Entry.UpTo = a.known.UpTo()
			ok, err := a.runner.opts.Store.StartTurn(ctx, t, at)
			// The agent's provider may call this function again while the turn runs. Call Sending only before the
			// prompt is sent.
			if ok && err == nil && !a.promptSent.Load() {
				err = a.known.Sending(ctx)
			}
			switch {
			case errors.Is(err, orchestrator.ErrDiskFull) && a.start.Conversation.AwaitDisk(a.ctx):
				continue
			case err != nil:
				return fmt.Errorf("start turn: %w", err)
			case !ok:
				return orchestrator.ErrNotWaiting
			}
			a.promptSent.Store(true)
			a.watchFiles(t, dir)
			a.start.Conversation.PromptSent(a.record, t)
			return nil
		}
	}
}

// watchFiles takes the snapshot of the turn's files and watches the agent's file changes. The snapshot is taken in the
// background, so that the answer need not wait for it.
func (a *attempt) watchFiles(t orchestrator.Turn, dir string) {
	if files := a.runner.opts.Snapshots; files != nil {
		a.Events.WatchFiles(func() orchestrator.TurnWatch { return files.Watch(t, dir, a.resumes) })
	}
}

// ChangesOf returns a function that computes the file changes of a turn if the previous process did not compute them.
// It returns nil if the turn changed no file, according to its stored steps.
func (r *Runner) ChangesOf(ctx context.Context, t orchestrator.Turn) func(context.Context) orchestrator.Changed {
	if r.opts.Snapshots == nil || t.Outcome.State == orchestrator.TurnInterrupted ||
		t.Outcome.Changed != (orchestrator.Changed{}) {
		return nil
	}
	session, err := r.opts.Store.Session(ctx, t.Session)
	if err != nil {
		return nil // the turn ended before it had a session
	}
	done, err := r.opts.Store.StepsOf(ctx, t.ID)
	if err != nil || len(done) == 0 {
		return nil
	}
	files := r.opts.Snapshots.Watch(t, session.Dir, true)
	for _, ev := range steps.Events(done) {
		files.Observe(ev)
	}
	return files.End()
}

func (a *attempt) event(ev cli.Event) {
	a.known.Learn(a.record, ev)
	if reported, ok := ev.(cli.LimitsReported); ok {
		ev = a.mergeLimits(reported)
	}
	if _, all := ev.(cli.PromptAccepted); !all && a.req.Task == cli.TaskPrompt && cli.ShowsAcceptance(ev) {
		a.showHanded()
	}
	switch ev := ev.(type) {
	case cli.SessionStarted:
		if ev.Title != "" {
			a.start.Conversation.Titled(a.record, a.turn, a.runner.opts.Secrets(a.req).String(ev.Title))
		}
	case cli.CaughtUp:
		if a.resumes {
			a.start.Conversation.CaughtUp(a.record, a.turn)
		}
	case cli.Result, cli.PromptAccepted:
		return // the card shows the outcome later, after the outcome is stored
	}
	a.Events.Event(ev)
	a.requests.HandleEvent(ev) // after Events.Event, so that the card shows a question before its answer
}

// ask sends the prompt to the agent. If the agent session to continue no longer exists, ask starts a new one.
func (a *attempt) ask() cli.Result {
	gateway := a.runner.opts.Gateway
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
		result = a.runAgent(run, a.event)
	}
	lost := result.Err != nil && result.Err.Kind == cli.ResumeFailed && a.req.Resume != ""
	if !lost || a.req.Task != cli.TaskPrompt || a.ctx.Err() != nil {
		return result
	}
	// The agent could not continue its session, and has not read the prompt. So the prompt can be sent again.
	if a.hasAnswered() {
		a.Events.Show(cli.Status{Kind: cli.StatusNotice, Detail: a.printer().Text("turn.session-lost")})
	}
	if err := a.beginSession(); err != nil {
		return cli.Result{Err: cli.AsFailure(a.turn.Agent, err)}
	}
	return a.runAgent(gateway.Run, a.event)
}

type gatewayRun func(context.Context, cli.Agent, cli.Request, func(cli.Event)) cli.Result

func (a *attempt) runAgent(run gatewayRun, emit func(cli.Event)) cli.Result {
	if a.runner.opts.Tracer == nil {
		return run(a.ctx, a.turn.Agent, a.req, emit)
	}
	trace := a.runner.opts.Tracer.Begin(a.turn.Agent, a.req)
	a.Events.Trace(trace)
	result := run(a.ctx, a.turn.Agent, a.req, emit)
	trace.End(result)
	return result
}

// prepareHistory adds to the prompt the history that the agent has not seen. If the result has an error or a text, the
// attempt must not send the prompt, but end with this result.
func (a *attempt) prepareHistory() (result cli.Result) {
	switch {
	case a.resumes:
	case a.req.Task == cli.TaskCommand: // a prompt that begins with history would not be recognized as a command
	case a.req.Task == cli.TaskCompact:
		if a.req.Resume == "" {
			result.Text = a.printer().Text("turn.nothing-to-compact")
		}
	default:
		result.Err = cli.AsFailure(a.turn.Agent, a.handOff())
	}
	return result
}

// beginSession changes the request: the agent starts a new session and gets the history.
func (a *attempt) beginSession() (err error) {
	if err := a.runner.opts.Store.SetAgentSession(a.record, a.turn.Session, a.turn.AgentEnv(),
		orchestrator.AgentSession{}); err != nil {
		return err
	}
	if a.start.Session, err = a.runner.opts.Store.Session(a.record, a.turn.Session); err != nil {
		return err
	}
	a.req.Resume = ""
	a.known.Forget()
	a.req.Prompt, _ = PromptText(a.turn.Prompt)
	return a.handOff()
}

// ToolsOf returns the tools that an agent may use for a request, with the agent's own names. If ductor cannot enforce
// the tool lists for the agent, it returns no tools.
func ToolsOf(agent cli.Agent, req cli.Request) cli.ToolList {
	list, err := tools.For(agent, req.ToolLists...)
	if err != nil {
		return cli.ToolList{Only: []string{""}}
	}
	return list
}
