package menu

import (
	"context"
	"slices"
	"strings"

	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// setting is what a conversation chooses by one of a few words.
type setting struct {
	action  string // of its buttons
	which   lang.Key
	unknown lang.Key // there is no such word
	set     func(p lang.Printer, meaning string) string
	short   func(p lang.Printer, word string) string
	words   []string
	meaning map[string]lang.Key
	current func(orchestrator.Status) string
	store   func(ctx context.Context, in orchestrator.ConversationID, word string) error
}

// Busy answers "/queue": what becomes of a message that comes while a turn runs.
func (k *Menus) Busy(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error) {
	return k.word(ctx, by, args, setting{
		action: BusyAction, which: "menu.which-busy", unknown: "menu.no-such-busy",
		set:   func(p lang.Printer, meaning string) string { return p.Text("menu.busy-set", meaning) },
		short: func(p lang.Printer, word string) string { return p.Text("menu.busy-short", word) },
		words: wordsOf(orchestrator.BusyModes()),
		meaning: map[string]lang.Key{
			string(orchestrator.BusyQueue): "menu.busy-queue", string(orchestrator.BusySteer): "menu.busy-steer",
			string(orchestrator.BusyInterrupt): "menu.busy-interrupt",
		},
		current: func(st orchestrator.Status) string { return string(st.Busy) },
		store: func(ctx context.Context, in orchestrator.ConversationID, word string) error {
			return k.service.SetBusy(ctx, in, orchestrator.BusyMode(word))
		},
	})
}

// Notify answers "/notify": which turns end with a message that notifies.
func (k *Menus) Notify(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error) {
	return k.word(ctx, by, args, setting{
		action: NotifyAction, which: "menu.which-notify", unknown: "menu.no-such-notify",
		set:   func(p lang.Printer, meaning string) string { return p.Text("menu.notify-set", meaning) },
		short: func(p lang.Printer, word string) string { return p.Text("menu.notify-short", word) },
		words: wordsOf(orchestrator.NotifyModes()),
		meaning: map[string]lang.Key{
			string(orchestrator.NotifyAlways): "menu.notify-always", string(orchestrator.NotifyLong): "menu.notify-long",
			string(orchestrator.NotifyNever): "menu.notify-never",
		},
		current: func(st orchestrator.Status) string { return string(st.Notify) },
		store: func(ctx context.Context, in orchestrator.ConversationID, word string) error {
			return k.service.SetNotify(ctx, in, orchestrator.NotifyMode(word))
		},
	})
}

// Think answers "/think": whether the agent's reasoning is shown.
func (k *Menus) Think(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error) {
	return k.word(ctx, by, args, setting{
		action: ThinkAction, which: "menu.which-think", unknown: "menu.no-such-think",
		set:     func(p lang.Printer, meaning string) string { return p.Text("menu.think-set", meaning) },
		short:   func(p lang.Printer, word string) string { return p.Text("menu.think-short", word) },
		words:   wordsOf(orchestrator.ThinkModes()),
		meaning: map[string]lang.Key{string(orchestrator.ThinkOn): "menu.think-on", string(orchestrator.ThinkOff): "menu.think-off"},
		current: func(st orchestrator.Status) string { return string(st.Think) },
		store: func(ctx context.Context, in orchestrator.ConversationID, word string) error {
			return k.service.SetThink(ctx, in, orchestrator.ThinkMode(word))
		},
	})
}

// Display answers "/display": whether the chat shows rich messages.
func (k *Menus) Display(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error) {
	return k.word(ctx, by, args, setting{
		action: DisplayAction, which: "menu.which-display", unknown: "menu.no-such-display",
		set:     func(p lang.Printer, meaning string) string { return p.Text("menu.display-set", meaning) },
		short:   func(p lang.Printer, word string) string { return p.Text("menu.display-short", word) },
		words:   wordsOf(orchestrator.DisplayModes()),
		meaning: map[string]lang.Key{string(orchestrator.DisplayRich): "menu.display-rich", string(orchestrator.DisplayPlain): "menu.display-plain"},
		current: func(st orchestrator.Status) string {
			if st.Display != orchestrator.DisplayRich {
				return string(orchestrator.DisplayPlain)
			}
			return string(st.Display)
		},
		store: func(ctx context.Context, in orchestrator.ConversationID, word string) error {
			return k.service.SetDisplay(ctx, in, orchestrator.DisplayMode(word))
		},
	})
}

func wordsOf[T ~string](modes []T) (words []string) {
	for _, m := range modes {
		words = append(words, string(m))
	}
	return words
}

// word answers the command of a setting: with a word it sets it at once, without one it opens the menu.
func (k *Menus) word(ctx context.Context, by orchestrator.Press, args string, s setting) (tgapi.Page, error) {
	p := k.lang.Of(by.Conversation.Chat)
	if args == "" {
		st, err := k.service.Status(ctx, by.Conversation)
		if err != nil {
			return tgapi.Page{}, err
		}
		return k.openList(by.Conversation, s.action, s, s.current(st)), nil
	}
	word := strings.ToLower(args)
	if !slices.Contains(s.words, word) {
		return tgapi.Page{Text: p.Text(s.unknown)}, nil
	}
	said, _, err := s.choose(ctx, p, by.Conversation, word)
	return tgapi.Page{Text: said}, err
}

func (s setting) names() []string { return s.words }

func (setting) label(_ lang.Printer, word string) string { return word }

func (s setting) text(p lang.Printer, now string) string {
	var b strings.Builder
	b.WriteString(p.Text("menu.now", now) + "\n\n" + p.Text(s.which))
	for _, word := range s.words {
		b.WriteString("\n" + s.stays(p, word))
	}
	return b.String()
}

func (s setting) stays(p lang.Printer, now string) string { return now + ": " + p.Text(s.meaning[now]) }

func (s setting) choose(ctx context.Context, p lang.Printer, in orchestrator.ConversationID, word string) (said, short string, err error) {
	return s.set(p, p.Text(s.meaning[word])), s.short(p, word), s.store(ctx, in, word)
}
