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

// Prompts stores the new texts of edited prompts. It closes the offer to restart a turn when the turn ends, and
// remembers the newest prompts that have run since ductor started. It is safe for concurrent use.
type Prompts struct {
	journal  orchestrator.CardStore
	messages *message.Messages
	lang     *lang.Choices
	log      *slog.Logger

	mu  sync.Mutex
	ran map[messageKey]ranPrompt
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
func (p *Prompts) Ended(ctx context.Context, t orchestrator.Turn) {
	e, err := p.load(ctx, t.ID)
	if err == nil && e.Offer != "" {
		err = p.save(ctx, t.ID, editedPrompt{Text: e.Text})
	}
	if err != nil {
		p.log.Warn("withdraw the offer to start over", "turn", t.ID, "err", err)
	}
	p.remember(t, e.Offer != "")
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

// ranPrompt is a prompt that has run.
type ranPrompt struct {
	text     string
	answered bool // the user knows that an edit has no effect
}

// mostRan limits how many prompts Prompts remembers.
const mostRan = 256

// remember stores the prompt of a turn that has ended. answered reports whether the user already knows that an edit of
// the prompt has no effect.
func (p *Prompts) remember(t orchestrator.Turn, answered bool) {
	if t.Prompt.Message == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := messageKey{t.Prompt.Conversation, t.Prompt.Message}
	answered = answered || p.ran[key].answered
	if len(p.ran) >= mostRan || p.ran == nil {
		p.ran = map[messageKey]ranPrompt{}
	}
	p.ran[key] = ranPrompt{t.Prompt.Text, answered}
}

// answer reports whether the user must learn that the edited prompt has ended. It returns true only once for each
// prompt.
func (p *Prompts) answer(e Edit) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := messageKey{e.By.Conversation, e.Prompt}
	was, known := p.ran[key]
	if !known || was.answered || sameWords(was.text, e.Text, e.Words) {
		return false
	}
	was.answered = true
	p.ran[key] = was
	return true
}
