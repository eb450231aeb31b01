package conversation

import (
	"context"
	"slices"
	"sync"
	"time"

	"ductor/cli"
	"ductor/internal/growstack"
	"ductor/internal/secrets"
	"ductor/orchestrator"
)

// hider takes secrets out of what the agent of one turn says, before anything is shown or stored of it.
type hider struct {
	read <-chan struct{} // closed once set is there

	mu  sync.Mutex
	set *secrets.Set

	// Of the agent's stream alone.
	text, thought secrets.Stream
}

// newHider knows the secrets of a request. They are read beside what follows: the prompt does not wait for it, and what comes of
// the agent does.
func (e *Engine) newHider(req cli.Request) *hider {
	read := make(chan struct{})
	h := &hider{read: read}
	e.wg.Go(func() {
		defer close(read)
		growstack.Grow()
		h.set = e.secretsOf(req)
	})
	return h
}

// secretsOf are the secrets of ductor, those of the project that a request works in now, and those of its tool servers.
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

func (h *hider) Known() *secrets.Set {
	<-h.read
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.set
}

// Learn adds the answers that are secret: the agent may say them.
func (h *hider) Learn(questions []cli.Question, answers [][]string) {
	<-h.read
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, q := range questions {
		if q.Secret && i < len(answers) {
			h.set = h.set.With(slices.DeleteFunc(slices.Clone(answers[i]), func(answer string) bool {
				return slices.ContainsFunc(q.Options, func(o cli.Option) bool { return o.Label == answer })
			})...)
		}
	}
}

// pass hands on an event without secrets. The answer may come later than the agent says it: what may be the beginning
// of a secret is held back until more is known, but for what is shown in order with it.
func (h *hider) pass(ev cli.Event, to func(cli.Event)) {
	set := h.Known()
	switch ev := ev.(type) {
	case cli.TextDelta:
		h.endThought(set, to)
		retell(h.text.Add(set, ev.Text), to)
		return
	case cli.TextRetracted:
		retell(h.text.Retract(set, ev.Bytes), to)
		return
	case cli.ThinkingDelta:
		retell(h.text.Flush(set), to)
		rethink(h.thought.Add(set, ev.Text), to)
		return
	case cli.Status, cli.RateLimited, cli.SessionStarted, cli.CaughtUp:
	default:
		h.endThought(set, to)
		retell(h.text.Flush(set), to)
	}
	if ended, ok := ev.(cli.ToolEnded); ok { // a secret may have colours within
		ended.Output, ended.Err = cli.WithoutCodes(ended.Output), cli.WithoutCodes(ended.Err)
		ev = ended
	}
	clean, _ := secrets.Clean(set, ev)
	to(clean)
}

func (h *hider) endThought(set *secrets.Set, to func(cli.Event)) {
	rethink(h.thought.Flush(set), to)
	h.thought = secrets.Stream{}
}

func retell(c secrets.Change, to func(cli.Event)) {
	if c.Retract > 0 {
		to(cli.TextRetracted{Bytes: c.Retract})
	}
	if c.Text != "" {
		to(cli.TextDelta{Text: c.Text})
	}
}

// rethink tells of reasoning, of which nothing can be taken back. Nothing of a secret was given before.
func rethink(c secrets.Change, to func(cli.Event)) {
	if c.Text != "" {
		to(cli.ThinkingDelta{Text: c.Text})
	}
}

// result is how the turn ended, without secrets.
func (h *hider) result(r cli.Result) cli.Result {
	clean, _ := secrets.Clean(h.Known(), r)
	return clean
}

// fileWatch begins to look at the files of a turn when its prompt leaves, so that its first words do not wait for that. A turn that runs
// once more has one.
type fileWatch struct {
	snapshots orchestrator.Snapshots

	mu    sync.Mutex
	watch orchestrator.TurnWatch // nil before it begins
}

func (f *fileWatch) begin(t orchestrator.Turn, dir string, goesOn bool) {
	if f.snapshots == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watch == nil {
		f.watch = f.snapshots.Watch(t, dir, goesOn)
	}
}

func (f *fileWatch) take(ev cli.Event) {
	if w := f.now(); w != nil {
		w.Take(ev)
	}
}

// end ends the watch. It returns a function that returns what the turn changed, or nil if the turn changed nothing.
func (f *fileWatch) end() func(context.Context) orchestrator.Changed {
	w := f.now()
	if w == nil {
		return nil
	}
	return w.End()
}

func (f *fileWatch) leave() {
	if w := f.now(); w != nil {
		w.Leave()
	}
}

func (f *fileWatch) now() orchestrator.TurnWatch {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.watch
}

// heldAgents tell agents that they may go on once the files have been looked at, or when that takes too long. The user who
// decides does not wait for that.
type heldAgents struct {
	orchestrator.Gateway
	e *Engine
}

// Decide hands over a decision, or returns nil and hands it over later. An agent that does not hear of it, because ductor or the turn
// ended before, has no use for it or asks again.
func (h heldAgents) Decide(ctx context.Context, turn cli.TurnID, id cli.ApprovalID, d cli.Decision) error {
	files := h.e.opts.Snapshots
	if !d.Allow || files == nil {
		return h.Gateway.Decide(ctx, turn, id, d)
	}
	hand := func(ctx context.Context) error {
		files.Hold(ctx, turn, id)
		return h.Gateway.Decide(ctx, turn, id, d)
	}
	if files.Looked(turn) || !h.e.open() {
		return hand(ctx)
	}
	go func() {
		defer h.e.wg.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverWait)
		defer cancel()
		if err := hand(ctx); err != nil {
			h.e.log.Warn("hand a decision to the agent", "turn", turn, "approval", id, "err", err)
		}
	}()
	return nil
}

// handOverWait is how long the look at the files and the agent may take until the agent has a decision.
const handOverWait = 15 * time.Second
