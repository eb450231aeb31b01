package bot

import (
	"context"
	"errors"

	"ductor/bot/consult"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/orchestrator"
)

// consultDesk is a Desk that also counts questions to other models (consultations) as running work, so that /abort
// cancels them.
type consultDesk struct {
	Desk
	consults orchestrator.Consults
}

// Runs implements Desk.
func (a consultDesk) Runs(in orchestrator.ConversationID) bool {
	return a.Desk.Runs(in) || a.consults.Asking(in) > 0
}

// Stop implements Desk. If the user may stop the work of other users, Stop also cancels all consultations of the
// conversation. Other users have no consultations that Stop must cancel, because they cannot start any.
func (a consultDesk) Stop(ctx context.Context, by orchestrator.Press, told func(*orchestrator.Stopping),
	answer func(orchestrator.AbortReport) orchestrator.Handled) (orchestrator.AbortReport, error) {
	questions := 0
	if by.May(orchestrator.EndAny) {
		questions = a.consults.Abort(by.Conversation)
	}
	return a.Desk.Stop(ctx, by, told, func(r orchestrator.AbortReport) orchestrator.Handled {
		r.Questions = questions
		return answer(r)
	})
}

// MoveChat implements Desk.
func (a consultDesk) MoveChat(ctx context.Context, from, to int64) error {
	err := a.Desk.MoveChat(ctx, from, to)
	if err == nil {
		a.consults.MoveChat(from, to)
	}
	return err
}

// groupCommand is the command that asks the models in the configuration. With /consult, the user chooses the models.
const groupCommand = "group"

// consult answers /consult and /group.
func (c *commands) consult(ctx context.Context, r updates.Request) {
	asked := askedBy(r.In, r.Args)
	asked.Group = r.Name == groupCommand
	page, err := c.screens.consults.Consult(ctx, asked)
	c.reply(ctx, r, tgapi.Answer{Edit: page}, err)
}

func askedBy(in *updates.Message, text string) consult.Asked {
	return consult.Asked{By: in.Press, Args: text, Message: in.ID, Context: in.Context}
}

// handleConsultReply asks a model again if the user replied to an answer of this model. It returns false for any other
// message.
func (h *handlers) handleConsultReply(ctx context.Context, in *updates.Message) bool {
	asks, err := h.commands.screens.consults.Reply(ctx, askedBy(in, in.Text), in.ReplyTo)
	if err != nil && !errors.Is(err, orchestrator.ErrShutdown) {
		h.commands.log.Error("ask a model on", "update", in.Update(), "err", err)
		h.finisher.Answer(ctx, in, h.commands.lang.Of(in.Conversation.Chat).Text("bot.not-done"), nil)
		return true
	}
	return asks
}
