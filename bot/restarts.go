package bot

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// restarts offers to restart the running turn when a user edits its prompt. The database stores the new text, so that
// the button of the offer works after a restart of ductor.
type restarts struct {
	desk     Desk
	journal  orchestrator.CardStore
	finisher *updates.Finisher
	feedback feedback
	lang     *lang.Choices
}

// editedPrompt is the stored new text of an edited prompt.
type editedPrompt struct {
	Text  string `json:"text"`
	Offer string `json:"offer,omitempty"` // key of the message with the open offer; empty if no offer is open
	Taken bool   `json:"taken"`           // true if the user has accepted the offer
}

// editKey returns the database key for the new text of a turn's prompt.
func editKey(turn cli.TurnID) string { return "edit:" + string(turn) }

// offer offers to restart the running turn after its prompt was edited. promptID is the ID of the prompt's message.
// offer returns false if no turn with this prompt is running, or if the user's own words are the same as before. If the
// user edits the prompt again, an open offer changes to the newest text.
func (r *restarts) offer(ctx context.Context, in *updates.Message, promptID int, text string) bool {
	p := r.lang.Of(in.Conversation.Chat)
	st, err := r.desk.Status(ctx, in.Conversation)
	if err != nil || st.Running == nil || st.Running.Message != promptID ||
		sameWords(st.Running.Prompt, text, in.Text) {
		return false
	}
	turn := st.Running.Turn
	offer := message.Compose(in.Conversation, message.Content{
		Text: render.Plain(p.Text("bot.edited")), ReplyTo: promptID,
		Keyboard: tgapi.Keyboard{{
			turnButton(p.Text("bot.start-over"), actRestart, turn),
			turnButton(p.Text("bot.keep-running"), actKeep, turn),
		}},
	})
	was, err := r.load(ctx, turn)
	if err == nil {
		err = r.save(ctx, turn, editedPrompt{Text: text, Offer: cmp.Or(was.Offer, offer.Key)})
	}
	switch {
	case err != nil:
		r.finisher.Refuse(ctx, in, p.Text("bot.edit-not-stored"))
	case was.Offer != "":
		r.finisher.Finish(ctx, in.Updates)
	default:
		r.finisher.Finish(ctx, in.Updates, offer)
	}
	return true
}

// sameWords reports whether the user's own words in a prompt are unchanged. newWords are the user's own words in
// newPrompt. The rest of a prompt may differ, because it quotes the message to which the user replied.
func sameWords(oldPrompt, newPrompt, newWords string) bool {
	before, ok := strings.CutSuffix(oldPrompt, newWords)
	for line := range strings.Lines(before) {
		ok = ok && (line == "\n" || strings.HasPrefix(line, "> ") || strings.HasPrefix(line, "["))
	}
	return ok || oldPrompt == newPrompt
}

func (r *restarts) load(ctx context.Context, turn cli.TurnID) (editedPrompt, error) {
	e, _, err := message.LoadValue[editedPrompt](ctx, r.journal, editKey(turn))
	return e, err
}

func (r *restarts) save(ctx context.Context, turn cli.TurnID, e editedPrompt) error {
	return message.SaveValue(ctx, r.journal, editKey(turn), e)
}

// press handles the button that restarts the turn.
func (r *restarts) press(ctx context.Context, p updates.Press, turn cli.TurnID) (string, error) {
	say := r.lang.Of(p.By.Conversation.Chat)
	e, err := r.load(ctx, turn)
	switch {
	case err != nil:
		return "", err
	case e.Text == "":
		return say.Text("common.stale-button"), nil
	}
	if err := r.save(ctx, turn, editedPrompt{Text: e.Text, Taken: true}); err != nil {
		return "", err
	}
	_, err = r.desk.Restart(ctx, turn, e.Text, p.By)
	switch {
	case errors.Is(err, orchestrator.ErrNoTurn) && e.Taken:
		return say.Text("bot.started-over-already"), nil
	case errors.Is(err, orchestrator.ErrNoTurn):
		// The turn ended before ductor could restart it. So reset editedPrompt.Taken.
		if err := r.save(ctx, turn, editedPrompt{Text: e.Text}); err != nil {
			return "", err
		}
		r.feedback.Edit(p.By.Conversation, p.Message, say.Text("bot.ended-before"), nil)
		return say.Text("bot.too-late-ended"), nil
	case errors.Is(err, orchestrator.ErrRepeated):
		return say.Text("bot.started-over-already"), nil
	case err != nil:
		return "", err
	}
	r.feedback.Edit(p.By.Conversation, p.Message, say.Text("bot.started-over"), nil)
	return say.Text("bot.starting-over"), nil
}

// keep handles the button that declines the restart. If the user edits the prompt again, another offer follows.
func (r *restarts) keep(ctx context.Context, p updates.Press, turn cli.TurnID) (string, error) {
	say := r.lang.Of(p.By.Conversation.Chat)
	e, err := r.load(ctx, turn)
	if err != nil || e.Text == "" {
		return say.Text("common.stale-button"), err
	}
	st, err := r.desk.Status(ctx, p.By.Conversation)
	if err != nil {
		return "", err
	}
	if st.Running != nil && st.Running.Turn == turn {
		if err := r.save(ctx, turn, editedPrompt{Text: e.Text}); err != nil {
			return "", err
		}
	}
	r.feedback.Edit(p.By.Conversation, p.Message, say.Text("bot.runs-on"), nil)
	return "", nil
}

// editOffers closes the offer to restart a turn when the turn ends. See restarts.
type editOffers struct {
	journal  orchestrator.CardStore
	messages *message.Messages
	lang     *lang.Choices
	log      *slog.Logger
	ran      ranPrompts
}

// ended closes the open offer to restart a turn. The message with the offer then shows that the turn has ended.
func (o *editOffers) ended(ctx context.Context, t orchestrator.Turn) {
	e, _, err := message.LoadValue[editedPrompt](ctx, o.journal, editKey(t.ID))
	if err == nil && e.Offer != "" {
		err = message.SaveValue(ctx, o.journal, editKey(t.ID), editedPrompt{Text: e.Text})
	}
	if err != nil {
		o.log.Warn("withdraw the offer to start over", "turn", t.ID, "err", err)
	}
	o.ran.remember(t, e.Offer != "")
	if e.Offer == "" {
		return
	}
	text := render.Plain(o.lang.Of(t.Prompt.Conversation.Chat).Text("bot.ended-before"))
	o.messages.Replace(e.Offer, t.Prompt.Conversation, message.Content{Text: text, Lifecycle: message.EditOnly})
}
