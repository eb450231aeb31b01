package lang

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/text/language"
)

// Language is a language code from Telegram, for which texts exist: "en", "de" or "zh".
type Language string

// AsTelegram means that the user has not chosen a language. ductor then uses the language of the Telegram app.
const AsTelegram Language = ""

// Languages returns all languages. The first language is the default.
func Languages() []Language { return []Language{"en", "de", "zh"} }

// Name returns the language's name in the language itself.
func (l Language) Name() string {
	return map[Language]string{"en": "English", "de": "Deutsch", "zh": "中文"}[l]
}

// EnglishName returns the language's name in English.
func (l Language) EnglishName() string {
	return map[Language]string{"en": "English", "de": "German", "zh": "Chinese"}[l]
}

// Match returns the language for a tag that Telegram sends, such as "de" or "zh-hans". For a language without texts, it
// returns English.
func Match(tag string) Language {
	base, _ := language.Make(tag).Base()
	for _, l := range Languages() {
		if string(l) == base.String() {
			return l
		}
	}
	return Languages()[0]
}

// Choice contains the chosen and the reported language of a user or a group.
type Choice struct {
	ID     int64
	Chosen Language // language that was chosen with /language, or AsTelegram
	Heard  Language // language that Telegram reported for the user, or for the last user who wrote in the group
}

func (c Choice) of() Language {
	if c.Chosen != AsTelegram {
		return c.Chosen
	}
	return c.Heard
}

type Store interface {
	Languages(ctx context.Context) ([]Choice, error)
	SaveLanguage(ctx context.Context, c Choice) error
}

// Choices stores the language of each chat. A private chat has the language of its user. A group has the language that
// was chosen with /language, or else the language of the last user who wrote to the bot. A nil *Choices always returns
// English. Safe for concurrent use.
type Choices struct {
	store    Store
	fallback int64 // user ID; chats without a stored language get the language of this user

	mu     sync.Mutex
	all    map[int64]Choice
	tagged map[string]Language // cached return values of Match
}

// OpenChoices reads the stored choices. Chats without a stored language get the language of the given owner, or English
// if owner is 0.
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

// Of returns the Printer for a chat.
func (c *Choices) Of(chat int64) Printer { return c.In(chat).Printer() }

// In returns the language of a chat.
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

// Chosen returns the language that was chosen in a chat with /language, or AsTelegram.
func (c *Choices) Chosen(chat int64) Language {
	if c == nil {
		return AsTelegram
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[chat].Chosen
}

// Choose sets and stores the language of a chat.
func (c *Choices) Choose(ctx context.Context, chat int64, l Language) error {
	return c.change(ctx, chat, func(choice *Choice) { choice.Chosen = l })
}

// Hear records the language that Telegram reports for a user who writes in a chat. If storing fails, Choices forgets
// the language when the process ends.
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

// match returns Match(tag), with a cache. The caller holds mu.
func (c *Choices) match(tag string) Language {
	l, known := c.tagged[tag]
	if !known {
		l = Match(tag)
		c.tagged[tag] = l
	}
	return l
}

// change applies f to the choice of a user or group, and stores the choice if f has changed it.
func (c *Choices) change(ctx context.Context, id int64, f func(*Choice)) error {
	c.mu.Lock()
	was := c.all[id]
	now := was
	now.ID = id
	f(&now)
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
