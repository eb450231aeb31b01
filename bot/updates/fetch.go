package updates

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/fence"
)

// addReplied adds the file or the words of the message to which the user's message replies to the prompt. It
// returns false if an abort dropped the task or ductor is stopping.
func (r *receiver) addReplied(ctx context.Context, q *queue, t *task, in *Message) ([]orchestrator.Attachment, bool) {
	if !q.goSlow(t) {
		return nil, false
	}
	var files []orchestrator.Attachment
	if in.sent.reply.file.kind == speech {
		r.hearReplied(ctx, in)
	} else {
		files = r.fetchRepliedFile(ctx, in)
	}
	return files, ctx.Err() == nil && q.commit(t)
}

// fetchRepliedFile downloads the file of the message to which the user's message replies. If the download fails, it
// adds a line about the missing file to the prompt.
func (r *receiver) fetchRepliedFile(ctx context.Context, in *Message) []orchestrator.Attachment {
	r.acknowledge(in)
	of := *in
	of.ID, of.sent.file = in.sent.reply.id, in.sent.reply.file
	file, err := r.uploads.fetch(ctx, &of)
	if err != nil {
		r.log.Warn("fetch the file of a message that is replied to", "update", in.Update(), "err", err)
		in.Context += fence.LostFile(fencedName(of.sent.file.name))
		return nil
	}
	in.Context += fence.File(fencedName(file.Name))
	return []orchestrator.Attachment{file}
}

// hearReplied adds the words of the voice message to which the user's message replies to the prompt. If it cannot
// understand them, it adds a line about that, and sets Message.unheard.
func (r *receiver) hearReplied(ctx context.Context, in *Message) {
	if r.listener == nil {
		in.Context += fence.LostSpeech()
		in.unheard = errNoListener
		return
	}
	r.acknowledge(in)
	of := *in
	of.ID, of.sent.file = in.sent.reply.id, in.sent.reply.file
	of.Text, of.sent.forwarded = "", false
	file, err := r.uploads.fetch(ctx, &of)
	if err == nil {
		err = r.listen(ctx, &of, file.Path)
	}
	if err != nil {
		r.log.Warn("transcribe a message that is replied to", "update", in.Update(), "err", err)
		in.Context += fence.LostSpeech()
		in.unheard = err
		return
	}
	in.Context += fence.Speech(of.Text)
}

var errNoListener = errors.New("no program for speech is configured")

// explainUnheard tells the user that a prompt runs without the recording to which the user's message replies. The caller
// must have stored the prompt. If ductor crashes before the notice is stored, only the agent knows that the recording is
// missing.
func (r *receiver) explainUnheard(ctx context.Context, in *Message) {
	if in.unheard == nil {
		return
	}
	p, err, why := r.lang.Of(in.Conversation.Chat), in.unheard, ""
	switch {
	case errors.Is(err, errNoListener):
		why = p.Text("updates.unheard-no-program")
	case errors.Is(err, errNoFolder):
		why = p.Text("updates.unheard-no-folder")
	case errors.Is(err, ErrNothingHeard):
		why = p.Text("updates.unheard-no-words")
	case errors.As(err, new(unheard)):
		why = p.Text("updates.unheard-failed", render.Cut(render.OneLine(err.Error()), 300))
	default:
		why = r.uploads.Sentence(p, err)
	}
	r.finisher.Finish(ctx, nil, refusal(in.Conversation, in.ID, p.Text("updates.unheard", why)))
}

// fetch downloads the files of the messages, and transcribes speech. If a file fails, fetch also returns its message.
func (r *receiver) fetch(ctx context.Context, q *queue, t *task, parts []*Message) (files []orchestrator.Attachment,
	failed *Message, err error) {
	for _, p := range parts {
		if p.sent.file == nil {
			continue
		}
		if !q.goSlow(t) {
			return nil, nil, errLeft
		}
		if len(parts) == 1 {
			r.acknowledge(p)
		}
		a, err := r.uploads.fetch(ctx, p)
		if err == nil && p.sent.file.kind == speech {
			if err := r.listen(ctx, p, a.Path); err != nil {
				return nil, p, err
			}
			continue
		}
		if err != nil {
			return nil, p, err
		}
		files = append(files, a)
	}
	return files, nil, nil
}

type unheard struct{ error }

func (u unheard) Unwrap() error { return u.error }

// listen transcribes a recording and adds the transcript to the text of the message.
func (r *receiver) listen(ctx context.Context, in *Message, file string) error {
	said, err := r.listener.Transcribe(ctx, file)
	if err != nil {
		return unheard{err}
	}
	if in.sent.forwarded {
		said = fence.Text(said)
	}
	if in.Text != "" {
		said = in.Text + "\n" + said
	}
	in.Text, in.Plain = said, said
	return nil
}

// sentence returns the text that tells the user why the agent did not get a file.
func (r *receiver) sentence(p lang.Printer, err error) string {
	switch {
	case errors.Is(err, errNoFolder):
		return p.Text("updates.folder-replaced")
	case errors.Is(err, ErrNothingHeard):
		return p.Text("updates.nothing-heard")
	case errors.As(err, new(unheard)):
		return p.Text("updates.not-transcribed", render.Cut(render.OneLine(err.Error()), 300))
	}
	return r.uploads.Sentence(p, err) + " " + p.Text("updates.not-to-agent")
}

func isSpoken(parts []*Message) bool { return slices.ContainsFunc(parts, (*Message).isSpeech) }

// maxTranscript is the maximum length of the part of a transcript that is shown, in UTF-16 code units.
const maxTranscript = 3000

// showTranscripts replies to the voice messages of a prompt with the text that the agent gets. It omits forwarded
// messages. If ductor handles a message again after a crash, it sends no second reply.
func (r *receiver) showTranscripts(ctx context.Context, parts []*Message) {
	for _, p := range parts {
		if !p.isSpeech() || p.sent.forwarded {
			continue
		}
		err := r.finisher.sender.PostOnce(ctx, p.Conversation, fmt.Sprint("heard/", p.Conversation.Key(), "/", p.ID),
			message.Content{
				Text: render.Plain("🎙 " + render.ShortenPlain(p.Text, maxTranscript)), ReplyTo: p.ID, Silent: true,
			})
		if err != nil && !ofDisk(err) { // the prompt runs all the same
			r.log.Error("show a transcript", "update", p.Update(), "err", err)
		}
	}
}
