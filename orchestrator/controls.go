package orchestrator

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
)

// Stop is Abort or, for a member, AbortOwn. First of all it tells the running turn to end, and then calls told, with nil
// if nothing ran: neither waits for a commit. No queued turn begins before the queue is emptied.
func (o *Orchestrator) Stop(ctx context.Context, by Press, told func(*Stopping)) (AbortReport, error) {
	l, err := o.line(by.Conversation)
	if err != nil {
		return AbortReport{}, err
	}
	l.stops.Add(1)
	defer o.stopped(l)
	told(o.tellToEnd(l, by))
	if by.Of == RightsOfMember {
		return o.AbortOwn(ctx, by)
	}
	return o.Abort(ctx, by.Conversation)
}

// stopped lets queued turns begin again: those of others, or of after the abort.
func (o *Orchestrator) stopped(l *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stops.Add(-1) == 0 && len(l.queue) > 0 {
		o.serve(l)
	}
}

// tellToEnd tells the running turn to end, if the user may end it. It waits for nothing.
func (o *Orchestrator) tellToEnd(l *line, by Press) *Stopping {
	now := l.now.Load()
	if now == nil || !by.mayEnd(now.turn) {
		return nil
	}
	s := now.stopping(o.opts.Gateway)
	now.cancel(cli.ErrAborted)
	return s
}

func (e *endable) stopping(g Gateway) *Stopping {
	return &Stopping{Over: e.over, Alive: g.Outliving(e.turn.ID)}
}

// Runs says whether a turn of the conversation runs. It waits for nothing.
func (o *Orchestrator) Runs(id ConversationID) bool {
	l, err := o.line(id)
	return err == nil && l.now.Load() != nil
}

// Abort ends the running turn with everything it started and empties the queue. It returns at once; the
// card says when the turn has ended.
func (o *Orchestrator) Abort(ctx context.Context, id ConversationID) (AbortReport, error) {
	l, err := o.line(id)
	if err != nil {
		return AbortReport{}, err
	}
	l.mu.Lock()
	dropped := l.queue
	l.queue = nil
	l.aborts++
	report := AbortReport{Running: l.running != nil, Dropped: len(dropped), Unshown: l.giveUpShowing()}
	var running cli.TurnID
	if l.running != nil {
		report.Stopping = l.now.Load().stopping(o.opts.Gateway)
		l.running.cancel(cli.ErrAborted)
		running = l.running.turn.ID
	}
	if running != "" || len(dropped) > 0 {
		// What the store does not take now it must take later: the next process would run what is not recorded.
		_, err = o.record(context.WithoutCancel(ctx), o.log, func(ctx context.Context) error {
			return o.opts.Store.AbortTurns(ctx, running, ids(dropped))
		})
	}
	l.mu.Unlock()

	if o.opts.Gateway.Abort(id.Key()) {
		report.Running = true
	}
	for _, w := range dropped {
		o.dropped(w)
	}
	if err != nil {
		return report, fmt.Errorf("record abort: %w", err)
	}
	return report, nil
}

// AbortOwn ends the running turn if it is one of the member who asks for it, and takes their turns out of the queue.
func (o *Orchestrator) AbortOwn(ctx context.Context, by Press) (AbortReport, error) {
	l, err := o.line(by.Conversation)
	if err != nil {
		return AbortReport{}, err
	}
	ctx = context.WithoutCancel(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	var report AbortReport
	for _, w := range slices.Clone(l.queue) {
		if !by.mayEnd(w.turn) {
			continue
		}
		if err := o.drop(ctx, w); err != nil {
			return report, err // it waits on
		}
		l.remove(w.turn.ID)
		report.Dropped++
	}
	if l.running != nil && by.mayEnd(l.running.turn) {
		report.Running, report.Stopping = true, l.now.Load().stopping(o.opts.Gateway)
		return report, o.endRunning(ctx, l)
	}
	return report, nil
}

func ids(queue []waiting) []cli.TurnID {
	var out []cli.TurnID
	for _, w := range queue {
		out = append(out, w.turn.ID)
	}
	return out
}

// New leaves the current session: the next prompt begins another. What runs goes on in the old one; what the chat does
// not show yet of an answer stays unsent.
func (o *Orchestrator) New(ctx context.Context, id ConversationID) error {
	l, err := o.line(id)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.giveUpShowing()
	l.mu.Unlock()
	err = o.change(ctx, id, func(c *Conversation) { c.Session = "" })
	o.opts.Gateway.Release(id.Key())
	if err == nil {
		o.warm(ctx, id)
	}
	return err
}

// Resume makes an earlier session of the conversation the current one.
func (o *Orchestrator) Resume(ctx context.Context, id ConversationID, session SessionID) (Session, error) {
	s, err := o.opts.Store.Session(ctx, session)
	if err != nil {
		return Session{}, err
	}
	if s.Conversation != id {
		return Session{}, ErrElsewhere
	}
	// A session the reset rules had ended is one again: a person wants it.
	if err := o.opts.Store.TouchSession(ctx, s.ID, o.now()); err != nil {
		return Session{}, err
	}
	err = o.change(ctx, id, func(c *Conversation) { c.Session, c.Dir = s.ID, s.Dir })
	o.opts.Gateway.Release(id.Key())
	if err == nil {
		o.warm(ctx, id)
	}
	return s, err
}

// Sessions lists the conversation's sessions, last used first.
func (o *Orchestrator) Sessions(ctx context.Context, id ConversationID) ([]Session, error) {
	return o.opts.Store.Sessions(ctx, id, 20)
}

// SetModel chooses who answers from the next turn on. Another agent joins the session with its history.
func (o *Orchestrator) SetModel(ctx context.Context, id ConversationID, agent cli.Agent, model cli.ModelID, effort cli.Effort) error {
	err := o.change(ctx, id, func(c *Conversation) { c.Agent, c.Model, c.Effort = agent, model, effort })
	if err == nil {
		o.warm(ctx, id)
	}
	return err
}

// MenuNow is Menu without waiting for an agent: the Err of one that is still being asked is cli.ErrLoading.
func (o *Orchestrator) MenuNow(ctx context.Context, id ConversationID) ([]cli.MenuEntry, error) {
	return o.menu(ctx, id, cli.AtOnce(ctx))
}

// Menu lists agents and their models, where the conversation's next turn runs.
func (o *Orchestrator) Menu(ctx context.Context, id ConversationID) ([]cli.MenuEntry, error) {
	return o.menu(ctx, id, ctx)
}

// menu has the agents asked until asking ends.
func (o *Orchestrator) menu(ctx context.Context, id ConversationID, asking context.Context) ([]cli.MenuEntry, error) {
	conv, err := o.opts.Store.Conversation(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("load conversation: %w", err)
	}
	_, in, err := o.whereabouts(ctx, conv)
	if err != nil {
		return nil, err
	}
	return o.opts.Gateway.Menu(asking, in), nil
}

// SetDir chooses the working directory, relative to the present one or absolute, inside the configured
// roots, and begins a new session there. It returns the directory as it will be used.
func (o *Orchestrator) SetDir(ctx context.Context, id ConversationID, path string, by PersonID) (string, error) {
	conv, err := o.opts.Store.Conversation(ctx, id)
	if err != nil {
		return "", fmt.Errorf("load conversation: %w", err)
	}
	dir, err := o.resolveDir(o.dirOf(conv), path)
	if err != nil {
		return "", err
	}
	err = o.change(ctx, id, func(c *Conversation) {
		if c.Dir != dir {
			c.Dir, c.Session = dir, ""
		}
	}, AuditEntry{What: AuditDirectory, Title: dir, By: by})
	o.opts.Gateway.Release(id.Key())
	if err == nil {
		o.warm(ctx, id)
	}
	return dir, err
}

// resolveDir follows every link before it compares, so that no link leads out of the roots.
func (o *Orchestrator) resolveDir(base, path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", ErrNotADir
		}
		path = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	dir, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", ErrNotADir
	}
	for _, root := range o.opts.Roots {
		if root, err = filepath.EvalSymlinks(root); err != nil {
			continue
		}
		if rel, err := filepath.Rel(root, dir); err == nil && filepath.IsLocal(rel) {
			if info, err := os.Stat(dir); err != nil || !info.IsDir() {
				return "", ErrNotADir
			}
			return dir, nil
		}
	}
	return "", ErrOutsideRoot
}

// checkDir checks a session's directory again before a turn runs in it: since it was chosen, an agent may have put a link
// in its place. The error is a *cli.Failure.
func (o *Orchestrator) checkDir(dir string) error {
	if _, err := o.resolveDir("", dir); err != nil {
		return &cli.Failure{Kind: cli.NoDirectory, Reason: fmt.Sprintf("%s: %s", dir, err), Cause: err}
	}
	return nil
}

// Status says what the conversation is set to and busy with.
func (o *Orchestrator) Status(ctx context.Context, id ConversationID) (Status, error) {
	conv, err := o.opts.Store.Conversation(ctx, id)
	if err != nil {
		return Status{}, fmt.Errorf("load conversation: %w", err)
	}
	_, in, err := o.whereabouts(ctx, conv)
	if err != nil {
		return Status{}, err
	}
	// Without any agent that can be used the rest is still worth showing. It waits for none to say whether it can be.
	who, _ := o.choice(cli.AtOnce(ctx), conv, in)
	st := Status{
		Conversation: id, Agent: who.agent, Model: who.model, Effort: who.effort,
		Permission: o.permissionOf(conv), Dir: o.dirOf(conv), Sandbox: in, Role: o.roleOf(conv),
		Busy: o.busyOf(conv), Live: o.opts.Gateway.Live(ctx),
	}
	if o.bypassed(conv) {
		st.BypassUntil = conv.BypassUntil
	}
	if conv.Session != "" {
		if st.Session, err = o.opts.Store.Session(ctx, conv.Session); err != nil {
			return Status{}, fmt.Errorf("load session: %w", err)
		}
	}
	if err := o.busyWith(ctx, id, &st); err != nil {
		return Status{}, err
	}
	return st, nil
}

// busyWith says what runs and waits.
func (o *Orchestrator) busyWith(ctx context.Context, id ConversationID, st *Status) error {
	l, err := o.line(id)
	if err != nil {
		return err
	}
	l.mu.Lock()
	st.Queue = len(l.queue)
	if r := l.running; r != nil {
		st.Running = &RunningTurn{Turn: r.turn.ID, Title: title(r.turn.Prompt.Text), Message: r.turn.Prompt.Message, Started: r.started, Rights: r.turn.Prompt.Rights}
	}
	l.mu.Unlock()
	if st.Running == nil {
		return nil
	}
	open, err := o.opts.Store.OpenAsks(ctx)
	if err != nil {
		return fmt.Errorf("load open asks: %w", err)
	}
	for _, ask := range open {
		if ask.Turn == st.Running.Turn {
			st.Running.Asks++
		}
	}
	return nil
}

// change loads a conversation, changes it and saves it, with the line's lock so that no change is lost. The audit entries
// are recorded with the change; their time and conversation are filled in.
func (o *Orchestrator) change(ctx context.Context, id ConversationID, f func(*Conversation), audit ...AuditEntry) error {
	l, err := o.line(id)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return o.changeLocked(ctx, id, f, audit...)
}

func (o *Orchestrator) changeLocked(ctx context.Context, id ConversationID, f func(*Conversation), audit ...AuditEntry) error {
	conv, err := o.opts.Store.Conversation(ctx, id)
	if err != nil {
		return fmt.Errorf("load conversation: %w", err)
	}
	f(&conv)
	for i := range audit {
		audit[i].At, audit[i].Conversation = o.now(), id
	}
	if err := o.opts.Store.SaveConversation(ctx, conv, audit...); err != nil {
		return fmt.Errorf("save conversation: %w", err)
	}
	return nil
}

func (o *Orchestrator) dirOf(c Conversation) string {
	if c.Dir != "" {
		return c.Dir
	}
	return o.opts.Dir
}
