package updates

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"

	"ductor/lang"
	"ductor/orchestrator"
)

// receiver turns messages into prompts. It merges messages that belong together, downloads their files, and submits the
// result as one turn.
type receiver struct {
	turns    Turns
	listener Listener // nil: speech is not supported
	handler  Handler
	finisher *Finisher
	feedback Feedback
	uploads  *Uploads
	allow    Allow
	windows  mergeWindows
	merged   *mergeMemory
	recent   *recent
	lang     *lang.Choices
	log      *slog.Logger
}

const (
	submitPatience = 30 * time.Second
	diskTries      = 10 // number of failures in a row after which receive refuses a message
	receiptEmoji   = "👀"
	editEmoji      = "✍"
	steerEmoji     = "👌" // reaction to a prompt that was added to the running turn
)

// handle handles the messages of a task, and may change them. After an error of the disk (see ofDisk), the caller must
// call handle again.
func (r *receiver) handle(ctx context.Context, q *queue, t *task, parts []*Message) error {
	if parts[0].sent.edited {
		if !q.commit(t) {
			return nil
		}
		if may, err := r.stillMay(ctx, t, parts); !may {
			return err
		}
		return r.edit(ctx, t, parts[0])
	}
	if !slices.ContainsFunc(parts, func(p *Message) bool { return !p.sent.onlyWithAlbum }) {
		if q.commit(t) {
			r.finisher.Finish(ctx, t.updates)
		}
		return nil
	}
	for _, p := range parts {
		switch {
		case p.sent.refusal == "":
		case q.commit(t):
			return r.refuse(ctx, t, p, p.sent.refusal)
		default:
			return nil
		}
	}
	files, failed, err := r.fetch(ctx, q, t, parts)
	if errors.Is(err, errLeft) || ctx.Err() != nil || !q.commit(t) {
		return nil
	}
	if err != nil {
		r.log.Warn("fetch files", "updates", t.updates, "err", err)
		p := r.lang.Of(q.id.Chat)
		text := r.sentence(p, err)
		if len(parts) > 1 {
			text += " " + p.Text("updates.nor-the-rest")
		}
		return r.refuse(ctx, t, failed, text)
	}
	if may, err := r.stillMay(ctx, t, parts); !may {
		return err
	}
	first := parts[0]
	mayAnswer := !first.sent.forwarded && !startsSession(parts) && first.Role.May(orchestrator.ActAsChat)
	if mayAnswer && r.answered(ctx, t, parts, files) {
		return nil
	}
	if first.sent.reply != nil && first.sent.reply.file != nil {
		replied, ok := r.addReplied(ctx, q, t, first)
		if !ok {
			return nil
		}
		files = append(files, replied...)
	}
	return r.submit(ctx, t, parts, files)
}

// stillMay updates the user's role in the messages, because the role may have changed while the messages waited. It
// reports whether a user with this role may send prompts and, if a caption asks for a new session, start sessions. If
// not, stillMay marks the messages as handled. It returns the same errors as handle.
func (r *receiver) stillMay(ctx context.Context, t *task, parts []*Message) (bool, error) {
	first := parts[0]
	if !r.allow.permitsIn(first.Conversation.Chat, first.Person) {
		return false, r.finisher.finish(ctx, t.updates)
	}
	role := r.allow.roleOf(first.Person)
	for _, p := range parts {
		p.Role = role
	}
	needed := orchestrator.SendPrompts
	if startsSession(parts) {
		needed = orchestrator.ChangeSessions
	}
	if !role.May(needed) {
		return false, r.refuse(ctx, t, first, r.lang.Of(t.conv.Chat).Text(Refusal(role)))
	}
	return true, nil
}

// answered passes the messages to Handler.Reply, because they may answer a question of the bot. It returns false if the
// messages are a prompt.
func (r *receiver) answered(ctx context.Context, t *task, parts []*Message, files []orchestrator.Attachment) bool {
	ctx, cancel := context.WithTimeout(ctx, submitPatience)
	defer cancel()
	whole := *parts[0]
	whole.Files, whole.Updates = files, t.updates
	if len(parts) > 1 {
		whole.Context = ""
		own := slices.Concat([]*Message{&whole}, parts[1:])
		whole.Text = wordingOf(own)
		whole.Plain = whole.Text
		whole.Context = parts[0].Context
	}
	took := r.handler.Reply(ctx, &whole)
	if whole.Context != parts[0].Context { // Reply added a quote of the message to which the user replied
		parts[0].Context, parts[0].sent.reply = whole.Context, nil
	}
	return took
}

// addSubject adds a quote to a message that replies to the bot, unless the agent knows the quoted message anyway.
func (r *receiver) addSubject(ctx context.Context, in *Message) {
	if in.ReplyTo != 0 && in.sent.reply != nil {
		in.Context = subjectOf(in, r.handler.Subject(ctx, in)) + in.Context
	}
}

// errLeft means that the method receive must return at once, because an abort dropped the task, or ductor is stopping.
var errLeft = errors.New("dropped, or left for after the restart")

// collect waits for all messages of the prompt. It returns false if an abort dropped the task or ductor is stopping.
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
		if len(parts) == 1 && !parts[0].sent.onlyWithAlbum {
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

func startsSession(parts []*Message) bool {
	return slices.ContainsFunc(parts, func(p *Message) bool { return p.sent.newSession })
}

// submit stores the messages as one turn, and marks their updates as handled in the same transaction. It returns the
// same errors as handle.
func (r *receiver) submit(ctx context.Context, t *task, parts []*Message, files []orchestrator.Attachment) error {
	p := r.lang.Of(t.conv.Chat)
	first := parts[0]
	if _, _, begins := SplitName(first.Text); begins { // cutModelName may take long, so show the user the 👀 first
		r.acknowledge(first)
	}
	wants, named := r.cutModelName(ctx, first)
	if named && !first.Role.May(orchestrator.ChangeSettings) {
		return r.refuse(ctx, t, first, p.Text("common.not-for-members"))
	}
	r.addSubject(ctx, first)
	var of sentPrompt // the earlier prompt to which the messages belong
	if !startsSession(parts) {
		of = r.recent.promptOf(first)
	}
	if len(of.parts) > 0 {
		wants = of.wants
	}
	text := wordingOf(parts)
	if len(files) == 0 && isBlank(parts) {
		return r.refuse(ctx, t, first, p.Text("updates.no-text"))
	}
	ctx, cancel := context.WithTimeout(ctx, submitPatience)
	defer cancel()
	if startsSession(parts) {
		if err := r.handler.NewSession(ctx, first); err != nil {
			return r.notBegun(ctx, t, first, err)
		}
	}
	prompt := orchestrator.Prompt{
		Conversation: first.Conversation, Person: first.Person, Text: text, Attachments: files,
		Message: first.ID, PartOf: of.message(), Updates: t.updates,
		Rights:  orchestrator.Rights{Of: first.Role.OfTurns()},
		Arrived: first.Arrived,
	}
	if isSpoken(parts) && r.handler.Heard(ctx, first, prompt, wants) {
		r.explainUnheard(ctx, first)
		return nil
	}
	r.showTranscripts(ctx, parts)
	receipt, err := r.turns.Submit(ctx, prompt, wants)
	switch {
	case errors.Is(err, orchestrator.ErrShutdown):
		return nil
	case ofDisk(err):
		return err
	case err != nil:
		r.log.Error("submit prompt", "updates", t.updates, "err", err)
		return r.refuse(ctx, t, first, p.Text("updates.not-stored"))
	case receipt.Full:
		return r.refuse(ctx, t, first, p.Text("updates.queue-full"))
	}
	r.explainUnheard(ctx, first)
	r.acknowledge(first)
	if receipt.Did == orchestrator.BusySteer && r.reactions() {
		r.feedback.React(first.Conversation, first.ID, steerEmoji, 0)
	}
	of.parts, of.wants = slices.Concat(of.parts, parts), wants
	r.recent.remember(of)
	r.merged.remember(of.parts)
	return nil
}

// notBegun handles an error of Handler.NewSession. It returns the same errors as handle.
func (r *receiver) notBegun(ctx context.Context, t *task, in *Message, err error) error {
	switch {
	case errors.Is(err, orchestrator.ErrShutdown):
		return nil
	case ofDisk(err):
		return err
	}
	r.log.Error("start a session", "updates", t.updates, "err", err)
	p := r.lang.Of(t.conv.Chat)
	return r.refuse(ctx, t, in, p.Text("bot.log-says", p.Text("bot.not-begun")))
}

// refuse answers a prompt that will not run. It returns the same errors as handle.
func (r *receiver) refuse(ctx context.Context, t *task, in *Message, text string) error {
	return r.finisher.finish(ctx, t.updates, refusal(in.Conversation, in.ID, text))
}

// cutModelName removes the name of a model from the start of a prompt, such as "@fast" in "@fast explain this". It
// returns the settings for that model. If no model has the name, cutModelName changes nothing and returns false.
func (r *receiver) cutModelName(ctx context.Context, in *Message) (wants orchestrator.Wants, named bool) {
	name, rest, ok := SplitName(in.Text)
	if !ok {
		return orchestrator.Wants{}, false
	}
	if wants, named = r.handler.Named(ctx, in.Conversation, name); named {
		in.Text = rest
	}
	return wants, named
}

// SplitName splits a text such as "@fast explain this" into the name and the rest. It returns false if the text does
// not have this form.
func SplitName(text string) (name, rest string, ok bool) {
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

// ReceiptDelay is how long ductor waits for the first text of an answer before it adds the 👀 reaction to the user's
// message. If the text comes earlier, ductor adds no reaction, because reactions count toward Telegram's rate limit.
const ReceiptDelay = 700 * time.Millisecond

// reactions reports whether the bot adds reactions to messages.
func (r *receiver) reactions() bool { return r.allow.Policy().Reactions }

// acknowledge adds the 👀 reaction to a message that does not have it yet.
func (r *receiver) acknowledge(in *Message) {
	if !r.reactions() || in.acknowledged {
		return
	}
	in.acknowledged = true
	r.feedback.React(in.Conversation, in.ID, receiptEmoji, ReceiptDelay)
}

// edit changes the text of a queued prompt after the user edited its message. If the turn has already started, or the
// message was not a prompt, edit passes the message to Handler.Edited. It returns the same errors as handle.
func (r *receiver) edit(ctx context.Context, t *task, in *Message) error {
	ctx, cancel := context.WithTimeout(ctx, submitPatience)
	defer cancel()
	first := r.merged.first(in)
	if _, is := ParseCommand(in.Plain); is && first == in.ID {
		if !r.handler.EditedToCommand(ctx, in, first) {
			r.finisher.Finish(ctx, t.updates)
		}
		return nil
	}
	var named *orchestrator.Wants
	if first == in.ID {
		if to, found := r.cutModelName(ctx, in); found {
			named = &to
		}
		if named != nil && r.handler.EditedToModel(ctx, in, first, *named) {
			return nil
		}
	}
	r.addSubject(ctx, in)
	message, text := r.merged.edited(in)
	changed, err := r.turns.EditQueued(ctx, in.Conversation, message, text)
	switch {
	case errors.Is(err, orchestrator.ErrShutdown):
		return nil
	case ofDisk(err):
		return err
	case err != nil:
		r.log.Error("edit queued prompt", "updates", t.updates, "err", err)
		r.finisher.Refuse(ctx, in, r.lang.Of(t.conv.Chat).Text("updates.edit-not-stored"))
		return nil
	case changed && r.reactions():
		r.feedback.React(in.Conversation, in.ID, editEmoji, 0)
	case !changed && r.handler.Edited(ctx, in, message, text, named):
		return nil
	}
	r.finisher.Finish(ctx, t.updates)
	return nil
}
