package updates

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"

	"ductor/bot/render"
	"ductor/lang"
	"ductor/orchestrator"
)

// receiver converts content to prompts. It waits for parts that belong together, fetches files, and submits
// everything as one prompt.
type receiver struct {
	turns     Turns
	listener  Listener // nil: speech is not supported
	handler   Handler
	finisher  *Finisher
	feedback  Feedback
	uploads   *Uploads
	windows   mergeWindows
	merged    *mergeMemory
	recent    *recent
	reactions func() bool
	lang      *lang.Choices
	log       *slog.Logger
}

const (
	// submitPatience limits the submission of a prompt, which is one store transaction.
	submitPatience = 30 * time.Second
	receiptEmoji   = "👀"
	editEmoji      = "✍"
	steerEmoji     = "👌" // the prompt became a part of the running turn
)

// receive runs one content task. If it returns without finishing the updates, an abort has taken them over, or ductor
// is stopping and the next process handles them.
func (r *receiver) receive(ctx context.Context, q *queue, t *task) {
	if t.content.sent.edited {
		r.edit(ctx, t)
		return
	}
	parts, ok := r.collect(ctx, q, t)
	if !ok {
		return
	}
	if !slices.ContainsFunc(parts, func(p *Message) bool { return !p.onlyWithAlbum }) {
		if q.commit(t) {
			r.finisher.Finish(ctx, t.updates)
		}
		return
	}
	files, err := r.fetch(ctx, q, t, parts)
	if errors.Is(err, errLeft) || ctx.Err() != nil || !q.commit(t) {
		return
	}
	if err != nil {
		r.log.Warn("fetch files", "updates", t.updates, "err", err)
		r.finisher.answerPrompt(ctx, parts[0], t.updates, r.sentence(r.lang.Of(q.id.Chat), err))
		return
	}
	first := parts[0]
	if !first.sent.forwarded && first.Role.May(orchestrator.ActAsChat) && r.answered(ctx, t, parts, files) {
		return
	}
	if first.sent.reply != nil && first.sent.reply.file != nil {
		if !q.goSlow(t) {
			return
		}
		files = append(files, r.fetchRepliedFile(ctx, first)...)
		if ctx.Err() != nil || !q.commit(t) {
			return
		}
	}
	r.submit(ctx, t, parts, files)
}

// answered passes the content to Handler.Reply, which may use it as an answer to a message of the bot. It returns
// false if the content is a prompt.
func (r *receiver) answered(ctx context.Context, t *task, parts []*Message, files []orchestrator.Attachment) bool {
	ctx, cancel := context.WithTimeout(ctx, submitPatience)
	defer cancel()
	whole := *parts[0]
	whole.Files, whole.merged = files, t.updates[1:]
	if len(parts) > 1 {
		whole.Context, whole.sender = "", ""
		own := slices.Concat([]*Message{&whole}, parts[1:])
		whole.Text = wordingOf(own)
		whole.Plain = whole.Text
		whole.Context = parts[0].Context
	}
	took := r.handler.Reply(ctx, &whole)
	if whole.Context != parts[0].Context { // the handler put the replied-to message into the context
		parts[0].Context, parts[0].sent.reply = whole.Context, nil
	}
	return took
}

// addSubject adds the replied-to message of the bot to a message's context, unless the agent knows it.
func (r *receiver) addSubject(ctx context.Context, in *Message) {
	if in.ReplyTo != 0 && in.sent.reply != nil {
		in.Context = subjectOf(in, r.handler.Subject(ctx, in)) + in.Context
	}
}

// fetchRepliedFile fetches the file of the message to which a message replies. If that fails, the prompt mentions the
// missing file.
func (r *receiver) fetchRepliedFile(ctx context.Context, in *Message) []orchestrator.Attachment {
	r.acknowledge(in)
	of := *in
	of.ID, of.sent.file = in.sent.reply.id, in.sent.reply.file
	file, err := r.uploads.fetch(ctx, &of)
	switch {
	case err != nil:
		r.log.Warn("fetch the file of a message that is replied to", "update", in.Update, "err", err)
		in.Context += lostFile(of.sent.file.name)
		return nil
	case of.sent.file.kind != speech:
		in.Context += broughtFile(file.Name)
		return []orchestrator.Attachment{file}
	case r.listener == nil:
		return nil
	}
	of.Text, of.sent.forwarded = "", false
	if err := r.listen(ctx, &of, file.Path); err == nil {
		in.Context += broughtSpeech(of.Text)
	}
	return nil
}

// errLeft means that the caller must not continue with the content, because an abort dropped it or ductor is
// stopping.
var errLeft = errors.New("dropped, or left for after the restart")

// collect waits for all parts of the content. It returns false if the content was dropped.
func (r *receiver) collect(ctx context.Context, q *queue, t *task) ([]*Message, bool) {
	parts := []*Message{t.content}
	for {
		window, fits := r.windows.next(parts)
		if window <= 0 {
			return parts, true
		}
		if !q.gather(t) {
			return nil, false
		}
		if len(parts) == 1 && !parts[0].onlyWithAlbum {
			r.acknowledge(parts[0])
		}
		next := q.absorb(ctx, t, window, fits)
		if ctx.Err() != nil {
			return nil, false
		}
		if next == nil {
			return parts, true
		}
		parts = append(parts, next.content)
	}
}

func (r *receiver) fetch(ctx context.Context, q *queue, t *task, parts []*Message) ([]orchestrator.Attachment, error) {
	var files []orchestrator.Attachment
	for _, p := range parts {
		if p.sent.file == nil {
			continue
		}
		if !q.goSlow(t) {
			return nil, errLeft
		}
		if len(parts) == 1 {
			r.acknowledge(p)
		}
		a, err := r.uploads.fetch(ctx, p)
		if err == nil && p.sent.file.kind == speech {
			if err := r.listen(ctx, p, a.Path); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		files = append(files, a)
	}
	return files, nil
}

// unheard is an error of the Listener.
type unheard struct{ error }

func (u unheard) Unwrap() error { return u.error }

// listen replaces the text of a message by the transcript of its file.
func (r *receiver) listen(ctx context.Context, in *Message, file string) error {
	said, err := r.listener.Transcribe(ctx, file)
	if err != nil {
		return unheard{err}
	}
	if in.sent.forwarded {
		said = fencedText(said)
	}
	if in.Text != "" {
		said = in.Text + "\n" + said
	}
	in.Text, in.Plain = said, said
	return nil
}

// sentence explains to the user why a file is missing in the prompt.
func (r *receiver) sentence(p lang.Printer, err error) string {
	switch {
	case errors.Is(err, ErrNothingHeard):
		return p.Text("updates.nothing-heard")
	case errors.As(err, new(unheard)):
		return p.Text("updates.not-transcribed", render.Cut(render.OneLine(err.Error()), 300))
	}
	return r.uploads.Sentence(p, err)
}

// isSpoken reports whether one of the parts is speech.
func isSpoken(parts []*Message) bool {
	return slices.ContainsFunc(parts, func(p *Message) bool { return p.sent.file != nil && p.sent.file.kind == speech })
}

// submit stores the prompt as a turn, and marks the updates as handled in the same transaction.
func (r *receiver) submit(ctx context.Context, t *task, parts []*Message, files []orchestrator.Attachment) {
	p := r.lang.Of(t.conv.Chat)
	first := parts[0]
	if _, _, begins := splitName(first.Text); begins { // an agent may take long to list the models for the name
		r.acknowledge(first)
	}
	wants, named := r.cutModelName(ctx, first)
	if named && !first.Role.May(orchestrator.ChangeSettings) {
		r.finisher.answerPrompt(ctx, first, t.updates, p.Text("common.not-for-members"))
		return
	}
	r.addSubject(ctx, first)
	of := r.recent.promptOf(first)
	if len(of.parts) > 0 {
		wants = of.wants
	}
	text := wordingOf(parts)
	if len(files) == 0 && isBlank(parts) {
		r.finisher.answerPrompt(ctx, first, t.updates, p.Text("updates.no-text"))
		return
	}
	ctx, cancel := context.WithTimeout(ctx, submitPatience)
	defer cancel()
	prompt := orchestrator.Prompt{
		Conversation: first.Conversation, Person: first.User, Text: text, Attachments: files,
		Message: first.ID, PartOf: of.message(), Updates: t.updates,
		Rights:  orchestrator.Rights{Of: first.Role.OfTurns()},
		Arrived: first.arrived,
	}
	if isSpoken(parts) && r.handler.Heard(ctx, first, prompt) {
		return
	}
	receipt, err := r.turns.Submit(ctx, prompt, wants)
	switch {
	case errors.Is(err, orchestrator.ErrShutdown):
		return
	case ofDisk(err):
		r.finisher.unfinished.add(t.updates, first)
	case err != nil:
		r.log.Error("submit prompt", "updates", t.updates, "err", err)
		r.finisher.answerPrompt(ctx, first, t.updates, p.Text("updates.not-stored"))
	case receipt.Full:
		r.finisher.answerPrompt(ctx, first, t.updates, p.Text("updates.queue-full"))
	default:
		r.acknowledge(first)
		if receipt.Did == orchestrator.BusySteer && r.reactions() {
			r.feedback.React(first.Conversation, first.ID, steerEmoji, 0)
		}
		of.parts, of.wants = slices.Concat(of.parts, parts), wants
		r.recent.remember(of)
		r.merged.remember(of.parts)
	}
}

// cutModelName removes the name of a model from the start of a prompt, as in "@fast explain this", and returns the
// model's choice. If the name is unknown, the text stays unchanged, and named is false.
func (r *receiver) cutModelName(ctx context.Context, in *Message) (wants orchestrator.Wants, named bool) {
	name, rest, ok := splitName(in.Text)
	if !ok {
		return orchestrator.Wants{}, false
	}
	if wants, named = r.handler.Named(ctx, in.Conversation, name); named {
		in.Text = rest
	}
	return wants, named
}

// splitName splits a text that starts with @ and a name. It returns the name and the remaining text, which must not
// be empty.
func splitName(text string) (name, rest string, ok bool) {
	text, ok = strings.CutPrefix(text, "@")
	i := strings.IndexFunc(text, unicode.IsSpace)
	if !ok || i <= 0 {
		return "", "", false
	}
	rest = strings.TrimLeftFunc(text[i:], unicode.IsSpace)
	return text[:i], rest, rest != ""
}

func isBlank(parts []*Message) bool {
	return !slices.ContainsFunc(parts, func(p *Message) bool { return p.Text != "" || p.Context != "" })
}

// ReceiptDelay is how long ductor waits for the first text of an answer before it puts the receipt emoji on the user's
// message. The emoji is a call to Telegram, which counts towards the chat's limit of calls.
const ReceiptDelay = 700 * time.Millisecond

// acknowledge puts the receipt emoji on a message, once.
func (r *receiver) acknowledge(in *Message) {
	if !r.reactions() || in.acknowledged {
		return
	}
	in.acknowledged = true
	r.feedback.React(in.Conversation, in.ID, receiptEmoji, ReceiptDelay)
}

// edit changes the prompt of a message in the queue. A late edit, or an edit of a message that was not a prompt, has
// no effect, as users of Telegram expect.
func (r *receiver) edit(ctx context.Context, t *task) {
	in := t.content
	if _, is := ParseCommand(in.Plain); !is {
		ctx, cancel := context.WithTimeout(ctx, submitPatience)
		defer cancel()
		_, _ = r.cutModelName(ctx, in) // the edit does not change the choice of the model
		r.addSubject(ctx, in)
		message, text := r.merged.edited(in)
		changed, err := r.turns.EditQueued(ctx, in.Conversation, message, text)
		switch {
		case errors.Is(err, orchestrator.ErrShutdown):
			return
		case ofDisk(err):
			r.finisher.unfinished.add(t.updates, in)
			return
		case err != nil:
			r.log.Error("edit queued prompt", "updates", t.updates, "err", err)
			r.finisher.Answer(ctx, in, r.lang.Of(t.conv.Chat).Text("updates.edit-not-stored"), nil)
			return
		case changed && r.reactions():
			r.feedback.React(in.Conversation, in.ID, editEmoji, 0)
		case !changed && in.Role.May(orchestrator.ActAsChat) && r.handler.Edited(ctx, in, message, text):
			return
		}
	}
	r.finisher.Finish(ctx, t.updates)
}
