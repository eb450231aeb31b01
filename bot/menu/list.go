package menu

import (
	"context"
	"slices"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// choices is a list of named values from which users choose.
type choices interface {
	names() []string
	label(p lang.Printer, name string) string // text on the button of a choice
	// text returns the text above the buttons. current is the name of the current choice.
	text(p lang.Printer, current string) string
	stays(p lang.Printer, now string) string // text that replaces the menu if the user closes it without a choice
	// choose stores the user's choice. It returns the text that replaces the menu, and a short notice for the user.
	choose(ctx context.Context, p lang.Printer, in orchestrator.ConversationID,
		name string) (said, short string, err error)
}

// listMenu is a menu with one button for each choice.
type listMenu struct {
	frame
	of     choices
	now    string
	page   int
	chosen string
}

// openList opens a listMenu. It returns the page that contains the current choice.
func (k *Menus) openList(in orchestrator.ConversationID, action string, of choices, now string) tgapi.Page {
	page := tgapi.PageOf(max(slices.Index(of.names(), now), 0))
	return k.open(in, &listMenu{frame: frame{action: action}, of: of, now: now, page: page})
}

func (m *listMenu) press(o op) state {
	names := m.of.names()
	switch kind := string(o.kind); {
	case kind == opClose:
		return stateClosed
	case kind == opPage && o.arg >= 0 && o.arg < tgapi.Pages(len(names)):
		m.page = o.arg
	case kind == opPick && o.arg >= 0 && o.arg < len(names):
		m.chosen = names[o.arg]
		return stateDone
	}
	return stateOpen
}

func (m *listMenu) view() tgapi.Page {
	names := m.of.names()
	var keyboard tgapi.Keyboard
	from, to, pager := m.paged(m.page, len(names))
	for i, name := range names[from:to] {
		keyboard = append(keyboard, []tgapi.Button{
			{Text: render.Marked(m.of.label(m.lang, name), name == m.now), Data: m.data(opPick, from+i)},
		})
	}
	keyboard = append(keyboard, pager...)
	return tgapi.Page{Text: m.of.text(m.lang, m.now), Keyboard: append(keyboard, []tgapi.Button{m.closeButton()})}
}

func (m *listMenu) unchanged() string { return m.of.stays(m.lang, m.now) }

func (m *listMenu) store(ctx context.Context, by orchestrator.Press) (said, short string, err error) {
	return m.of.choose(ctx, m.lang, by.Conversation, m.chosen)
}
