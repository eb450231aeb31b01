package bot

import (
	"context"

	"ductor/cli"
	"ductor/orchestrator"
)

// wizard is the model menu: agent, model, effort, each by a button, in one message that is edited.
type wizard struct {
	desk   Desk
	closer *closer
	menus  *menus
}

// modelMenu is one open menu.
type modelMenu struct {
	menuFrame
	desk    Desk
	entries []cli.MenuEntry
	current orchestrator.Status
	agent   int // index into entries; -1 while the agent is chosen
	model   int // index into the agent's models; -1 while the model is chosen
	page    int
	chosen  choice // when it is done
}

// start answers "/model": with arguments it chooses at once, without it opens the menu.
func (w *wizard) start(ctx context.Context, t *task, r request) error {
	st, err := w.desk.Status(ctx, r.in.conv)
	if err != nil {
		return err
	}
	entries, err := w.desk.Menu(ctx, r.in.conv)
	if err != nil {
		return err
	}
	if r.args != "" {
		return w.chooseByName(ctx, t, r, entries, st)
	}
	m := &modelMenu{
		menuFrame: menuFrame{act: actModel}, desk: w.desk,
		entries: entries, current: st, agent: -1, model: -1,
	}
	if only, ok := onlyUsable(entries); ok {
		m.enterAgent(only)
	}
	return w.menus.offer(ctx, t, r, m)
}

func (w *wizard) chooseByName(ctx context.Context, t *task, r request, entries []cli.MenuEntry, st orchestrator.Status) error {
	c, problem := chooseModel(r.args, entries, st.Agent)
	if problem != "" {
		w.closer.answer(ctx, r.in, t.updates, problem, nil)
		return nil
	}
	if err := w.desk.SetModel(ctx, r.in.conv, c.agent, c.model, c.effort); err != nil {
		return err
	}
	w.closer.answer(ctx, r.in, t.updates, chosenText(c), nil)
	return nil
}

// choice is who is to answer.
type choice struct {
	agent  cli.Agent
	model  cli.ModelID
	effort cli.Effort
}

func (c choice) String() string { return choiceText(c.agent, c.model, c.effort) }

func chosenText(c choice) string { return "From your next message on: " + c.String() }

func (m *modelMenu) store(ctx context.Context, _ orchestrator.Press) (said, short string, err error) {
	c := m.chosen
	if err := m.desk.SetModel(ctx, m.conv, c.agent, c.model, c.effort); err != nil {
		return "", "", err
	}
	return chosenText(c), c.String(), nil
}

func (m *modelMenu) unchanged() string {
	return choiceText(m.current.Agent, m.current.Model, m.current.Effort)
}
