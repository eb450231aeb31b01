package menu

import (
	"context"
	"slices"
	"strings"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// busyMenu is one open menu of what becomes of a message that comes while a turn runs.
type busyMenu struct {
	frame
	service Service
	current orchestrator.BusyMode
	chosen  orchestrator.BusyMode
}

// busyMeaning says in a line what a mode means.
func busyMeaning(p lang.Printer, mode orchestrator.BusyMode) string {
	switch mode {
	case orchestrator.BusyQueue:
		return p.Text("menu.busy-queue")
	case orchestrator.BusySteer:
		return p.Text("menu.busy-steer")
	case orchestrator.BusyInterrupt:
		return p.Text("menu.busy-interrupt")
	}
	return ""
}

// Busy answers "/queue": with a mode it sets it at once, without one it opens the menu.
func (k *Menus) Busy(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error) {
	if args != "" {
		return k.busyByName(ctx, by.Conversation, args)
	}
	st, err := k.service.Status(ctx, by.Conversation)
	if err != nil {
		return tgapi.Page{}, err
	}
	return k.open(by.Conversation, &busyMenu{frame: frame{action: BusyAction}, service: k.service, current: st.Busy})
}

func (k *Menus) busyByName(ctx context.Context, in orchestrator.ConversationID, name string) (tgapi.Page, error) {
	mode := orchestrator.BusyMode(strings.ToLower(name))
	if !slices.Contains(orchestrator.BusyModes(), mode) {
		return tgapi.Page{Text: k.lang.Text("menu.no-such-busy")}, nil
	}
	return tgapi.Page{Text: busySetText(k.lang, mode)}, k.service.SetBusy(ctx, in, mode)
}

func busySetText(p lang.Printer, mode orchestrator.BusyMode) string {
	return p.Text("menu.busy-set", busyMeaning(p, mode))
}

func (m *busyMenu) press(o op) state {
	modes := orchestrator.BusyModes()
	switch kind := string(o.kind); {
	case kind == opClose:
		return stateClosed
	case kind == opPick && o.arg >= 0 && o.arg < len(modes):
		m.chosen = modes[o.arg]
		return stateDone
	}
	return stateOpen
}

func (m *busyMenu) view() tgapi.Page {
	var b strings.Builder
	b.WriteString(m.lang.Text("menu.now", m.current) + "\n\n" + m.lang.Text("menu.which-busy"))
	var keyboard tgapi.Keyboard
	for i, mode := range orchestrator.BusyModes() {
		b.WriteString("\n" + string(mode) + ": " + busyMeaning(m.lang, mode))
		keyboard = append(keyboard, []tgapi.Button{{Text: render.Marked(string(mode), mode == m.current), Data: m.data(opPick, i)}})
	}
	return tgapi.Page{Text: b.String(), Keyboard: append(keyboard, []tgapi.Button{m.closeButton()})}
}

func (m *busyMenu) unchanged() string {
	return string(m.current) + ": " + busyMeaning(m.lang, m.current)
}

func (m *busyMenu) store(ctx context.Context, _ orchestrator.Press) (said, short string, err error) {
	if err := m.service.SetBusy(ctx, m.conv, m.chosen); err != nil {
		return "", "", err
	}
	return busySetText(m.lang, m.chosen), m.lang.Text("menu.busy-short", m.chosen), nil
}
