package bot

import (
	"context"
	"errors"
	"strings"

	"ductor/bot/message"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// restarts offers to start a running turn over after its message was edited. The journal stores the new text, so the
// button works after a restart too.
type restarts struct {
	desk     Desk
	journal  orchestrator.CardStore
	finisher *updates.Finisher
	feedback feedback
	lang     *lang.Choices
}

// editedPrompt is the stored new text of an edited prompt.
type editedPrompt struct {
	Text    string `json:"text"`
	Offered bool   `json:"offered"` // offered, and neither accepted nor declined
	Taken   bool   `json:"taken"`   // a user accepted; the turn was started over with Text
}

// editKey returns the journal key of the new text.
func editKey(turn cli.TurnID) string { return "edit:" + string(turn) }

// offer offers to start over with text if message is the prompt of the running turn and its words have changed. If
// the message was edited several times, the newest edit counts. offer returns true if it has finished the updates,
// and false if it did nothing.
func (r *restarts) offer(ctx context.Context, in *updates.Message, message int, text string) bool {
	p := r.lang.Of(in.Conversation.Chat)
	st, err := r.desk.Status(ctx, in.Conversation)
	if err != nil || st.Running == nil || st.Running.Message != message || sameWords(st.Running.Prompt, text, in.Text) {
		return false
	}
	turn := st.Running.Turn
	was, err := r.load(ctx, turn)
	if err == nil {
		err = r.save(ctx, turn, editedPrompt{Text: text, Offered: true})
	}
	switch {
	case err != nil:
		r.finisher.Answer(ctx, in, p.Text("bot.edit-not-stored"), nil)
	case was.Offered:
		r.finisher.Finish(ctx, in.Updates())
	default:
		r.finisher.Tell(ctx, in.Conversation, message, in.Updates(), p.Text("bot.edited"),
			tgapi.Keyboard{{
				turnButton(p.Text("bot.start-over"), actRestart, turn),
				turnButton(p.Text("bot.keep-running"), actKeep, turn),
			}})
	}
	return true
}

// sameWords reports whether an edited message makes the same prompt. text is the new prompt, and words is the part of
// it that the user wrote. Lines that quote the replied-to message may differ.
func sameWords(prompt, text, words string) bool {
	before, ok := strings.CutSuffix(prompt, words)
	for line := range strings.Lines(before) {
		ok = ok && (line == "\n" || strings.HasPrefix(line, "> ") || strings.HasPrefix(line, "["))
	}
	return ok || prompt == text
}

func (r *restarts) load(ctx context.Context, turn cli.TurnID) (editedPrompt, error) {
	e, _, err := message.LoadValue[editedPrompt](ctx, r.journal, editKey(turn))
	return e, err
}

func (r *restarts) save(ctx context.Context, turn cli.TurnID, e editedPrompt) error {
	return message.SaveValue(ctx, r.journal, editKey(turn), e)
}

// press starts the turn over.
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
		// Nothing was started. Clear Taken, so that the next press does not count as a repeated one.
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

// keep withdraws the offer. A later edit makes a new offer.
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
