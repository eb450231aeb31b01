package bot

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// GroupTrigger says which messages of an allowed group are prompts.
type GroupTrigger string

// The triggers. Anything that is not TriggerAll means TriggerMention.
const (
	TriggerMention GroupTrigger = "mention" // those that name us or answer to us
	TriggerAll     GroupTrigger = "all"     // all that allowed people write
)

// router reads updates and puts what they ask for into the lanes. It decides by the update alone and
// waits for nothing but the journal, so that one conversation never holds up another. Its dispatch is
// called from one goroutine.
type router struct {
	me         identity
	trigger    GroupTrigger
	abortWords []string

	lanes     *laneKeeper
	closer    *closer
	turns     turns
	commands  *commands
	callbacks *callbacks
	gate      *gate
	follower  *follower
	log       *slog.Logger
}

// dispatch takes in journaled updates, in order. Those that ask for nothing are finished at once.
func (r *router) dispatch(ctx context.Context, updates []orchestrator.Update) {
	var ignored []int64
	for _, u := range updates {
		if r.route(ctx, u) == ignore {
			ignored = append(ignored, u.ID)
		}
	}
	if len(ignored) > 0 {
		r.closer.finish(ctx, ignored)
	}
}

// turns is what the router asks of the domain.
type turns interface {
	// Runs says whether a turn of the conversation runs. It waits for nothing.
	Runs(id orchestrator.ConversationID) bool
}

// fate is what routing decided about an update.
type fate bool

const (
	ignore fate = false // nothing comes of it
	taken  fate = true  // whoever took it finishes it
)

// route never panics: an update that cannot be dealt with must not stop those behind it.
func (r *router) route(ctx context.Context, u orchestrator.Update) (f fate) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("routing an update panicked", "update", u.ID, "panic", p, "stack", string(debug.Stack()))
			f = ignore
		}
	}()
	w, ok := r.gate.read(u)
	if !ok || !r.gate.admits(&w) {
		return ignore // also one that was journaled under another allowlist
	}
	if u.Crashes >= orchestrator.MostCrashes {
		return r.giveUp(ctx, u, &w)
	}
	switch {
	case w.Callback != nil:
		return r.callback(ctx, u.ID, w.Callback)
	case w.Message != nil:
		return r.message(ctx, u, w.Message)
	case w.Edited != nil:
		return r.edit(ctx, u, w.Edited)
	}
	return ignore
}

// giveUp ends an update that ductor crashed over more than once, and tells who sent it.
func (r *router) giveUp(ctx context.Context, u orchestrator.Update, w *wireUpdate) fate {
	r.log.Error("gave up an update: ductor crashed over it more than once", "update", u.ID, "crashes", u.Crashes)
	m := w.Message
	switch {
	case w.Callback != nil:
		m = w.Callback.Message
	case m == nil:
		m = w.Edited
	}
	r.closer.tell(ctx, conversationOf(m), m.ID, []int64{u.ID}, "I crashed more than once while I dealt with this, so I give it up. "+
		"The log says what happened. If it matters, please send it in another way.", nil)
	return taken
}

func (r *router) callback(ctx context.Context, update int64, q *wireCallback) fate {
	p := press{
		query: q.ID, data: q.Data, message: q.Message.ID, name: q.From.name(),
		by: orchestrator.Press{
			Conversation: conversationOf(q.Message), Person: orchestrator.PersonID(q.From.ID), Updates: []int64{update},
			Of: r.gate.allow.rightsOf(orchestrator.PersonID(q.From.ID)),
		},
	}
	return r.put(ctx, &task{
		class: laneControl, conv: p.by.Conversation, updates: p.by.Updates,
		do: func(ctx context.Context, _ *lane, _ *task) { r.callbacks.handle(ctx, p) },
	}, nil)
}

// read makes an incoming of the message of an update.
func (r *router) read(u orchestrator.Update, m *wireMessage) *incoming {
	in := readMessage(u.ID, m, r.me)
	if in.arrived = u.Received; in.arrived.IsZero() {
		in.arrived = time.Now()
	}
	if in.rights = r.gate.allow.rightsOf(in.person); in.rights == orchestrator.RightsOfMember {
		in.sender = "[From " + fencedName(m.From.name()) + ", a member of the group who is not listed]\n"
	}
	return in
}

func (r *router) message(ctx context.Context, u orchestrator.Update, m *wireMessage) fate {
	in := r.read(u, m)
	if words, _ := m.words(); words == "" && in.file == nil {
		return r.unsupported(ctx, u, m, in)
	}
	if c, ok := parseCommand(m.Text); ok && !in.forwarded && (isAbortCommand(c.name) || !r.follower.belongs(in)) {
		return r.command(ctx, in, c)
	}
	if !r.meant(m, in) {
		return ignore
	}
	if kind := unsupported(u.Raw); kind != "" && in.file == nil {
		return r.unsupported(ctx, u, m, in)
	}
	r.follower.note(in)
	t := &task{class: laneContent, conv: in.conv, updates: []int64{u.ID}, content: in}
	if in.private && !in.forwarded && in.file == nil && isAbortWord(in.text, r.abortWords) {
		t.class, t.do = laneUrgent, r.abortIfRunning
	}
	return r.put(ctx, t, in)
}

// meant says whether a message that is no command is meant for us.
func (r *router) meant(m *wireMessage, in *incoming) bool {
	return in.private || r.trigger == TriggerAll || addressed(m, r.me) || r.follower.belongs(in)
}

// command routes a command. In groups, a command for another bot, and one that nobody knows and that does
// not name us, is none of our business.
func (r *router) command(ctx context.Context, in *incoming, c command) fate {
	if c.to != "" && !r.me.is(c.to) {
		return ignore
	}
	if isAbortCommand(c.name) {
		return r.put(ctx, &task{class: laneUrgent, conv: in.conv, updates: in.updates(), content: in, do: r.abort}, in)
	}
	do, known := r.commands.lookup(c.name)
	if !known && !in.private && c.to == "" {
		return ignore
	}
	if in.rights == orchestrator.RightsOfMember && !forMembers(c.name) {
		return r.say(ctx, in, membersSentence)
	}
	return r.put(ctx, &task{
		class: laneControl, conv: in.conv, updates: in.updates(),
		do: func(ctx context.Context, _ *lane, _ *task) { do(ctx, request{in: in, command: c}) },
	}, in)
}

func (r *router) abort(ctx context.Context, l *lane, t *task) {
	r.commands.stop(ctx, abort{in: t.content, queue: l, task: t})
}

// abortIfRunning is a bare abort word: it aborts when something runs, and is a prompt when nothing does.
func (r *router) abortIfRunning(ctx context.Context, l *lane, t *task) {
	if !r.turns.Runs(t.conv) {
		l.becomeContent(t)
		return
	}
	r.abort(ctx, l, t)
}

// unsupported tells a person that a kind of message means nothing to an agent. Of an album it is told once.
func (r *router) unsupported(ctx context.Context, u orchestrator.Update, m *wireMessage, in *incoming) fate {
	kind := unsupported(u.Raw)
	if kind == "" || !r.meant(m, in) || in.album != "" && r.follower.belongs(in) {
		return ignore
	}
	r.follower.note(in)
	return r.say(ctx, in, "Sorry, I cannot read "+kind+" yet. I read text, photos and files.")
}

// edit changes the prompt of a message that still waits. Whether it does only the domain knows.
func (r *router) edit(ctx context.Context, u orchestrator.Update, m *wireMessage) fate {
	in := r.read(u, m)
	in.edited = true
	if words, _ := m.words(); words == "" {
		return ignore
	}
	return r.put(ctx, &task{class: laneContent, conv: in.conv, updates: []int64{u.ID}, content: in}, nil)
}

// put hands a task to its lane. in is who to tell when there is no room, or nil to tell nobody.
func (r *router) put(ctx context.Context, t *task, in *incoming) fate {
	switch r.lanes.put(t) {
	case crowded:
		r.log.Warn("too many messages wait in one conversation; some are not taken", "chat", t.conv.Chat, "topic", t.conv.Topic)
		if in == nil {
			return ignore
		}
		return r.say(ctx, in, "Too many messages at once: this one, and what follows until I caught up, is not taken. Please send it again later.")
	case silenced:
		return ignore
	}
	return taken
}

func (r *router) say(ctx context.Context, in *incoming, text string) fate {
	r.closer.answer(ctx, in, text, nil)
	return taken
}

// closer finishes updates together with the letters they caused.
type closer struct {
	journal    orchestrator.Journal
	mail       mail
	unfinished unfinished
	log        *slog.Logger
}

// unfinished are updates that could not be marked handled for want of a disk, until it takes something again.
type unfinished struct {
	mu  sync.Mutex
	ids []int64
}

func (u *unfinished) add(ids []int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ids = append(u.ids, ids...)
}

// ofDisk says whether an error is the disk's, of which the diskGuard tells the chats.
func ofDisk(err error) bool {
	return errors.Is(err, orchestrator.ErrDiskFull) || errors.Is(err, orchestrator.ErrDiskFailed)
}

func (u *unfinished) take() []int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	ids := u.ids
	u.ids = nil
	return ids
}

// finishPatience bounds what is written down although the caller was cancelled: what was done must be
// recorded as done.
const finishPatience = 10 * time.Second

// finish marks updates handled. What cannot be marked stays in the journal and is taken up when a full disk has room
// again, and after a restart.
func (c *closer) finish(ctx context.Context, updates []int64, letters ...orchestrator.Notice) (done bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishPatience)
	defer cancel()
	if err := c.journal.FinishUpdates(ctx, updates, letters...); err != nil {
		c.log.Error("updates could not be marked handled; they are taken up again later", "updates", updates, "err", err)
		if ofDisk(err) {
			c.unfinished.add(updates)
		}
		return false
	}
	if len(letters) > 0 {
		c.mail.Wake()
	}
	return true
}

// finishEarly finishes updates that a letter answers which may have left by now. text and k are what it says should ductor
// be restarted before it leaves.
func (c *closer) finishEarly(ctx context.Context, updates []int64, e early, text string, k tgapi.Keyboard) {
	letter, keep := e.keep(text, k)
	if !keep {
		c.finish(ctx, updates)
		return
	}
	e.kept(c.finish(ctx, updates, letter))
}

// forgetting is the closer of updates that hold a secret.
func (c *closer) forgetting() *closer {
	return &closer{journal: secretJournal{c.journal}, mail: c.mail, log: c.log}
}

// secretJournal is a journal in which nothing is left of the updates that it finishes.
type secretJournal struct{ orchestrator.Journal }

func (f secretJournal) FinishUpdates(ctx context.Context, ids []int64, letters ...orchestrator.Notice) error {
	return f.ForgetUpdates(ctx, ids, letters...)
}

// answer finishes the update of a message with one notice to its sender. In groups it replies to the message.
func (c *closer) answer(ctx context.Context, in *incoming, text string, k tgapi.Keyboard) {
	c.answerMerged(ctx, in, in.updates(), text, k)
}

// answerMerged is answer for a message that others were merged into.
func (c *closer) answerMerged(ctx context.Context, in *incoming, updates []int64, text string, k tgapi.Keyboard) {
	to := 0
	if !in.private {
		to = in.message
	}
	c.tell(ctx, in.conv, to, updates, text, k)
}

// answerFollowed is answer with a letter whose message is to change; see mail.composeFollowed.
func (c *closer) answerFollowed(ctx context.Context, in *incoming, text string, k tgapi.Keyboard, sent func(message int)) {
	to := 0
	if !in.private {
		to = in.message
	}
	l, err := c.mail.composeFollowed(in.conv, text, k, to, sent)
	c.tellLetter(ctx, in.updates(), l, err)
}

// broke tells that a task panicked. What it did before is not known, so nothing is done again.
func (c *closer) broke(t *task) {
	c.tell(context.Background(), t.conv, 0, t.updates, "Something broke in ductor while it dealt with this; it may not have reached the agent. The log says what.", nil)
}

func (c *closer) tell(ctx context.Context, id orchestrator.ConversationID, to int, updates []int64, text string, k tgapi.Keyboard) {
	l, err := c.mail.compose(id, text, k, to)
	c.tellLetter(ctx, updates, l, err)
}

// tellLetter finishes updates with a letter that was composed.
func (c *closer) tellLetter(ctx context.Context, updates []int64, l orchestrator.Notice, err error) {
	if err != nil {
		c.log.Error("compose letter", "updates", updates, "err", err)
		c.finish(ctx, updates)
		return
	}
	c.finish(ctx, updates, l)
}
