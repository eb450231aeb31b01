package bot

import (
	"cmp"
	"context"

	"ductor/bot/approval"
	"ductor/bot/cron"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/orchestrator"
)

// handleCommitReply commits the changes of a turn if the message replies to the request for a commit message. It
// returns false for any other message.
func (h *handlers) handleCommitReply(ctx context.Context, in *updates.Message) bool {
	p := h.commands.lang.Of(in.Conversation.Chat)
	answer, ok, err := h.commands.screens.changes.Replied(ctx, in.Press, in.ReplyTo, in.Text)
	if err != nil {
		h.commands.log.Error("commit what a turn changed", "update", in.Update(), "err", err)
		answer = p.Text("bot.log-says", p.Text("bot.not-done"))
	}
	if ok {
		h.finisher.Answer(ctx, in, answer, nil)
	}
	return ok
}

// handleDecision handles a message that answers an approval or a question. It returns false for any other message.
func (h *handlers) handleDecision(ctx context.Context, in *updates.Message) bool {
	said := approval.Message{
		Conversation: in.Conversation, User: in.Person, Role: in.Role, ReplyTo: in.ReplyTo, Text: in.Text,
		Plain: in.Plain, Updates: in.Updates,
		Files: in.Files, Private: in.Private, Arrived: in.Arrived,
	}
	o := h.approvals.Reply(ctx, said)
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
		h.offerPrompt(ctx, in, nil)
	case o.Guessed:
		h.offerPrompt(ctx, in, in.Updates)
	case o.Handling == approval.MarkHandled:
		f.Finish(ctx, in.Updates)
	}
	return true
}

// offerPrompt sends a notice that the user's message was used as the answer to a question or as the reason of a denial.
// A button of this notice also sends the message to the agent as a prompt.
func (h *handlers) offerPrompt(ctx context.Context, in *updates.Message, finish []int64) {
	m, err := h.transcripts.Answered(ctx, orchestrator.Prompt{
		Conversation: in.Conversation, Person: in.Person, Text: in.Context + in.Text, Message: in.ID,
		Rights: orchestrator.Rights{Of: in.Role.OfTurns()}, Arrived: in.Arrived,
	})
	if err != nil {
		h.commands.log.Error("offer to make a prompt of an answer", "update", in.Update(), "err", err)
		h.finisher.Finish(ctx, finish)
		return
	}
	h.finisher.Finish(ctx, finish, m)
}

// handleJobReply changes a scheduled job if the user replied to a message about the job. It returns false for any other
// message.
func (h *handlers) handleJobReply(ctx context.Context, in *updates.Message) bool {
	reply := cron.Reply{By: in.Press, To: in.ReplyTo, Text: in.Text}
	state := h.commands.screens.jobs.Reply(ctx, reply, func(p tgapi.Page) {
		h.finisher.Answer(ctx, in, p.Text, p.Keyboard)
	})
	if state == cron.Done {
		h.feedback.Unbutton(in.Conversation, in.ReplyTo)
	}
	return state != cron.Prompt
}

// handleRenaming renames a session if the message replies to the request for the session's new title. It returns false
// for any other message.
func (h *handlers) handleRenaming(ctx context.Context, in *updates.Message) bool {
	answer, page, ok, err := h.commands.screens.sessions.Replied(ctx, in.Press, in.ReplyTo, in.Plain)
	decided := answer != "" // without an answer, the user may reply again
	if err != nil {
		h.commands.log.Error("rename a session", "update", in.Update(), "err", err)
		answer = cmp.Or(answer, h.commands.lang.Of(in.Conversation.Chat).Text("common.failed"))
	}
	if !ok {
		return false
	}
	if !h.finisher.Answer(ctx, in, answer, nil) {
		return true
	}
	if decided {
		if err := h.commands.screens.sessions.StopAsking(ctx, in.Conversation, in.ReplyTo); err != nil {
			h.commands.log.Error("stop asking for a title", "update", in.Update(), "err", err)
		}
	}
	if page.Text != "" {
		h.feedback.Edit(in.Conversation, in.ReplyTo, page.Text, page.Keyboard)
	}
	return true
}
