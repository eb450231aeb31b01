package updates

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"ductor/orchestrator"
)

// abort stops everything that runs in the conversation. If nothing is running, it first waits for earlier commands,
// because they may start a turn that the user wants to stop. For example, "/retry" and "/abort" arrive together if
// ductor was offline.
func (r *Router) abort(ctx context.Context, q *queue, t *task) {
	r.awaitEarlierCommands(ctx, q, t)
	r.stop(ctx, q, t)
}

// stop stops everything that runs in the conversation. If the abort is the caption of a file in an album, stop also
// drops the other files of the album.
func (r *Router) stop(ctx context.Context, q *queue, t *task) {
	q.recordAbort()
	in := *t.content
	r.handler.Stop(ctx, Abort{In: t.content, queue: q, task: t})
	var dropped []int64
	for _, other := range r.follower.windows.absorbAlbum(ctx, q, t, &in) {
		dropped = append(dropped, other.Update())
	}
	if len(dropped) > 0 {
		r.finisher.Finish(ctx, dropped)
	}
}

// awaitEarlierCommands waits for the commands before the task t, unless a turn is already running.
func (r *Router) awaitEarlierCommands(ctx context.Context, q *queue, t *task) {
	if r.turns.Runs(t.conv) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, beginPatience)
	defer cancel()
	q.awaitBefore(ctx, classControl, t)
}

// beginPatience is how long an abort waits for earlier commands if no turn is running. It is long, because commands can
// be slow on a busy machine.
const beginPatience = 10 * time.Second

// abortIfRunning handles a message that consists of an abort word such as "stop". If nothing is running, no earlier
// prompt waits, and nothing was aborted just before, the message is a prompt.
func (r *Router) abortIfRunning(ctx context.Context, q *queue, t *task) {
	r.awaitEarlierCommands(ctx, q, t)
	if !r.turns.Runs(t.conv) && !q.promptBefore(t) && !r.turns.Waits(t.conv) && !q.abortedRecently() {
		q.becomeContent(t)
		return
	}
	r.stop(ctx, q, t)
}

// isAbortWord reports whether a message consists of an abort word such as "stop", which counts only in private chats.
func (r *Router) isAbortWord(in *Message) bool {
	return in.Private && !in.sent.forwarded && in.Role.May(orchestrator.SendPrompts) &&
		isAbortWord(in.Plain, r.gate.allow.Policy().AbortWords)
}

// contentTask returns a task for a message that is a prompt, or that consists of an abort word.
func (r *Router) contentTask(a *arrival) *task {
	t := &task{class: classContent, conv: a.in.Conversation, updates: []int64{a.ID}, content: a.in}
	if a.word {
		t.class, t.do = classUrgent, r.abortIfRunning
	}
	return t
}

// FindAborts searches the stored updates that are not handled yet, and returns the conversations with an abort. An
// abort is the abort command or an abort word, from a user who may abort. The bot's name is not known yet, so a command
// for another bot counts, too.
func FindAborts(ctx context.Context, journal orchestrator.Inbox, allow Allow,
	abort CommandSpec) (found []orchestrator.PendingAborts, err error) {
	err = eachPending(ctx, journal, func(updates []orchestrator.Update) {
		for _, u := range updates {
			if m := allow.abortIn(u, abort); m != nil {
				found = addAbort(found, conversationOf(m))
			}
		}
	})
	return found, err
}

// addAbort appends an element for a conversation to the list, if the list contains no such element yet.
func addAbort(list []orchestrator.PendingAborts, in orchestrator.ConversationID) []orchestrator.PendingAborts {
	if slices.ContainsFunc(list, func(a orchestrator.PendingAborts) bool { return a.Conversation == in }) {
		return list
	}
	return append(list, orchestrator.PendingAborts{Conversation: in, Handled: make(chan struct{})})
}

// abortIn returns the message of an update if the message is an abort of a user who may abort, and nil otherwise.
func (a Allow) abortIn(u orchestrator.Update, abort CommandSpec) *wireMessage {
	var w wireUpdate
	if err := json.Unmarshal(u.Raw, &w); err != nil || w.Callback != nil { // the router logs the error
		return nil
	}
	if w.Stopped != nil {
		w.Message = w.Stopped.abort()
	}
	m := w.message()
	if m == nil || !a.permits(m.Chat, m.From, m.SenderChat) || m.Forwarded != nil ||
		!abort.Allows(a.roleOf(orchestrator.PersonID(m.From.ID))) {
		return nil
	}
	text, _ := m.textAndEntities()
	if !m.Chat.private() && strings.HasPrefix(text, "@") { // "@our_bot /abort"
		_, text, _ = strings.Cut(text, " ")
	}
	c, ok := ParseCommand(strings.TrimSpace(text))
	if ok && abort.Named(c.Name) || m.Chat.private() && isAbortWord(text, a.Policy().AbortWords) {
		return m
	}
	return nil
}

// ReportAborts closes the channel Handled of each conversation when all aborts of the conversation have ended. The
// caller must have dispatched the aborts before.
func (r *Router) ReportAborts(aborts []orchestrator.PendingAborts) {
	for _, a := range aborts {
		r.Go(func(ctx context.Context) {
			if r.queues.awaitAborts(ctx, a.Conversation) {
				close(a.Handled)
			}
		})
	}
}
