package updates

import (
	"context"
	"time"

	"ductor/lang"
	"ductor/orchestrator"
)

// receive runs a task of classContent. It marks the updates of the task as handled, except in two cases:
//   - An abort dropped the task. Then the abort marks the updates.
//   - ductor is stopping. Then the next process handles the updates.
//
// If the disk is full or fails, receive waits until the disk works, and then calls handle again. Later prompts and
// commands of the conversation have to wait, but an abort can drop the task. If handle fails diskTries times in a row
// although the disk works, for example because a page of the database cannot be read, receive refuses the message.
func (r *receiver) receive(ctx context.Context, q *queue, t *task) {
	parts, ok := []*Message{t.content}, true
	if !t.content.sent.edited {
		parts, ok = r.collect(ctx, q, t)
	}
	for try := 1; ok; try++ {
		err := r.handle(ctx, q, t, copied(parts))
		if !ofDisk(err) {
			return
		}
		r.log.Warn("a message waits for the disk", "updates", t.updates, "try", try, "err", err)
		if state, _ := r.finisher.journal.Disk(); state != orchestrator.DiskWorks {
			try = 0
		}
		if try == diskTries {
			text := r.lang.Of(t.conv.Chat).Text(notStored(parts[0]))
			r.finisher.Finish(ctx, t.updates, refusal(parts[0].Conversation, parts[0].ID, text))
			return
		}
		ok = q.gather(t) && r.awaitDisk(ctx)
	}
}

// notStored returns the key of the text about a message that could not be stored.
func notStored(in *Message) lang.Key {
	if in.sent.edited {
		return "updates.edit-not-stored"
	}
	return "updates.not-stored"
}

func copied(parts []*Message) (copies []*Message) {
	for _, p := range parts {
		m := *p
		copies = append(copies, &m)
	}
	return copies
}

// awaitDisk waits until the disk may work again. It always makes a pause, because a full disk can become full again
// immediately. awaitDisk returns false if ctx is done.
func (r *receiver) awaitDisk(ctx context.Context) bool {
	if state, changed := r.finisher.journal.Disk(); state != orchestrator.DiskWorks {
		select {
		case <-changed.Done():
		case <-ctx.Done():
		}
	}
	return pause(ctx, time.Second) == nil
}
