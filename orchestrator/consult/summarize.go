package consult

import (
	"context"
	"fmt"

	"ductor/orchestrator"
	"ductor/orchestrator/handoff"
)

// What is summarized of a session.
const (
	summarizedTurns  = 500
	summarizedTokens = 60_000
)

// Summarize has a model tell what was said in the current session; see orchestrator.Consults. It is the model for summaries, or else the
// one that answers in the conversation.
func (e *Engine) Summarize(ctx context.Context, in orchestrator.ConversationID, about string) (orchestrator.ConsultAnswer, error) {
	st, err := e.opts.Status(ctx, in)
	if err != nil {
		return orchestrator.ConsultAnswer{}, err
	}
	if st.Session.ID == "" {
		return orchestrator.ConsultAnswer{}, orchestrator.ErrNoSession
	}
	turns, err := e.opts.History(ctx, st.Session.ID, summarizedTurns)
	if err != nil {
		return orchestrator.ConsultAnswer{}, fmt.Errorf("load the turns of a session: %w", err)
	}
	told := handoff.Write(turns, "", summarizedTokens)
	if told.Turns == 0 {
		return orchestrator.ConsultAnswer{}, orchestrator.ErrNoSession
	}
	model := e.opts.Shorten.Model
	if model.Agent == "" {
		model = orchestrator.ModelChoice{Agent: st.Agent, Model: st.Model, Effort: st.Effort}
	}
	return e.Ask(ctx, orchestrator.ConsultQuestion{Conversation: in, Model: model, Text: told.Text + fmt.Sprintf(
		"Summarize this session for its user: what was wanted, what was decided and done, which files changed, what failed, and what is open. %s"+
			"Use the user's language and short paragraphs or lists. Use no tools. Answer with the summary and nothing else.", dwell(about))})
}

func dwell(on string) string {
	if on == "" {
		return ""
	}
	return "Dwell on this: " + on + ". "
}
