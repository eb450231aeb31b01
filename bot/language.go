package bot

import (
	"context"
	"slices"
	"strings"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// actLanguage is the action of the buttons of /language.
const actLanguage = "la"

// language implements /language. Its buttons contain a language code, so they never expire.
type language struct{ lang *lang.Choices }

// asTelegram is the argument with which /language selects the language of the user's Telegram app. It is not
// translated.
const asTelegram = "telegram"

// choices returns the available languages and their names. The last element is lang.AsTelegram, with a name in the
// printer's language.
func (l language) choices(p lang.Printer, in orchestrator.ConversationID) (codes []lang.Language, names []string) {
	for _, code := range lang.Languages() {
		codes, names = append(codes, code), append(names, code.Name())
	}
	none := lang.Key("language.as-telegram")
	if in.Group() {
		none = "language.as-writer"
	}
	return append(codes, lang.AsTelegram), append(names, p.Text(none))
}

// command answers /language. If args names a language, command sets this language. If args is empty, it returns a page
// with all languages.
func (l language) command(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error) {
	p := l.lang.Of(by.Conversation.Chat)
	if args == "" {
		return l.page(by.Conversation), nil
	}
	codes, names := l.choices(p, by.Conversation)
	for i, code := range codes {
		words := []string{names[i], code.EnglishName(), string(code)}
		if code == lang.AsTelegram {
			words = []string{names[i], asTelegram}
		}
		if slices.ContainsFunc(words, func(word string) bool { return strings.EqualFold(args, word) }) {
			_, said, err := l.choose(ctx, by, code)
			return said, err
		}
	}
	words := append(names[:len(names)-1], asTelegram)
	return tgapi.Page{Text: p.Text("language.unknown", render.Cut(args, 100), p.List(words...))}, nil
}

func (l language) page(in orchestrator.ConversationID) tgapi.Page {
	p, now := l.lang.Of(in.Chat), l.lang.Chosen(in.Chat)
	page := tgapi.Page{Text: p.Text("language.which")}
	if in.Group() {
		page.Text = p.Text("language.which-group")
	}
	codes, names := l.choices(p, in)
	for i, code := range codes {
		page.Keyboard = append(page.Keyboard, []tgapi.Button{
			{Text: render.Marked(names[i], code == now), Data: actLanguage + ":" + string(code)},
		})
	}
	return page
}

// choose sets the language of a chat. It returns a confirmation in the new language.
func (l language) choose(ctx context.Context, by orchestrator.Press,
	code lang.Language) (short string, said tgapi.Page, err error) {
	if err := l.lang.Choose(ctx, by.Conversation.Chat, code); err != nil {
		return "", tgapi.Page{}, err
	}
	short = l.lang.Of(by.Conversation.Chat).Text("language.set")
	return short, tgapi.Page{Text: short}, nil
}

// press handles a button of /language.
func (l language) press(ctx context.Context, by orchestrator.Press, data string) (tgapi.Answer, error) {
	code := lang.Language(data)
	if code != lang.AsTelegram && !slices.Contains(lang.Languages(), code) {
		return tgapi.Stale(l.lang.Of(by.Conversation.Chat)), nil
	}
	text, page, err := l.choose(ctx, by, code)
	return tgapi.Answer{Text: text, Edit: page}, err
}
