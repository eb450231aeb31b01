package message

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// Do makes the request for a step that Begin returned. Its errors are meant for the outbox. ErrOtherForm means that the
// next step should try another form of the same content. ErrNotNeeded means that no request is necessary.
func (m *Message) Do(ctx context.Context, step Step, want Content) error {
	switch step {
	case Send:
		return m.send(ctx, want)
	case Edit:
		return m.edit(ctx, want)
	case Delete:
		return m.remove(ctx, want)
	case Record:
		m.settle(want)
		return m.record(ctx)
	}
	return outbox.ErrNotNeeded
}

func (m *Message) send(ctx context.Context, want Content) error {
	keep := context.WithoutCancel(ctx)
	defer func() {
		m.endSending(keep, want)
		m.forgetFiles(keep, want, m.State())
	}()
	if err := m.save(ctx, orchestrator.Sending, 0); err != nil {
		m.mu.Lock()
		m.row.State = orchestrator.Pending // the message was not sent
		m.mu.Unlock()
		return err
	}
	chat := m.To().Chat
	m.all.flights.begin(chat)
	defer m.all.flights.end(chat)
	id, err := m.call(ctx, want)
	m.noteReachable(err)
	switch f := tgapi.FaultOf(err); f.Kind {
	case tgapi.NoFault:
		m.showed(want)
		m.all.arrived(m.spec.Key, id)
		return m.save(keep, orchestrator.Sent, id)
	case tgapi.UnknownFault:
		if m.mayResend(want) {
			return errors.Join(err, m.save(keep, orchestrator.Pending, 0))
		}
		return m.giveUp(keep, want, err)
	case tgapi.ChatMoved:
		m.moveTo(f.MovedTo)
		return errors.Join(outbox.ErrOtherForm, m.save(keep, orchestrator.Pending, 0))
	case tgapi.TopicGone, tgapi.BadRequest, tgapi.NoMethod, tgapi.TooLong, tgapi.ChatGone, tgapi.MessageGone:
		if want.OnlyRich && f.Kind == tgapi.NoMethod {
			m.log.Info("Telegram knows no rich messages, so one that is nothing else is not sent")
			return m.save(keep, orchestrator.Failed, 0)
		}
		if len(want.Files) > 0 && m.rejectFiles(want, f, err) || m.rejectRich(want, f, err) || m.nextFallback(f, err) {
			return errors.Join(outbox.ErrOtherForm, m.save(keep, orchestrator.Pending, 0))
		}
		return m.save(keep, orchestrator.Failed, 0)
	}
	return errors.Join(err, m.save(keep, orchestrator.Pending, 0))
}

// giveUp records that the message may or may not be in the chat, and that it is not sent again.
func (m *Message) giveUp(ctx context.Context, want Content, why error) error {
	m.log.Warn("a message may or may not have arrived; it is not sent again", "err", why)
	m.showed(want)
	return m.save(ctx, orchestrator.Unknown, 0)
}

// endSending gives up the message if a panic ended the request to send it. Without this, the message would count as
// being sent forever.
func (m *Message) endSending(ctx context.Context, want Content) {
	if m.State() != orchestrator.Sending {
		return
	}
	if err := m.giveUp(ctx, want, errPanicked); err != nil {
		m.log.Warn("record a message whose request panicked", "err", err)
	}
}

var errPanicked = errors.New("the request panicked")

// maxRepeats is the maximum number of times that a message is sent again because Telegram does not confirm it.
const maxRepeats = 6

// mayResend reports whether a message that Telegram did not confirm may be sent again, although it may then appear
// twice. mayResend counts the attempts.
func (m *Message) mayResend(want Content) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if want.Lifecycle != ResendIfUnknown || m.trouble.repeats >= maxRepeats {
		return false
	}
	m.trouble.repeats++
	return true
}

func (m *Message) call(ctx context.Context, want Content) (int, error) {
	if len(want.Files) > 0 && !m.has(asText) {
		return m.sendFiles(ctx, want)
	}
	return m.all.client.Send(ctx, tgapi.Message{
		To: m.To(), Text: m.renderText(want.Text, render.MessageLimit), Rich: m.richContent(want),
		Keyboard: want.Keyboard, ReplyTo: m.replyTo(want), Silent: want.Silent,
	})
}

// replyTo returns the ID of the message to which this message replies, or 0 for no reply. It drops IDs from before the
// group became a supergroup, because they are invalid.
func (m *Message) replyTo(want Content) int {
	if m.To().Chat != m.spec.To.Chat {
		return 0
	}
	return want.ReplyTo
}

func (m *Message) callEdit(ctx context.Context, want Content) error {
	if want.Unknown {
		return m.all.client.EditKeyboard(ctx, m.To().Chat, m.ID(), want.Keyboard)
	}
	if rich := m.richContent(want); rich != nil {
		return m.all.client.EditRich(ctx, m.To().Chat, m.ID(), rich, want.Keyboard)
	}
	return m.all.client.Edit(ctx, m.To().Chat, m.ID(), m.renderText(want.Text, render.MessageLimit), want.Keyboard)
}

// richContent returns the blocks of a rich message. It returns nil if the message is plain, or if Telegram rejected the
// blocks.
func (m *Message) richContent(want Content) []render.Block {
	m.mu.Lock()
	defer m.mu.Unlock()
	if want.Rich == nil || m.fallbacks&notRich != 0 {
		return nil
	}
	if m.fallbacks&inMainTopic != 0 {
		moved := render.Block{
			Kind: render.Paragraph,
			Text: render.Styled(render.Italic, m.all.lang.Of(m.spec.To.Chat).Text("common.moved")),
		}
		fit, _ := render.FitBlocks(append([]render.Block{moved}, want.Rich...), render.Block{Kind: render.Divider})
		return fit
	}
	return want.Rich
}

// rejectRich makes the message plain after Telegram rejected it. It returns false if the rich content was not the
// reason of the rejection.
func (m *Message) rejectRich(want Content, f tgapi.Fault, err error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if want.Rich == nil || want.OnlyRich || m.fallbacks&notRich != 0 ||
		f.Kind != tgapi.BadRequest && f.Kind != tgapi.TooLong && f.Kind != tgapi.NoMethod {
		return false
	}
	m.log.Warn("Telegram refused a rich message; it becomes a plain one", "err", err)
	m.fallbacks |= notRich
	if f.Kind == tgapi.NoMethod {
		m.fallbacks |= neverRich
	}
	return true
}

// record saves the message's state in the database. It makes no request to Telegram.
func (m *Message) record(ctx context.Context) error {
	m.mu.Lock()
	late, state, id := m.storage == behind, m.row.State, m.row.ID
	m.mu.Unlock()
	if late {
		if err := m.save(ctx, state, id); err != nil {
			return err
		}
	}
	return outbox.ErrNotNeeded
}

// nextFallback chooses another way to send a message that Telegram rejected. It returns false if no other way is left.
func (m *Message) nextFallback(f tgapi.Fault, err error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case f.Kind == tgapi.TopicGone && m.row.Conversation.Topic != 0:
		m.row.Conversation.Topic = 0
		m.fallbacks |= inMainTopic
	case (f.Kind == tgapi.BadRequest || f.Kind == tgapi.TooLong) && m.fallbacks&withoutFormatting == 0:
		m.log.Warn("Telegram refused a message; it goes out without formatting", "err", err)
		m.fallbacks |= withoutFormatting
	default:
		m.log.Error("Telegram refused a message for good", "err", err)
		m.trouble.refusal = f.Kind
		return false
	}
	return true
}

// commit ensures that the stored row of the message survives if the process is killed. It is called before an edit. If
// the row were lost after the edit, the next process would not know the message's ID. It would send the text again,
// although the chat already shows the text. If commit fails, it only logs the error.
func (m *Message) commit(ctx context.Context) {
	m.mu.Lock()
	needed := m.storage == saved
	if needed {
		m.storage = kept
	}
	m.mu.Unlock()
	if !needed {
		return
	}
	if err := m.all.store.CommitMessages(ctx); err != nil {
		m.log.Warn("commit the ID of a message", "err", err)
	}
}

func (m *Message) edit(ctx context.Context, want Content) error {
	// want may replace the final content in the chat. First store that the chat no longer shows the final content, so
	// that the next process shows it again after a crash.
	if want.Lifecycle != EditOnly && m.updateEnd(want) {
		if err := m.save(ctx, orchestrator.Sent, m.ID()); err != nil {
			return err
		}
	}
	m.commit(ctx)
	err := m.callEdit(ctx, want)
	m.noteReachable(err)
	keep := context.WithoutCancel(ctx)
	switch f := tgapi.FaultOf(err); f.Kind {
	case tgapi.NoFault, tgapi.NotModified:
		return m.finishEdits(keep, want)
	case tgapi.ChatMoved: // bots cannot edit messages from before the group became a supergroup
		if want.Lifecycle == EditOnly {
			return m.save(keep, orchestrator.Removed, 0)
		}
		m.moveTo(f.MovedTo)
		return errors.Join(outbox.ErrOtherForm, m.save(keep, orchestrator.Pending, 0))
	case tgapi.MessageGone:
		m.mu.Lock()
		again := want.Lifecycle == ResendIfDeleted && m.fallbacks&sentTwice == 0
		m.fallbacks |= sentTwice
		m.mu.Unlock()
		if !again {
			return m.save(keep, orchestrator.Removed, 0)
		}
		return errors.Join(outbox.ErrOtherForm, m.save(keep, orchestrator.Pending, 0))
	case tgapi.BadRequest, tgapi.TooLong, tgapi.ChatGone, tgapi.TopicGone:
		if m.rejectRich(want, f, err) || m.nextFallback(f, err) {
			return outbox.ErrOtherForm
		}
		return m.finishEdits(keep, want)
	}
	return err
}

// finishEdits records that the chat shows the content in want. It saves the row of the message only if the row must
// change: because this content is final, or because the row still contains content to send.
func (m *Message) finishEdits(ctx context.Context, want Content) error {
	owed := m.showed(want)
	if !m.updateEnd(want) && !owed {
		return nil
	}
	return m.save(ctx, orchestrator.Sent, m.ID())
}

// updateEnd sets m.row.Mark to orchestrator.EndShown if the chat shows the final content of the message, or replaces
// EndShown if the chat shows other content now. It reports whether m.row.Mark changed.
func (m *Message) updateEnd(shown Content) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	end := shown.Lifecycle == EditOnly
	if end == (m.row.Mark == orchestrator.EndShown) {
		return false
	}
	if m.row.Mark = shown.Mark; end {
		m.row.Mark = orchestrator.EndShown
	}
	return true
}

func (m *Message) remove(ctx context.Context, want Content) error {
	err := m.all.client.Delete(ctx, m.To().Chat, m.ID())
	switch f := tgapi.FaultOf(err); f.Kind {
	case tgapi.BadRequest, tgapi.MessageGone: // the message is too old to be deleted, or already deleted
		if want.Text.Text != "" {
			m.mu.Lock()
			m.fallbacks |= undeletable
			m.mu.Unlock()
			return outbox.ErrOtherForm
		}
	case tgapi.NoFault, tgapi.ChatGone, tgapi.ChatMoved, tgapi.TopicGone, tgapi.NotModified, tgapi.TooLong,
		tgapi.Conflict:
	default:
		return err
	}
	return m.save(context.WithoutCancel(ctx), orchestrator.Removed, 0)
}

// renderText applies the message's fallbacks to t: it removes the formatting, or adds a note about the deleted topic.
// limit is the maximum length in UTF-16 units.
func (m *Message) renderText(t render.Text, limit int) render.Text {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fallbacks&withoutFormatting != 0 {
		t.Entities = nil
	}
	if m.trouble.replacement != "" {
		t = render.AsMessage(render.Concat(render.Plain(m.trouble.replacement+"\n\n"), t))
	}
	if m.fallbacks&inMainTopic != 0 {
		if noted := render.Concat(render.Styled(render.Italic,
			m.all.lang.Of(m.spec.To.Chat).Text("common.moved")+"\n\n"), t); render.Fits(noted, limit) {
			return noted
		}
	}
	return render.Shorten(t, limit)
}

func (m *Message) sendFiles(ctx context.Context, want Content) (int, error) {
	out := tgapi.Files{To: m.To(), Caption: m.renderText(want.Text, render.CaptionLimit),
		Keyboard: want.Keyboard, ReplyTo: m.replyTo(want), Silent: want.Silent}
	for _, f := range want.Files {
		file := tgapi.File{
			Name: f.Name, Plain: f.Content, Caption: f.Caption, Picture: f.Picture && !m.has(asDocuments),
		}
		if f.Spooled != "" {
			content, err := m.all.spool.root.Open(f.Spooled)
			if err != nil {
				return 0, tgapi.NewCallError("file", tgapi.Fault{Kind: tgapi.BadRequest},
					fmt.Errorf("open a file to be sent: %w", err), nil)
			}
			defer content.Close()
			if info, err := content.Stat(); err == nil {
				file.Size = info.Size()
			}
			file.Content = content
		}
		out.Files = append(out.Files, file)
	}
	return m.all.client.SendFiles(ctx, out)
}

// rejectFiles chooses another way to send files that Telegram rejected: pictures as documents, and then a text with
// Telegram's reason instead of the files. It returns false if nothing else can be sent.
func (m *Message) rejectFiles(want Content, f tgapi.Fault, err error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f.Kind != tgapi.BadRequest && f.Kind != tgapi.TooLong || m.fallbacks&asText != 0 {
		return false
	}
	m.log.Warn("Telegram refused files; they go out in another way", "err", err)
	if want.Files[0].Picture && m.fallbacks&asDocuments == 0 {
		m.fallbacks |= asDocuments | withoutFormatting
		return true
	}
	m.fallbacks |= asText
	p := m.all.lang.Of(m.spec.To.Chat)
	m.trouble.replacement = p.Text("files.not-taken", namesOf(p, want.Files), cmp.Or(f.Description, string(f.Kind)))
	return true
}

func (m *Message) has(f fallbacks) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fallbacks&f != 0
}

// forgetFiles deletes the files of a message from the spool, unless the message may be sent again. If Telegram did not
// confirm the message, it also tells the user that the files may be missing.
func (m *Message) forgetFiles(ctx context.Context, c Content, now orchestrator.SendState) {
	if len(c.Files) == 0 || m.all.spool == nil || now == orchestrator.Pending || now == orchestrator.Sending {
		return
	}
	m.all.spool.Forget(c.Files...)
	if now != orchestrator.Unknown || m.landed == nil {
		return
	}
	p := m.all.lang.Of(m.spec.To.Chat)
	notice := Compose(m.To(), Content{Text: render.Plain(p.Text("files.may-be-missing", namesOf(p, c.Files)))})
	notice.Key = m.spec.Key + "/unknown"
	if err := m.all.store.SaveMessage(ctx, notice); err != nil {
		m.log.Warn("say that files may be missing", "err", err)
		return
	}
	m.all.Wake()
}

func namesOf(p lang.Printer, files []File) string {
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	return p.List(names...)
}
