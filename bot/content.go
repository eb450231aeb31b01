package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ductor/bot/approval"
	"ductor/bot/cron"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// receiver turns content into prompts: it waits for the parts that belong together, fetches files and
// hands the whole to the desk.
type receiver struct {
	desk      Desk
	closer    *closer
	voice     voice
	uploads   *uploads
	windows   mergeWindows
	merged    *mergeMemory
	receipts  Receipts
	approvals *approval.Screen
	restarts  *restarts
	jobs      *cron.Screen
	log       *slog.Logger
}

// Receipts says how a prompt is acknowledged at once.
type Receipts string

// The receipts. Anything that is not NoReceipts means ReactionReceipts.
const (
	ReactionReceipts Receipts = "reaction" // 👀 on the message
	NoReceipts       Receipts = "none"
)

const (
	// submitPatience bounds the handing over of a prompt, which is one store transaction.
	submitPatience = 30 * time.Second
	receiptEmoji   = "👀"
	editEmoji      = "✍"
	steerEmoji     = "👌" // it is a part of the turn that runs
)

// receive runs one content task. Whenever it returns without having finished its updates, either an abort
// took them or ductor ends and they are taken up after the restart.
func (r *receiver) receive(ctx context.Context, l *lane, t *task) {
	if t.content.edited {
		r.edit(ctx, t)
		return
	}
	if in := t.content; in.file == nil && !in.forwarded && in.album == "" && in.rights == orchestrator.RightsOfChat && r.answered(ctx, in) {
		return
	}
	parts, ok := r.collect(ctx, l, t)
	if !ok {
		return
	}
	files, err := r.fetch(ctx, l, t, parts)
	if errors.Is(err, errLeft) || ctx.Err() != nil || !l.commit(t) {
		return
	}
	if err != nil {
		r.log.Warn("fetch files", "updates", t.updates, "err", err)
		r.closer.answerMerged(ctx, parts[0], t.updates, fileSentence(err, r.uploads.most), nil)
		return
	}
	r.submit(ctx, t, parts, files)
}

// answered passes a message to the approval, the question or the job that it is for; false if it is a prompt.
func (r *receiver) answered(ctx context.Context, in *incoming) bool {
	ctx, cancel := context.WithTimeout(ctx, submitPatience)
	defer cancel()
	return r.decided(ctx, in) || in.replyTo != 0 && r.changesJob(ctx, in)
}

// decided passes a message to the approval or the question that it is for; false if it is for none.
func (r *receiver) decided(ctx context.Context, in *incoming) bool {
	o := r.approvals.Reply(ctx, approval.Message{
		Conversation: in.conv, User: in.person, ReplyTo: in.replyTo, Text: in.text, Updates: in.updates(),
	})
	closing := r.closer
	if o.Secret {
		r.voice.remove(in.conv, in.message)
		closing = closing.forgetting()
	}
	switch {
	case o.Fate == approval.Prompt:
		in.context = cmp.Or(o.Text, in.context)
		return false
	case o.Fate == approval.Finish && o.Text != "":
		closing.answer(ctx, in, o.Text, nil)
	case o.Fate == approval.Finish:
		closing.finish(ctx, in.updates())
	}
	return true
}

// changesJob says whether a reply was for a job, and finishes it if so.
func (r *receiver) changesJob(ctx context.Context, in *incoming) bool {
	by := orchestrator.Press{Conversation: in.conv, Person: in.person, Updates: in.updates()}
	state := r.jobs.Reply(ctx, cron.Reply{By: by, To: in.replyTo, Text: in.text}, func(p tgapi.Page) { r.closer.answer(ctx, in, p.Text, p.Keyboard) })
	if state == cron.Done {
		r.voice.unbutton(in.conv, in.replyTo)
	}
	return state != cron.Prompt
}

// errLeft says that the content is no longer ours to deal with.
var errLeft = errors.New("dropped, or left for after the restart")

// collect waits for what belongs to the content.
func (r *receiver) collect(ctx context.Context, l *lane, t *task) ([]*incoming, bool) {
	parts := []*incoming{t.content}
	for {
		window, fits := r.windows.next(parts)
		if window <= 0 {
			return parts, true
		}
		if !l.goSlow(t) {
			return nil, false
		}
		if len(parts) == 1 {
			r.acknowledge(parts[0])
		}
		next := l.absorb(ctx, t, window, fits)
		if ctx.Err() != nil {
			return nil, false
		}
		if next == nil {
			return parts, true
		}
		parts = append(parts, next.content)
	}
}

func (r *receiver) fetch(ctx context.Context, l *lane, t *task, parts []*incoming) ([]orchestrator.Attachment, error) {
	var files []orchestrator.Attachment
	for _, p := range parts {
		if p.file == nil {
			continue
		}
		if !l.goSlow(t) {
			return nil, errLeft
		}
		if len(parts) == 1 {
			r.acknowledge(p)
		}
		a, err := r.fetchOne(ctx, p)
		if err != nil {
			return nil, err
		}
		files = append(files, a)
	}
	return files, nil
}

// fetchTries and fetchPatience bound the fetching of one file; the connection may be slow, but not for ever.
const (
	fetchTries    = 4
	fetchPatience = 5 * time.Minute
)

func (r *receiver) fetchOne(ctx context.Context, in *incoming) (orchestrator.Attachment, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchPatience)
	defer cancel()
	for try := 1; ; try++ {
		a, err := r.uploads.save(ctx, in)
		var refused *tgapi.AnswerError
		final := err == nil || errors.Is(err, errTooLarge) || errors.Is(err, errNoFolder) ||
			errors.As(err, &refused) && refused.Code < 500 && refused.Code != 429
		if final || try == fetchTries {
			return a, err
		}
		wait := time.Duration(try*try) * time.Second
		if refused != nil {
			wait = max(wait, refused.RetryAfter)
		}
		if pause(ctx, wait) != nil {
			return a, err
		}
	}
}

func fileSentence(err error, most int64) string {
	if errors.Is(err, errTooLarge) {
		return fmt.Sprintf("This file is too large: I may fetch at most %d MB. Nothing was passed on.", most>>20)
	}
	if errors.Is(err, errNoFolder) {
		return "The folder for this chat's files was replaced by a link or a file on the machine, so nothing was stored or passed on. The log says where it is: remove it there, and send this again."
	}
	return "I could not fetch this file from Telegram. Nothing was passed on; please send it again."
}

// submit hands the prompt to the desk, which marks the updates handled in the same transaction.
func (r *receiver) submit(ctx context.Context, t *task, parts []*incoming, files []orchestrator.Attachment) {
	first := parts[0]
	text := wordingOf(parts)
	if len(files) == 0 && isBlank(parts) {
		r.closer.answerMerged(ctx, first, t.updates, "There is no text in this message. Write what you want the agent to do.", nil)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, submitPatience)
	defer cancel()
	receipt, err := r.desk.Submit(ctx, orchestrator.Prompt{
		Conversation: first.conv, Person: first.person, Text: text, Attachments: files,
		Message: first.message, Updates: t.updates, Rights: orchestrator.Rights{Of: first.rights},
		Arrived: first.arrived,
	})
	switch {
	case errors.Is(err, orchestrator.ErrShutdown):
		return
	case ofDisk(err):
		r.closer.unfinished.add(t.updates)
	case err != nil:
		r.log.Error("submit prompt", "updates", t.updates, "err", err)
		r.closer.answerMerged(ctx, first, t.updates, "I could not store this message, so the agent did not get it. Please send it again; the log says what is wrong.", nil)
	case receipt.Full:
		r.closer.answerMerged(ctx, first, t.updates, "The queue is full, so this message is not taken. Send it again when the agent has caught up, or empty the queue with /abort.", nil)
	default:
		r.acknowledge(first)
		if receipt.Did == orchestrator.BusySteer && r.receipts != NoReceipts {
			r.voice.react(first.conv, first.message, steerEmoji, 0)
		}
		if receipt.Ahead > 0 {
			r.merged.keep(parts)
		}
	}
}

func isBlank(parts []*incoming) bool {
	for _, p := range parts {
		if p.text != "" || p.context != "" {
			return false
		}
	}
	return true
}

// receiptDelay is how long the first text of an answer may take instead of a receipt: each is a call of the chat's
// budget.
const receiptDelay = 700 * time.Millisecond

// acknowledge shows once that a message was taken.
func (r *receiver) acknowledge(in *incoming) {
	if r.receipts == NoReceipts || in.acknowledged {
		return
	}
	in.acknowledged = true
	r.voice.react(in.conv, in.message, receiptEmoji, receiptDelay)
}

// edit changes the prompt of a message that still waits in the queue. An edit that comes too late, or of
// something that never was a prompt, changes nothing, as everywhere in Telegram.
func (r *receiver) edit(ctx context.Context, t *task) {
	in := t.content
	if _, is := parseCommand(in.text); !is {
		message, text := r.merged.edited(in)
		ctx, cancel := context.WithTimeout(ctx, submitPatience)
		defer cancel()
		changed, err := r.desk.EditQueued(ctx, in.conv, message, text)
		switch {
		case errors.Is(err, orchestrator.ErrShutdown):
			return
		case ofDisk(err):
			r.closer.unfinished.add(t.updates)
			return
		case err != nil:
			r.log.Error("edit queued prompt", "updates", t.updates, "err", err)
			r.closer.answer(ctx, in, "I could not store this change. The message waits as it was.", nil)
			return
		case changed && r.receipts != NoReceipts:
			r.voice.react(in.conv, in.message, editEmoji, 0)
		case !changed && in.rights == orchestrator.RightsOfChat && r.restarts.offer(ctx, in, message, text):
			return
		}
	}
	r.closer.finish(ctx, t.updates)
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
