package updates

import (
	"context"
	"log/slog"
	"time"

	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// RouterOptions configures a Router. Owner, Allow, Listener, AlbumWindow and PasteWindow are optional.
type RouterOptions struct {
	Me       Identity
	Turns    Turns
	Handler  Handler
	Feedback Feedback
	Uploads  *Uploads
	Finisher *Finisher

	Owner       orchestrator.PersonID // user to notify if a group gets a new ID; 0 for none
	Allow       Allow
	Listener    Listener      // nil: speech is not supported
	AlbumWindow time.Duration // how long to wait for the next file of an album; <= 0: do not wait
	PasteWindow time.Duration // how long to wait for the next part of a split text; <= 0: do not wait

	Hide  HideFunc         // recognizes secrets in messages; may be nil
	Names *tgapi.ChatNames // stores the names of chats and users; may be nil
	Lang  *lang.Choices
	Log   *slog.Logger
	Now   func() time.Time
	// Lost is the time up to which the database may have lost data, or zero. The router does not handle older messages,
	// because ductor may have handled them already.
	Lost time.Time
}

// Router decides how each update must be handled, and queues a task in the update's conversation. The decision waits
// only for the database, so a slow conversation does not delay others.
type Router struct {
	me Identity

	queues   *queues
	receiver *receiver
	finisher *Finisher
	turns    Turns
	handler  Handler
	gate     *gate
	owner    orchestrator.PersonID
	follower *follower
	uploads  *Uploads
	lang     *lang.Choices
	log      *slog.Logger
}

// controlPatience is the timeout of a command or button. It is long, because some commands, such as /model, wait for an
// agent's program.
const controlPatience = 45 * time.Second

// NewRouter returns a Router. The caller must call Stop when it is no longer needed.
func NewRouter(o RouterOptions) *Router {
	receiver := &receiver{
		turns: o.Turns, listener: o.Listener, handler: o.Handler, finisher: o.Finisher, feedback: o.Feedback,
		uploads: o.Uploads, allow: o.Allow,
		windows: mergeWindows{album: o.AlbumWindow, paste: o.PasteWindow}, merged: &mergeMemory{}, recent: &recent{},
		lang: o.Lang, log: o.Log,
	}
	queues := newQueues(o.Log, controlPatience)
	queues.content = receiver.receive
	queues.broke = func(t *task) { // do not run the task again, because it may be half done
		text := o.Lang.Of(t.conv.Chat).Text("updates.broke")
		of := 0
		if t.content != nil {
			of = t.content.ID
		}
		o.Finisher.Finish(context.Background(), t.updates, refusal(t.conv, of, text))
	}
	return &Router{
		me: o.Me, queues: queues, receiver: receiver, finisher: o.Finisher, turns: o.Turns, handler: o.Handler,
		gate: gateOf(o), owner: o.Owner, follower: newFollower(receiver.windows, o.Now), uploads: o.Uploads,
		lang: o.Lang, log: o.Log,
	}
}

func gateOf(o RouterOptions) *gate {
	g := newGate(o.Allow, o.Now, o.Log)
	g.me, g.names, g.lost, g.hide = o.Me, o.Names, o.Lost, o.Hide
	g.tidy = func(chat int64, message int) { o.Feedback.Tidy(chat, message) }
	told := make(map[orchestrator.ConversationID]bool)
	g.dropped = func(m *wireMessage) { // notifies each conversation once
		in := conversationOf(m)
		if !told[in] {
			told[in] = true
			o.Finisher.Tell(context.Background(), in, m.ID, nil, o.Lang.Of(in.Chat).Text("updates.dropped"), nil)
		}
	}
	return g
}

// Stop prevents further handlers from starting. It waits for running handlers until ctx is done, and then cancels them.
// Work that is not finished stays in the database for the next process.
func (r *Router) Stop(ctx context.Context) { r.queues.stop(ctx) }

// Go runs f in a new goroutine. The context of f is cancelled when Stop is called.
func (r *Router) Go(f func(ctx context.Context)) { r.queues.spawn(f) }

// Dispatch handles stored updates, in order. It marks updates that need no action as handled. Only one goroutine at a
// time may call Dispatch.
func (r *Router) Dispatch(ctx context.Context, updates []orchestrator.Update) {
	var ignored []int64
	var arrivals []*arrival
	var aborts []orchestrator.PendingAborts
	for _, u := range updates {
		a := r.arrive(u)
		if a == nil {
			ignored = append(ignored, u.ID)
			continue
		}
		arrivals = append(arrivals, a)
		if r.isAbort(a) {
			aborts = addAbort(aborts, a.in.Conversation)
		}
	}
	for _, a := range aborts { // prompts before an abort must not begin: the user took them back
		r.turns.AwaitAborts(a)
	}
	defer r.ReportAborts(aborts)
	r.follower.scanBatch(arrivals)
	for _, a := range arrivals {
		if r.route(ctx, a) == ignore {
			ignored = append(ignored, a.ID)
		}
	}
	if len(ignored) > 0 {
		r.finisher.Finish(ctx, ignored)
	}
}

// fate defines whether Dispatch or a handler marks an update as handled.
type fate bool

const (
	ignore fate = false // no handler gets the update, so Dispatch marks it as handled
	taken  fate = true  // a handler gets the update and marks it as handled
)

// route handles one update.
func (r *Router) route(ctx context.Context, a *arrival) (f fate) {
	defer func() {
		if p := recover(); p != nil {
			r.logPanic(a.Update, p)
			f = ignore
		}
	}()
	w := &a.wire
	if a.Crashes >= orchestrator.MostCrashes {
		return r.giveUp(ctx, a.Update, w)
	}
	switch {
	case w.Callback != nil:
		r.noteLanguage(ctx, &w.Callback.From, w.Callback.Message)
		return r.callback(ctx, a.Update, w.Callback)
	case w.Message != nil && a.in == nil:
		return r.moved(ctx, a.ID, w.Message)
	case w.Message != nil:
		return r.message(ctx, a, w.Message)
	case w.Edited != nil && a.in != nil:
		return r.edit(ctx, a, w.Edited)
	}
	return ignore
}

// giveUp is called for an update that has crashed ductor more than once. It marks the update as handled, and notifies
// the sender.
func (r *Router) giveUp(ctx context.Context, u orchestrator.Update, w *wireUpdate) fate {
	r.log.Error("gave up an update: ductor crashed over it more than once", "update", u.ID, "crashes", u.Crashes)
	m := w.message()
	id := conversationOf(m)
	r.finisher.Finish(ctx, []int64{u.ID}, refusal(id, m.ID, r.lang.Of(id.Chat).Text("updates.gave-up")))
	return taken
}

func (r *Router) callback(ctx context.Context, u orchestrator.Update, c *wireCallback) fate {
	p := Press{
		Query: c.ID, Data: c.Data, Message: c.Message.ID, Buttons: c.Message.Markup.keyboard(), Name: c.From.name(),
		By: orchestrator.Press{
			Conversation: conversationOf(c.Message), Person: orchestrator.PersonID(c.From.ID), Updates: []int64{u.ID},
			Arrived: u.Received, Role: r.gate.allow.roleOf(orchestrator.PersonID(c.From.ID)),
		},
	}
	return r.enqueue(ctx, &task{
		class: classControl, conv: p.By.Conversation, updates: p.By.Updates,
		do: r.ifStillAllowed(c.Message.Chat, &c.From, func(ctx context.Context, _ *queue, _ *task) {
			p.By.Role = r.gate.allow.roleOf(p.By.Person)
			r.handler.Press(ctx, p)
		}),
	}, nil)
}

// ifStillAllowed returns the function of a task. The returned function calls action only if the user may still use the
// bot, because the user may have lost this right while the task was waiting.
func (r *Router) ifStillAllowed(chat wireChat, from *wireUser,
	action func(context.Context, *queue, *task)) func(context.Context, *queue, *task) {
	return func(ctx context.Context, q *queue, t *task) {
		if r.gate.allow.permits(chat, from, nil) {
			action(ctx, q, t)
		} else {
			r.finisher.Finish(ctx, t.updates)
		}
	}
}

func (r *Router) noteLanguage(ctx context.Context, from *wireUser, in *wireMessage) {
	if err := r.lang.Hear(ctx, in.Chat.ID, from.ID, from.Language); err != nil {
		r.log.Warn("a language is not kept", "chat", in.Chat.ID, "user", from.ID, "err", err)
	}
}

func (r *Router) message(ctx context.Context, a *arrival, m *wireMessage) fate {
	in := a.in
	if in.sent.secret { // accept a secret from any user, even in a group
		return r.enqueue(ctx, r.contentTask(a), in)
	}
	if words, _ := m.textAndEntities(); words == "" && in.sent.file == nil {
		return r.unsupported(ctx, a.Update, m, in)
	}
	if c := a.command; c != nil && !in.sent.forwarded {
		// An edited message is not inside an album or split text, because the other parts are already submitted.
		inside, forMe := a.wire.Edited == nil && r.follower.inside(in), r.me.accepts(c.Command)
		switch {
		case !inside || forMe && c.spec.isAbort():
			return r.called(ctx, a, m)
		case in.sent.album == "" || !forMe || !c.known: // the message is only a part of a prompt
		case !c.spec.Allows(in.Role):
			in.sent.refusal = r.lang.Of(in.Conversation.Chat).Text(Refusal(in.Role))
		case c.spec.isTurn(c.Command, in):
			r.startSession(a)
		default:
			in.sent.refusal = r.refusalOfFiles(in, c)
		}
	}
	if !r.isForBot(m, in) {
		in.sent.follows = r.follower.followed[a.ID]
		return r.queueAlbumPart(ctx, r.contentTask(a))
	}
	r.follower.seen.remember(m, asPrompt)
	return r.prompt(ctx, a, m)
}

// called handles a message that is a command.
func (r *Router) called(ctx context.Context, a *arrival, m *wireMessage) fate {
	c, in := a.command, a.in
	isTurn := c.spec.isTurn(c.Command, in)
	// After a user edits the caption of an album, Telegram sends only the file with this caption. The other files are
	// missing.
	incomplete := a.wire.Edited != nil && in.sent.album != "" && (isTurn || c.spec.Takes == TakesFile)
	if isTurn && !incomplete {
		r.follower.seen.remember(m, asTurn)
	} else {
		r.follower.seen.remember(m, asCommand)
	}
	if !r.me.accepts(c.Command) || !c.known && !in.Private && c.To == "" {
		r.noteLanguage(ctx, m.From, m)
		return ignore // the command is for another bot
	}
	if isTurn && !incomplete && in.sent.file != nil && c.spec.Allows(in.Role) {
		r.startSession(a)
		return r.prompt(ctx, a, m)
	}
	r.noteLanguage(ctx, m.From, m)
	if incomplete && c.spec.Allows(in.Role) {
		return r.refuse(ctx, in, r.lang.Of(in.Conversation.Chat).Text("updates.album-again"))
	}
	return r.command(ctx, m, Request{Command: c.Command, In: in, File: r.uploads.reader(in)}, c.spec)
}

// refusalOfFiles returns the reply to a command in a caption that does not run.
func (r *Router) refusalOfFiles(in *Message, c *calledCommand) string {
	p := r.lang.Of(in.Conversation.Chat)
	if c.spec.Takes == TakesFile {
		return p.Text("updates.caption-not-first", c.Name)
	}
	return p.Text("updates.takes-no-files", c.Name)
}

// startSession handles a file whose caption is a command such as "/new look at this". It turns the message into a
// prompt that starts a new session.
func (r *Router) startSession(a *arrival) {
	a.in.sent.newSession = true
	a.cutCommand()
}

// prompt handles a message for the bot that is not a command.
func (r *Router) prompt(ctx context.Context, a *arrival, m *wireMessage) fate {
	in := a.in
	in.sent.follows = r.follower.followed[a.ID]
	t := r.contentTask(a)
	r.noteLanguage(ctx, m.From, m)
	if !in.Role.May(orchestrator.SendPrompts) {
		return r.refuse(ctx, in, r.lang.Of(in.Conversation.Chat).Text(Refusal(in.Role)))
	}
	if in.sent.file != nil && in.sent.file.kind == speech && r.receiver.listener == nil {
		return r.explainSpeech(ctx, in)
	}
	if m.Text == "" && in.sent.file == nil && unsupported(a.Raw) != "" {
		// Agents cannot use the message. Its caption, which may be in in.Text, is not a prompt.
		return r.unsupported(ctx, a.Update, m, in)
	}
	r.follower.remember(in)
	if t.class == classContent && in.sent.album == "" && r.queues.behindCommand(in.Conversation) {
		r.receiver.acknowledge(in)
	}
	return r.enqueue(ctx, t, in)
}

// queueAlbumPart queues a file of an album in a group. The file is for the bot only if the caption of any file in the
// album mentions the bot. The file with that caption may arrive later.
func (r *Router) queueAlbumPart(ctx context.Context, t *task) fate {
	in := t.content
	if in.sent.album == "" || in.sent.file == nil || !in.Role.May(orchestrator.SendPrompts) ||
		in.sent.file.kind == speech && r.receiver.listener == nil {
		return ignore
	}
	in.sent.onlyWithAlbum = true
	return r.enqueue(ctx, t, nil)
}

func (r *Router) isForBot(m *wireMessage, in *Message) bool {
	return in.Private || r.gate.allow.Policy().GroupTrigger == TriggerAll || addressed(m, r.me) ||
		r.follower.belongs(in)
}

func (r *Router) command(ctx context.Context, m *wireMessage, c Request, spec CommandSpec) fate {
	in := c.In
	if !spec.Allows(in.Role) {
		return r.refuse(ctx, in, r.lang.Of(in.Conversation.Chat).Text(Refusal(in.Role)))
	}
	if spec.isAbort() {
		return r.enqueue(ctx, &task{
			class: classUrgent, conv: in.Conversation, updates: in.Updates, content: in, do: r.abort,
		}, in)
	}
	if spec.takesPrompt() {
		if formatted, is := ParseCommand(in.Text); is {
			c.Args = formatted.Args
		}
	}
	do := spec.Do
	if in.sent.file != nil && spec.Name != "" && spec.Takes != TakesFile {
		do = func(ctx context.Context, c Request) {
			r.finisher.Refuse(ctx, c.In, r.refusalOfFiles(in, &calledCommand{Command: c.Command, spec: spec}))
		}
	}
	r.follower.remember(in)
	return r.enqueue(ctx, &task{
		class: classControl, conv: in.Conversation, updates: in.Updates,
		do: r.ifStillAllowed(m.Chat, m.From, func(ctx context.Context, q *queue, t *task) {
			if in.Role = r.gate.allow.roleOf(in.Person); !spec.Allows(in.Role) {
				r.refuse(ctx, in, r.lang.Of(in.Conversation.Chat).Text(Refusal(in.Role)))
				return
			}
			c.Args += r.follower.windows.absorbRest(ctx, q, t, in)
			for _, other := range r.follower.windows.absorbAlbum(ctx, q, t, in) {
				c.Others = append(c.Others, r.uploads.reader(other))
			}
			do(ctx, c)
		}),
	}, in)
}

// unsupported tells the user that agents cannot use this kind of message. For an album, it sends only one notice.
func (r *Router) unsupported(ctx context.Context, u orchestrator.Update, m *wireMessage, in *Message) fate {
	kind := unsupported(u.Raw)
	if kind == "" || !r.isForBot(m, in) || in.sent.album != "" && r.follower.belongs(in) {
		return ignore
	}
	r.follower.remember(in)
	p := r.lang.Of(in.Conversation.Chat)
	return r.refuse(ctx, in, p.Text("updates.unsupported", p.Text(kind)))
}

// explainSpeech tells the user how to enable speech recognition. For an album, it sends only one notice.
func (r *Router) explainSpeech(ctx context.Context, in *Message) fate {
	if in.sent.album != "" && r.follower.belongs(in) {
		return ignore
	}
	r.follower.remember(in)
	return r.refuse(ctx, in, r.lang.Of(in.Conversation.Chat).Text("updates.no-transcriber"))
}

// edit handles an edited message. If seen.isNew returns true, or if the message is now an abort, it is handled as if it
// were new. Otherwise the receiver changes the prompt of the message, if the prompt is still queued. edit ignores
// messages without text, because Telegram reports a live location as an edit every few seconds.
func (r *Router) edit(ctx context.Context, a *arrival, m *wireMessage) fate {
	in, was := a.in, r.follower.seen.was(m)
	switch {
	case was.as == asCommand && was.isSame(m):
		return ignore
	case r.follower.seen.isNew(m), a.command != nil && a.command.spec.isAbort():
		return r.message(ctx, a, m)
	}
	in.sent.edited = true
	if m.Text == "" && m.Caption == "" || !in.Role.May(orchestrator.SendPrompts) {
		return ignore
	}
	// If the command was split into several messages, do not use the edited part as the new prompt: the other parts
	// would be lost.
	if c := a.command; c != nil && was.as != asPrompt && !in.sent.ofPaste() && c.spec.isTurn(c.Command, in) {
		a.cutCommand()
	}
	return r.enqueue(ctx, r.contentTask(a), nil)
}

// enqueue adds a task to its queue. If the queue is full, enqueue notifies the sender of the message, unless in is nil.
func (r *Router) enqueue(ctx context.Context, t *task, in *Message) fate {
	switch r.queues.enqueue(t) {
	case crowded:
		r.log.Warn("too many messages wait in one conversation; some are not taken",
			"chat", t.conv.Chat, "topic", t.conv.Topic)
		if in == nil {
			return ignore
		}
		text := r.lang.Of(in.Conversation.Chat).Text("updates.crowded")
		r.finisher.Refuse(ctx, in, text)
	case silenced:
		return ignore
	}
	return taken
}

func (r *Router) refuse(ctx context.Context, in *Message, text string) fate {
	r.finisher.Refuse(ctx, in, text)
	return taken
}
