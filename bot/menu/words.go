package menu

import (
	"context"
	"slices"
	"strings"

	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// words describes a setting with a fixed list of values. It implements the interface choices.
type words struct {
	action  string // action of the buttons
	which   lang.Key
	unknown lang.Key // text for a user who typed an unknown value
	meaning map[string]lang.Key
	said    func(p lang.Printer, meaning string) string
	short   func(p lang.Printer, word string) string
	of      orchestrator.Setting
	service Service
}

func (k *Menus) wordsOf(of orchestrator.Setting) words {
	w := map[orchestrator.Setting]words{
		orchestrator.SettingBusy: {
			action: BusyAction, which: "menu.which-busy", unknown: "menu.no-such-busy",
			meaning: map[string]lang.Key{
				"queue": "menu.busy-queue", "steer": "menu.busy-steer", "interrupt": "menu.busy-interrupt",
			},
			said:  func(p lang.Printer, meaning string) string { return p.Text("menu.busy-set", meaning) },
			short: func(p lang.Printer, word string) string { return p.Text("menu.busy-short", word) },
		},
		orchestrator.SettingNotify: {
			action: NotifyAction, which: "menu.which-notify", unknown: "menu.no-such-notify",
			meaning: map[string]lang.Key{
				"always": "menu.notify-always", "long": "menu.notify-long", "never": "menu.notify-never",
			},
			said:  func(p lang.Printer, meaning string) string { return p.Text("menu.notify-set", meaning) },
			short: func(p lang.Printer, word string) string { return p.Text("menu.notify-short", word) },
		},
		orchestrator.SettingThink: {
			action: ThinkAction, which: "menu.which-think", unknown: "menu.no-such-think",
			meaning: map[string]lang.Key{"on": "menu.think-on", "off": "menu.think-off"},
			said:    func(p lang.Printer, meaning string) string { return p.Text("menu.think-set", meaning) },
			short:   func(p lang.Printer, word string) string { return p.Text("menu.think-short", word) },
		},
		orchestrator.SettingDisplay: {
			action: DisplayAction, which: "menu.which-display", unknown: "menu.no-such-display",
			meaning: map[string]lang.Key{"rich": "menu.display-rich", "plain": "menu.display-plain"},
			said:    func(p lang.Printer, meaning string) string { return p.Text("menu.display-set", meaning) },
			short:   func(p lang.Printer, word string) string { return p.Text("menu.display-short", word) },
		},
	}[of]
	w.of, w.service = of, k.service
	return w
}

// Setting returns the handler of the command that changes a setting. An argument of the command is the new value.
// Without an argument, the handler returns a menu.
func (k *Menus) Setting(of orchestrator.Setting) func(context.Context, orchestrator.Press, string) (tgapi.Page, error) {
	w := k.wordsOf(of)
	return func(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error) {
		p := k.lang.Of(by.Conversation.Chat)
		if args == "" {
			st, err := k.service.Status(ctx, by.Conversation)
			if err != nil {
				return tgapi.Page{}, err
			}
			return k.openList(by.Conversation, w.action, w, st.Settings.Word(of)), nil
		}
		word := strings.ToLower(args)
		if !slices.Contains(of.Words(), word) {
			return tgapi.Page{Text: p.Text(w.unknown)}, nil
		}
		said, _, err := w.choose(ctx, p, by.Conversation, word)
		return tgapi.Page{Text: said}, err
	}
}

func (w words) names() []string { return w.of.Words() }

func (words) label(_ lang.Printer, word string) string { return word }

func (w words) text(p lang.Printer, now string) string {
	var b strings.Builder
	b.WriteString(p.Text("menu.now", now) + "\n\n" + p.Text(w.which))
	for _, word := range w.names() {
		b.WriteString("\n" + w.stays(p, word))
	}
	return b.String()
}

func (w words) stays(p lang.Printer, now string) string { return now + ": " + p.Text(w.meaning[now]) }

func (w words) choose(ctx context.Context, p lang.Printer, in orchestrator.ConversationID,
	word string) (said, short string, err error) {
	return w.said(p, p.Text(w.meaning[word])), w.short(p, word), w.service.Set(ctx, in, w.of, word)
}
