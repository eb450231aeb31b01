// Package edits answers users who edit a prompt that runs or has run. It offers to start over with the new text, or
// explains that the prompt has ended.
package edits

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// Actions of the buttons of this package. A button's data is its action and the ID of a turn.
const (
	ActionRestart = "e"
	ActionKeep    = "k" // declines the restart
)

// Desk knows and restarts running turns. It is a part of bot.Desk.
type Desk interface {
	Status(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Status, error)
	Restart(ctx context.Context, running cli.TurnID, text string, by orchestrator.Press) (orchestrator.Receipt, error)
}

// Options configures a Screen. All fields except Jobs are required.
type Options struct {
	Desk    Desk
	Prompts *Prompts
	// Waits reports whether a prompt from the given message waits in the queue.
	Waits func(in orchestrator.ConversationID, message int) bool
	Jobs  orchestrator.Jobs
	// Finish marks updates as handled and stores notices, in one transaction.
	Finish func(ctx context.Context, updates []int64, notices ...orchestrator.Message) (done bool)
	Lang   *lang.Choices
}

// Screen offers to restart the running turn when a user edits its prompt. The database stores the new text, so that
// the button of the offer works after a restart of ductor. Screen is safe for concurrent use.
type Screen struct{ Options }

// New creates a Screen.
func New(o Options) *Screen { return &Screen{o} }

// Edit is an edit of a message that contains a prompt or a part of one.
type Edit struct {
	By      orchestrator.Press
	Message int    // the edited message
	Prompt  int    // the first message of the prompt
	Text    string // the new text of the prompt
	Words   string // the user's own words in Text
	// Wants contains the agent and model that the new text names. It is nil if the text names none.
	Wants *orchestrator.Wants
}

// Offer offers to restart the running turn after its prompt was edited. It returns false if no turn with this prompt is
// running, or if the user's own words are the same as before. If the user edits the prompt again, an open offer changes
// to the newest text.
func (s *Screen) Offer(ctx context.Context, e Edit) bool {
	in, p := e.By.Conversation, s.Lang.Of(e.By.Conversation.Chat)
	st, err := s.Desk.Status(ctx, in)
	if err != nil || st.Running == nil || st.Running.Message != e.Prompt ||
		sameWords(st.Running.Prompt, e.Text, e.Words) {
		return false
	}
	turn := st.Running.Turn
	offer := message.Compose(in, message.Content{
		Text: render.Plain(p.Text("bot.edited")), ReplyTo: e.Prompt,
		Keyboard: tgapi.Keyboard{{
			tgapi.NewButton(p.Text("bot.start-over"), ActionRestart, string(turn)),
			tgapi.NewButton(p.Text("bot.keep-running"), ActionKeep, string(turn)),
		}},
	})
	was, err := s.Prompts.load(ctx, turn)
	if err == nil {
		err = s.Prompts.save(ctx, turn, editedPrompt{Text: e.Text, Offer: cmp.Or(was.Offer, offer.Key)})
	}
	switch {
	case err != nil:
		s.answer(ctx, e, message.Content{Text: render.Plain(p.Text("bot.edit-not-stored"))})
	case was.Offer != "":
		s.Finish(ctx, e.By.Updates)
	default:
		s.Finish(ctx, e.By.Updates, offer)
	}
	return true
}

// AnswerLate explains that the prompt has ended. It does so once for each message. It returns false if it answered
// nothing, for example because the prompt still waits or runs, or because a job will run it later.
func (s *Screen) AnswerLate(ctx context.Context, e Edit) bool {
	prompt, changed := s.Prompts.changed(e)
	if !changed {
		return false
	}
	mayRun, ranLater := s.mayRun(ctx, e, prompt.turn)
	if mayRun {
		return false
	}
	s.Prompts.markAnswered(e)
	key := lang.Key("bot.edited-late")
	if prompt.idle && !ranLater {
		key = "bot.edited-never-ran"
	}
	s.answer(ctx, e, message.Content{Text: render.Plain(s.Lang.Of(e.By.Conversation.Chat).Text(key)), Silent: true})
	return true
}

// mayRun reports whether the prompt still waits, runs, or will run because of a job, and whether such a job has run it.
// last is the ID of the newest turn of the prompt that has ended. If it cannot find out, the prompt may run.
func (s *Screen) mayRun(ctx context.Context, e Edit, last cli.TurnID) (mayRun, ranLater bool) {
	in := e.By.Conversation
	if s.Waits(in, e.Prompt) {
		return true, false
	}
	st, err := s.Desk.Status(ctx, in)
	if err != nil || st.Running != nil && st.Running.Message == e.Prompt && st.Running.Turn != last {
		return true, false
	}
	if s.Jobs == nil {
		return false, false
	}
	job, err := s.Jobs.Job(ctx, orchestrator.LaterJob(last), in)
	if errors.Is(err, orchestrator.ErrNoJob) {
		return false, false
	}
	return err != nil || !job.Finished(), err == nil && job.Finished()
}

func (s *Screen) answer(ctx context.Context, e Edit, c message.Content) {
	c.ReplyTo = e.Message
	s.Finish(ctx, e.By.Updates, message.Compose(e.By.Conversation, c))
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

// Restart handles the button that restarts the turn.
func (s *Screen) Restart(ctx context.Context, by orchestrator.Press, id string) (a tgapi.Answer, err error) {
	say, turn := s.Lang.Of(by.Conversation.Chat), cli.TurnID(id)
	e, err := s.Prompts.load(ctx, turn)
	switch {
	case err != nil:
		return a, err
	case e.Text == "":
		return tgapi.Answer{Text: say.Text("common.stale-button")}, nil
	}
	if err := s.Prompts.save(ctx, turn, editedPrompt{Text: e.Text, Taken: true}); err != nil {
		return a, err
	}
	_, err = s.Desk.Restart(ctx, turn, e.Text, by)
	switch {
	case errors.Is(err, orchestrator.ErrNoTurn) && e.Taken, errors.Is(err, orchestrator.ErrRepeated):
		return tgapi.Answer{Text: say.Text("bot.started-over-already")}, nil
	case errors.Is(err, orchestrator.ErrNoTurn):
		// The turn ended before ductor could restart it. Reset editedPrompt.Taken, because there was no restart.
		if err := s.Prompts.save(ctx, turn, editedPrompt{Text: e.Text}); err != nil {
			return a, err
		}
		return tgapi.Answer{
			Text: say.Text("bot.too-late-ended"), Edit: tgapi.Page{Text: say.Text("bot.ended-before")},
		}, nil
	case err != nil:
		return a, err
	}
	return tgapi.Answer{
		Text: say.Text("bot.starting-over"), Edit: tgapi.Page{Text: say.Text("bot.started-over")},
	}, nil
}

// Keep handles the button that declines the restart. If the user edits the prompt again, another offer follows.
func (s *Screen) Keep(ctx context.Context, by orchestrator.Press, id string) (a tgapi.Answer, err error) {
	say, turn := s.Lang.Of(by.Conversation.Chat), cli.TurnID(id)
	e, err := s.Prompts.load(ctx, turn)
	if err != nil || e.Text == "" {
		return tgapi.Answer{Text: say.Text("common.stale-button")}, err
	}
	st, err := s.Desk.Status(ctx, by.Conversation)
	if err != nil {
		return a, err
	}
	if st.Running != nil && st.Running.Turn == turn {
		if err := s.Prompts.save(ctx, turn, editedPrompt{Text: e.Text}); err != nil {
			return a, err
		}
	}
	return tgapi.Answer{Edit: tgapi.Page{Text: say.Text("bot.runs-on")}}, nil
}
