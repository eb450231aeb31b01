package bot

import (
	"context"
	"slices"
	"strings"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/orchestrator"
)

// busyModes is the menu of what becomes of a message that comes while a turn runs.
type busyModes struct {
	desk   Desk
	closer *updates.Finisher
	menus  *menus
}

// busyMenu is one open menu of modes.
type busyMenu struct {
	menuFrame
	desk    Desk
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
		return "what runs is stopped, and it runs next."
	}
	return ""
}

// start answers "/queue": with a mode it sets it at once, without it opens the menu.
func (c *busyModes) start(ctx context.Context, r updates.Request) error {
	if r.Args != "" {
		return c.chooseByName(ctx, r)
	}
	st, err := c.desk.Status(ctx, r.In.Conversation)
	if err != nil {
		return err
	}
	return c.menus.offer(ctx, r, &busyMenu{menuFrame: menuFrame{act: actBusy}, desk: c.desk, current: st.Busy})
}

func (c *busyModes) chooseByName(ctx context.Context, r updates.Request) error {
	mode := orchestrator.BusyMode(strings.ToLower(r.Args))
	if !slices.Contains(orchestrator.BusyModes(), mode) {
		c.closer.Answer(ctx, r.In, "There is no such mode. There are: queue, steer, interrupt.", nil)
		return nil
	}
	if err := c.desk.SetBusy(ctx, r.In.Conversation, mode); err != nil {
		return err
	}
	c.closer.Answer(ctx, r.In, busySetText(mode), nil)
	return nil
}

func busySetText(mode orchestrator.BusyMode) string {
	return "Set. A message that comes while the agent works: " + busyMeaning(mode)
}

func (m *busyMenu) turn(op menuOp) menuState {
	modes := orchestrator.BusyModes()
	switch kind := string(op.kind); {
	case kind == opClose:
		return menuClosed
	case kind == opPick && op.arg >= 0 && op.arg < len(modes):
		m.chosen = modes[op.arg]
		return menuDone
	}
	return menuOpen
}

func (m *busyMenu) view() (string, tgapi.Keyboard) {
	var b strings.Builder
	b.WriteString("Now: " + string(m.current) + "\n\nWhat becomes of a message that comes while the agent works?")
	var keyboard tgapi.Keyboard
	for i, mode := range orchestrator.BusyModes() {
		b.WriteString("\n" + string(mode) + ": " + busyMeaning(mode))
		keyboard = append(keyboard, []tgapi.Button{{Text: render.Marked(string(mode), mode == m.current), Data: m.data(opPick, i)}})
	}
	return b.String(), append(keyboard, []tgapi.Button{m.closeButton()})
}

func (m *busyMenu) unchanged() string { return string(m.current) + ": " + busyMeaning(m.current) }

func (m *busyMenu) store(ctx context.Context, _ orchestrator.Press) (said, short string, err error) {
	if err := m.desk.SetBusy(ctx, m.conv, m.chosen); err != nil {
		return "", "", err
	}
	return busySetText(m.chosen), "While the agent works: " + string(m.chosen), nil
}
