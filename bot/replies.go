package bot

import (
	"cmp"
	"context"

	"ductor/bot/approval"
	"ductor/bot/changes"
	"ductor/bot/cron"
	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/orchestrator"
)

// handleExpected handles a message that contains a text for which the bot asked after the user pressed a button. It
// returns expected = true if it handled the message. It does not handle replies. It also does not handle messages that
// may answer an approval or question of the agent, if the agent asked after the user pressed the button.
//
// mayDecide is false if the user has started something else, such as a new session, since the agent asked. The message
// then cannot answer the approval or question.
func (h *handlers) handleExpected(ctx context.Context, in *updates.Message) (expected, mayDecide bool) {
	if in.ReplyTo != 0 {
		return false, true
	}
	to, acted, err := message.Expected(ctx, h.journal, in.Press)
	if err != nil {
		h.commands.log.Error("find the question before a message", "update", in.Update(), "err", err)
	}
	switch {
	case acted.IsZero(), h.approvals.AnswersNewer(ctx, approvalMessage(in), acted):
		return false, true
	case to == 0:
		return false, false
	case len(in.Files) > 0, !h.handleText(ctx, in, to):
		return false, true
	}
	return true, true
}

// handleText handles a text for which the bot has asked: a field of a job, or the title of a session. to is the ID of
// the bot's message that asked for the text. handleText returns false if this message asks for no text.
func (h *handlers) handleText(ctx context.Context, in *updates.Message, to int) bool {
	return h.handleJobReply(ctx, in, to) || h.handleRenaming(ctx, in, to)
}

// handleCommitReply commits the changes of a turn if the user replies to a message that asks for a commit message. It
// returns false for any other reply.
func (h *handlers) handleCommitReply(ctx context.Context, in *updates.Message) bool {
	p := h.commands.lang.Of(in.Conversation.Chat)
	answer, ok, err := h.commands.screens.changes.Replied(ctx, changes.Reply{
		By: in.Press, To: in.ReplyTo, Text: in.Text,
	})
	if err != nil {
		h.commands.log.Error("commit what a turn changed", "update", in.Update(), "err", err)
		answer = p.Text("bot.log-says", p.Text("bot.not-done"))
	}
	if !ok || !h.finisher.Answer(ctx, in, answer, nil) {
		return ok
	}
	if err := h.commands.screens.changes.Withdraw(ctx, in.Conversation, in.ReplyTo, answer); err != nil {
		h.commands.log.Warn("withdraw the question about a commit", "update", in.Update(), "err", err)
	}
	return true
}

func approvalMessage(in *updates.Message) approval.Message {
	return approval.Message{
		Conversation: in.Conversation, User: in.Person, Role: in.Role, ReplyTo: in.ReplyTo, Text: in.Text,
		Plain: in.Plain, Updates: in.Updates,
		Files: in.Files, Private: in.Private, Arrived: in.Arrived,
	}
}

// handleDecision handles a message that answers an approval or a question. It returns false for any other message.
func (h *handlers) handleDecision(ctx context.Context, in *updates.Message) bool {
	o := h.approvals.Reply(ctx, approvalMessage(in))
	f := h.finisher
	if o.Secret {
		h.feedback.Remove(in.Conversation, in.ID)
		f = f.Forgetting()
	}
	switch {
	case o.Handling == approval.TreatAsPrompt:
		in.Context = cmp.Or(o.Text, in.Context)
		return false
	case o.Handling == approval.MarkHandled && o.Text != "" && !o.Secret:
		f.Refuse(ctx, in, o.Text)
	case o.Handling == approval.MarkHandled && o.Text != "": // no reply, because the message with the secret is deleted
		f.Answer(ctx, in, o.Text, nil)
	case o.Guessed && o.Handling == approval.Ignore:
		h.offerPrompt(ctx, in, nil, h.transcripts.Answered)
	case o.Guessed:
		h.offerPrompt(ctx, in, in.Updates, h.transcripts.Answered)
	case o.Handling == approval.MarkHandled:
		f.Finish(ctx, in.Updates)
	}
	return true
}

// offerPrompt sends a notice that explains how the bot used the user's message. The notice has a button that also sends
// the message to the agent as a prompt.
func (h *handlers) offerPrompt(ctx context.Context, in *updates.Message, finish []int64,
	notice func(context.Context, orchestrator.Prompt) (orchestrator.Message, error)) {
	m, err := notice(ctx, promptOf(in))
	if err != nil {
		h.commands.log.Error("offer to make a prompt of an answer", "update", in.Update(), "err", err)
		h.finisher.Finish(ctx, finish)
		return
	}
	h.finisher.Finish(ctx, finish, m)
}

// promptOf returns a message of a user as a prompt, without files.
func promptOf(in *updates.Message) orchestrator.Prompt {
	return orchestrator.Prompt{
		Conversation: in.Conversation, Person: in.Person, Text: in.Context + in.Text, Message: in.ID,
		Rights: orchestrator.Rights{Of: in.Role.OfTurns()}, Arrived: in.Arrived, Updates: in.Updates,
	}
}

// answerText is called when the bot has handled a text for which it had asked. It marks the user's message as handled,
// and sends an answer. to is the ID of the bot's message that asked for the text. used reports whether the bot could
// use the text. If the user's message is not a reply, the user may have meant it as a prompt, so answerText also offers
// to send it to the agent. answerText returns false if the next process must handle the user's message again.
func (h *handlers) answerText(ctx context.Context, in *updates.Message, to int, answer tgapi.Page,
	used bool) bool {
	if in.ReplyTo != 0 {
		return h.finisher.Answer(ctx, in, answer.Text, answer.Keyboard)
	}
	var offer orchestrator.Message
	var err error
	if used {
		offer, err = h.transcripts.Expected(ctx, promptOf(in), to)
	} else {
		offer, err = h.transcripts.Refused(ctx, promptOf(in), answer.Text)
	}
	switch {
	case err != nil:
		h.commands.log.Error("offer to make a prompt of a text", "update", in.Update(), "err", err)
		return h.finisher.Answer(ctx, in, answer.Text, answer.Keyboard)
	case !used:
		return h.finisher.Finish(ctx, in.Updates, offer)
	}
	return h.finisher.Finish(ctx, in.Updates, message.Compose(in.Conversation, message.Content{
		Text: render.Plain(answer.Text), Keyboard: answer.Keyboard, ReplyTo: in.Quote(),
	}), offer)
}

// undoText implements Undo in transcript.Options. The text may have replaced a field of a job or the title of a
// session.
func (h *handlers) undoText(ctx context.Context, by orchestrator.Press, question int, update int64) string {
	text, err := h.commands.screens.jobs.Undo(ctx, by, question, update)
	if err == nil && text == "" {
		text, err = h.commands.screens.sessions.Undo(ctx, by, question, update)
	}
	if err != nil {
		h.commands.log.Error("restore what a text replaced", "updates", by.Updates, "err", err)
		return ""
	}
	return text
}

// handleJobReply changes a field of a scheduled job if a message of the bot asks for this field. to is the ID of the
// bot's message. handleJobReply returns false if this message asks for no such field.
func (h *handlers) handleJobReply(ctx context.Context, in *updates.Message, to int) bool {
	reply := cron.Reply{By: in.Press, To: to, Text: in.Text}
	state := h.commands.screens.jobs.Reply(ctx, reply, func(p tgapi.Page, used bool) {
		h.answerText(ctx, in, to, p, used)
	})
	if state == cron.Done {
		h.feedback.Unbutton(in.Conversation, to)
	}
	return state != cron.Prompt
}

// handleRenaming renames a session if a message of the bot asks for the new title. to is the ID of the bot's message.
// handleRenaming returns false if this message asks for no title.
func (h *handlers) handleRenaming(ctx context.Context, in *updates.Message, to int) bool {
	renamed, ok, err := h.commands.screens.sessions.Replied(ctx, in.Press, to, in.Plain)
	answer := renamed.Answer
	if err != nil {
		h.commands.log.Error("rename a session", "update", in.Update(), "err", err)
		answer = cmp.Or(answer, h.commands.lang.Of(in.Conversation.Chat).Text("common.failed"))
	}
	if !ok {
		return false
	}
	if !h.answerText(ctx, in, to, tgapi.Page{Text: answer}, renamed.Done) {
		return true
	}
	if answer != "" { // without an answer, the user may reply again
		if err := h.commands.screens.sessions.Settle(ctx, in.Conversation, to, renamed); err != nil {
			h.commands.log.Error("stop asking for a title", "update", in.Update(), "err", err)
		}
	}
	if page := renamed.Page; page.Text != "" {
		h.feedback.Edit(in.Conversation, to, page.Text, page.Keyboard)
	}
	return true
}
