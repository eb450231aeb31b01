package updates

import (
	"context"
	"encoding/json"
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

func (r *Router) stop(ctx context.Context, q *queue, t *task) {
	q.recordAbort()
	r.handler.Stop(ctx, Abort{In: t.content, queue: q, task: t})
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

// beginPatience is long, because nothing is running meanwhile, and a busy machine may start earlier commands late.
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

// abortByWord makes t an abort if its message consists of an abort word such as "stop", which counts only in private
// chats.
func (r *Router) abortByWord(t *task) {
	in := t.content
	if in.Private && !in.sent.forwarded && in.sent.file == nil &&
		isAbortWord(in.Plain, r.gate.allow.Policy().AbortWords) {
		t.class, t.do = classUrgent, r.abortIfRunning
	}
}

// FindAborts returns the conversations in which stored updates that are not handled contain an abort: the command, or an
// abort word of a user who may abort. The bot's name is not known yet, so an abort for another bot counts, too.
func FindAborts(ctx context.Context, journal orchestrator.Inbox, allow Allow,
	abort CommandSpec) (found []orchestrator.PendingAborts, err error) {
	var all []orchestrator.Update
	err = eachPending(ctx, journal, func(updates []orchestrator.Update) { all = append(all, updates...) })
	return allow.abortsIn(all, abort), err
}

// abortsIn returns the conversations in which updates contain an abort.
func (a Allow) abortsIn(updates []orchestrator.Update, abort CommandSpec) (found []orchestrator.PendingAborts) {
	seen := make(map[orchestrator.ConversationID]bool)
	for _, u := range updates {
		m := a.abortIn(u, abort)
		if m == nil || seen[conversationOf(m)] {
			continue
		}
		in := conversationOf(m)
		seen[in] = true
		found = append(found, orchestrator.PendingAborts{Conversation: in, Handled: make(chan struct{})})
	}
	return found
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
	text := m.Text
	if !m.Chat.private() && strings.HasPrefix(text, "@") { // "@our_bot /abort"
		_, text, _ = strings.Cut(text, " ")
	}
	c, ok := ParseCommand(strings.TrimSpace(text))
	if ok && abort.Named(c.Name) || m.Chat.private() && isAbortWord(text, a.Policy().AbortWords) {
		return m
	}
	return nil
}

// ReportAborts closes the channel of each conversation when its aborts have ended. Call it when they have been
// dispatched.
func (r *Router) ReportAborts(aborts []orchestrator.PendingAborts) {
	for _, a := range aborts {
		r.Go(func(ctx context.Context) {
			if r.queues.awaitAborts(ctx, a.Conversation) {
				close(a.Handled)
			}
		})
	}
}
