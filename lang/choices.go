package lang

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/text/language"
)

// Language is a language of the catalogue, as Telegram names it: "en", "de" or "zh".
type Language string

// AsTelegram stands for the language that Telegram names with what a user sends.
const AsTelegram Language = ""

// Languages lists the languages of the catalogue, the one that everything falls back to first.
func Languages() []Language { return []Language{"en", "de", "zh"} }

// Name is what its speakers call a language.
func (l Language) Name() string {
	return map[Language]string{"en": "English", "de": "Deutsch", "zh": "中文"}[l]
}

// Match is the language of the catalogue for a language tag as Telegram sends it, such as "de" or "zh-hans": English for one
// that the catalogue does not have.
func Match(tag string) Language {
	base, _ := language.Make(tag).Base()
	for _, l := range Languages() {
		if string(l) == base.String() {
			return l
		}
	}
	return Languages()[0]
}

// Choice is the language of a user or of a group, by its number at Telegram.
type Choice struct {
	ID     int64
	Chosen Language // by /language; AsTelegram: none
	Heard  Language // of a user, the one Telegram named last; of a group, the one of who last wrote to the bot
}

// of is the language that counts.
func (c Choice) of() Language {
	if c.Chosen != AsTelegram {
		return c.Chosen
	}
	return c.Heard
}

// Store keeps choices.
type Store interface {
	Languages(ctx context.Context) ([]Choice, error)
	SaveLanguage(ctx context.Context, c Choice) error
}

// Choices knows the language of each chat. A private chat has the number and so the language of its user; a group has the one
// that was chosen there, or else that of who last wrote to the bot in it. Nil speaks English everywhere. Safe for concurrent use.
type Choices struct {
	store    Store
	fallback int64 // the user whose language counts for chats of which nothing is known

	mu     sync.Mutex
	all    map[int64]Choice
	tagged map[string]Language // what Match gave for the few tags that there are
}

// OpenChoices reads what the store has. owner's language is that of chats of which nothing is known; 0 for none.
func OpenChoices(ctx context.Context, store Store, owner int64) (*Choices, error) {
	all, err := store.Languages(ctx)
	if err != nil {
		return nil, fmt.Errorf("read languages: %w", err)
	}
	c := &Choices{store: store, fallback: owner, all: make(map[int64]Choice, len(all)), tagged: map[string]Language{}}
	for _, choice := range all {
		c.all[choice.ID] = choice
	}
	return c, nil
}

// Of is the Printer for what is shown in a chat.
func (c *Choices) Of(chat int64) Printer { return c.In(chat).Printer() }

// In is the language of a chat.
func (c *Choices) In(chat int64) Language {
	if c == nil {
		return Languages()[0]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.all[chat].of(); l != AsTelegram {
		return l
	}
	return c.all[c.fallback].of()
}

// Chosen is what /language chose in a chat.
func (c *Choices) Chosen(chat int64) Language {
	if c == nil {
		return AsTelegram
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[chat].Chosen
}

// Choose sets the language of a chat, and keeps it.
func (c *Choices) Choose(ctx context.Context, chat int64, l Language) error {
	return c.change(ctx, chat, func(choice *Choice) { choice.Chosen = l })
}

// Hear notes the language that Telegram names for a user who writes in a chat. On an error it counts until the end of the
// process.
func (c *Choices) Hear(ctx context.Context, chat, user int64, tag string) error {
	if c == nil {
		return nil
	}
	if tag != "" {
		if err := c.change(ctx, user, func(choice *Choice) { choice.Heard = c.match(tag) }); err != nil {
			return err
		}
	}
	if chat == user {
		return nil
	}
	c.mu.Lock()
	of := c.all[user].of()
	c.mu.Unlock()
	return c.change(ctx, chat, func(choice *Choice) { choice.Heard = of })
}

// match is Match, and needs mu.
func (c *Choices) match(tag string) Language {
	l, known := c.tagged[tag]
	if !known {
		l = Match(tag)
		c.tagged[tag] = l
	}
	return l
}

// change changes the choice of a chat or user, and keeps it if that makes a difference.
func (c *Choices) change(ctx context.Context, id int64, with func(*Choice)) error {
	c.mu.Lock()
	was := c.all[id]
	now := was
	now.ID = id
	with(&now)
	c.all[id] = now
	c.mu.Unlock()
	if now == was {
		return nil
	}
	if err := c.store.SaveLanguage(ctx, now); err != nil {
		return fmt.Errorf("keep the language of %d: %w", id, err)
	}
	return nil
}
