package menu

import (
	"context"
	"slices"
	"strings"

	"ductor/bot/render"
	"ductor/bot/tgapi"
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
func busyMeaning(mode orchestrator.BusyMode) string {
	switch mode {
	case orchestrator.BusyQueue:
		return "it waits its turn. Buttons below it steer or interrupt all the same."
	case orchestrator.BusySteer:
		return "the agent gets it while it works; where the agent cannot, it runs next."
	case orchestrator.BusyInterrupt:
		return "the running turn is stopped, and it runs next."
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
		return tgapi.Page{Text: "There is no such mode. There are: queue, steer, interrupt."}, nil
	}
	return tgapi.Page{Text: busySetText(mode)}, k.service.SetBusy(ctx, in, mode)
}

func busySetText(mode orchestrator.BusyMode) string {
	return "Set. A message that comes while the agent works: " + busyMeaning(mode)
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
	b.WriteString("Now: " + string(m.current) + "\n\nWhat becomes of a message that comes while the agent works?")
	var keyboard tgapi.Keyboard
	for i, mode := range orchestrator.BusyModes() {
		b.WriteString("\n" + string(mode) + ": " + busyMeaning(mode))
		keyboard = append(keyboard, []tgapi.Button{{Text: render.Marked(string(mode), mode == m.current), Data: m.data(opPick, i)}})
	}
	return tgapi.Page{Text: b.String(), Keyboard: append(keyboard, []tgapi.Button{m.closeButton()})}
}

func (m *busyMenu) unchanged() string { return string(m.current) + ": " + busyMeaning(m.current) }

func (m *busyMenu) store(ctx context.Context, _ orchestrator.Press) (said, short string, err error) {
	if err := m.service.SetBusy(ctx, m.conv, m.chosen); err != nil {
		return "", "", err
	}
	return busySetText(m.chosen), "While the agent works: " + string(m.chosen), nil
}
