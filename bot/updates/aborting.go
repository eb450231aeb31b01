package updates

import (
	"context"
	"time"
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
