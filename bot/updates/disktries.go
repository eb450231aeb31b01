package updates

import (
	"context"
	"time"

	"ductor/lang"
	"ductor/orchestrator"
)

// receive runs one content task. It does not mark the updates as handled if an abort has dropped the task. It also does
// not mark them if ductor is stopping, because the next process will handle them.
//
// If the disk is full or fails, the task waits until the disk works, and then starts again. Later prompts and commands
// wait behind it. An abort can drop it. If the task fails diskTries times in a row although the disk works, receive
// refuses the message. A page of the database that cannot be read is such a failure.
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

// awaitDisk waits until the disk may work again. The pause limits how often the task starts again if the disk is full
// again at once. awaitDisk returns false if ctx is done.
func (r *receiver) awaitDisk(ctx context.Context) bool {
	if state, changed := r.finisher.journal.Disk(); state != orchestrator.DiskWorks {
		select {
		case <-changed.Done():
		case <-ctx.Done():
		}
	}
	return pause(ctx, time.Second) == nil
}
