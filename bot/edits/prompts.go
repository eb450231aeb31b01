package edits

import (
	"context"
	"log/slog"
	"sync"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// Prompts stores the new texts of edited prompts. It closes the offer to restart a turn when the turn ends. It also
// remembers the newest prompts whose turns have ended since ductor started. It is safe for concurrent use.
type Prompts struct {
	journal  orchestrator.CardStore
	messages *message.Messages
	lang     *lang.Choices
	log      *slog.Logger

	mu    sync.Mutex
	ended map[messageKey]endedPrompt
	order []messageKey // the keys of ended, oldest first
}

// NewPrompts creates a Prompts.
func NewPrompts(journal orchestrator.CardStore, messages *message.Messages, l *lang.Choices,
	log *slog.Logger) *Prompts {
	return &Prompts{journal: journal, messages: messages, lang: l, log: log}
}

// editedPrompt is the stored new text of an edited prompt.
type editedPrompt struct {
	Text  string `json:"text"`
	Offer string `json:"offer,omitempty"` // key of the message with the open offer; empty if no offer is open
	Taken bool   `json:"taken"`           // true if the user has accepted the offer
}

// editKey returns the database key for the new text of a turn's prompt.
func editKey(turn cli.TurnID) string { return "edit:" + string(turn) }

func (p *Prompts) load(ctx context.Context, turn cli.TurnID) (editedPrompt, error) {
	e, _, err := message.LoadValue[editedPrompt](ctx, p.journal, editKey(turn))
	return e, err
}

func (p *Prompts) save(ctx context.Context, turn cli.TurnID, e editedPrompt) error {
	return message.SaveValue(ctx, p.journal, editKey(turn), e)
}

// Ended closes the open offer to restart a turn. The message with the offer then shows that the turn has ended.
func (p *Prompts) Ended(ctx context.Context, t orchestrator.Turn, o orchestrator.Outcome) {
	e, err := p.load(ctx, t.ID)
	if err == nil && e.Offer != "" {
		err = p.save(ctx, t.ID, editedPrompt{Text: e.Text})
	}
	if err != nil {
		p.log.Warn("withdraw the offer to start over", "turn", t.ID, "err", err)
	}
	p.remember(t, o, e.Offer != "")
	if e.Offer == "" {
		return
	}
	text := render.Plain(p.lang.Of(t.Prompt.Conversation.Chat).Text("bot.ended-before"))
	p.messages.Replace(e.Offer, t.Prompt.Conversation, message.Content{Text: text, Lifecycle: message.EditOnly})
}

type messageKey struct {
	in orchestrator.ConversationID
	id int
}

// endedPrompt is a prompt whose newest turn has ended.
type endedPrompt struct {
	turn     cli.TurnID
	text     string
	wants    orchestrator.Wants // of the first turn; a repetition can run with another agent
	idle     bool               // the turn failed before its agent did anything
	answered bool               // the user knows that an edit has no effect
}

// mostEnded limits how many prompts Prompts remembers.
const mostEnded = 256

// remember stores the prompt of a turn that has ended with the outcome o. answered reports whether the user already
// knows that an edit of the prompt has no effect. If there are too many prompts, remember drops the oldest.
func (p *Prompts) remember(t orchestrator.Turn, o orchestrator.Outcome, answered bool) {
	if t.Prompt.Message == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := messageKey{t.Prompt.Conversation, t.Prompt.Message}
	was, known := p.ended[key]
	if !known {
		p.order = append(p.order, key)
		was.wants = t.Wants
	}
	if len(p.order) > mostEnded {
		delete(p.ended, p.order[0])
		p.order = p.order[1:]
	}
	if p.ended == nil {
		p.ended = map[messageKey]endedPrompt{}
	}
	p.ended[key] = endedPrompt{
		turn: t.ID, text: t.Prompt.Text, wants: was.wants, answered: answered || was.answered,
		idle: o.State == orchestrator.TurnFailed && o.Text == "" && o.Steps == 0,
	}
}

// changed returns the ended prompt that the edit changes. It returns false if ductor remembers no such prompt, if the
// user already got an answer, or if the edit changes neither the user's words nor the agent.
func (p *Prompts) changed(e Edit) (endedPrompt, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, known := p.ended[messageKey{e.By.Conversation, e.Prompt}]
	is := e.Wants
	sameAgent := is == nil ||
		is.Agent == was.wants.Agent && is.Model == was.wants.Model && is.Effort == was.wants.Effort
	return was, known && !was.answered && !(sameAgent && sameWords(was.text, e.Text, e.Words))
}

// markAnswered records that the user knows that edits of the prompt have no effect.
func (p *Prompts) markAnswered(e Edit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := messageKey{e.By.Conversation, e.Prompt}
	if was, known := p.ended[key]; known {
		was.answered = true
		p.ended[key] = was
	}
}
