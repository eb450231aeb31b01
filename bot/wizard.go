package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/cli"
	"ductor/orchestrator"
)

// wizard is the model menu: agent, model, effort, each by a button, in one message that is edited.
type wizard struct {
	desk   Desk
	closer *updates.Finisher
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
func (w *wizard) start(ctx context.Context, r updates.Request) error {
	st, err := w.desk.Status(ctx, r.In.Conversation)
	if err != nil {
		return err
	}
	if r.Args != "" {
		entries, err := w.desk.Menu(ctx, r.In.Conversation)
		if err != nil {
			return err
		}
		return w.chooseByName(ctx, r, entries, st)
	}
	entries, err := w.desk.MenuNow(ctx, r.In.Conversation)
	if err != nil {
		return err
	}
	m := &modelMenu{
		menuFrame: menuFrame{act: actModel}, desk: w.desk,
		entries: entries, current: st, agent: -1, model: -1,
	}
	if slices.ContainsFunc(entries, isLoading) {
		return w.menus.offerLoading(ctx, r, m)
	}
	m.enterOnly()
	return w.menus.offer(ctx, r, m)
}

// isLoading says that an agent is still being asked for its models.
func isLoading(e cli.MenuEntry) bool { return errors.Is(e.Err, cli.ErrLoading) }

// load waits for the agents that are still being asked.
func (m *modelMenu) load(ctx context.Context) (fill func(), err error) {
	entries, err := m.desk.Menu(ctx, m.conv)
	if err != nil {
		return nil, err
	}
	st, err := m.desk.Status(ctx, m.conv)
	if err != nil {
		return nil, err
	}
	return func() {
		m.current = st
		for i, e := range entries {
			if i < len(m.entries) && isLoading(m.entries[i]) { // the others keep what buttons choose from
				m.entries[i] = e
			}
		}
		m.enterOnly()
	}, nil
}

// enterOnly spares the user a choice among one, unless something was pressed already.
func (m *modelMenu) enterOnly() {
	if only, ok := onlyUsable(m.entries); ok && m.step == 0 {
		m.enterAgent(only)
	}
}

func (w *wizard) chooseByName(ctx context.Context, r updates.Request, entries []cli.MenuEntry, st orchestrator.Status) error {
	c, problem := chooseModel(r.Args, entries, st.Agent)
	if problem != "" {
		w.closer.Answer(ctx, r.In, problem, nil)
		return nil
	}
	if err := w.desk.SetModel(ctx, r.In.Conversation, c.agent, c.model, c.effort); err != nil {
		return err
	}
	w.closer.Answer(ctx, r.In, chosenText(c), nil)
	return nil
}

// choice is who is to answer.
type choice struct {
	agent  cli.Agent
	model  cli.ModelID
	effort cli.Effort
}

func (c choice) String() string { return render.ChoiceText(c.agent, c.model, c.effort) }

func chosenText(c choice) string { return "From your next message on: " + c.String() }

func (m *modelMenu) store(ctx context.Context, _ orchestrator.Press) (said, short string, err error) {
	c := m.chosen
	if err := m.desk.SetModel(ctx, m.conv, c.agent, c.model, c.effort); err != nil {
		return "", "", err
	}
	return chosenText(c), c.String(), nil
}

func (m *modelMenu) unchanged() string {
	return render.ChoiceText(m.current.Agent, m.current.Model, m.current.Effort)
}

// jobModelMenu is the model menu of a job. Its last page is one of the job.
type jobModelMenu struct {
	*modelMenu
	choose func(context.Context, cli.Agent, cli.ModelID, cli.Effort) error
	back   func() tgapi.Page
}

// ChooseModel implements cron.ModelMenu.
func (w *wizard) ChooseModel(ctx context.Context, in orchestrator.ConversationID, current orchestrator.Status,
	choose func(context.Context, cli.Agent, cli.ModelID, cli.Effort) error, back func() tgapi.Page) (tgapi.Page, error) {
	entries, err := w.desk.Menu(ctx, in)
	if err != nil {
		return tgapi.Page{}, err
	}
	if current.Agent == "" {
		if current, err = w.desk.Status(ctx, in); err != nil {
			return tgapi.Page{}, err
		}
	}
	m := &jobModelMenu{choose: choose, back: back, modelMenu: &modelMenu{
		menuFrame: menuFrame{act: actJobModel}, entries: entries, agent: -1, model: -1, current: current,
	}}
	if err := w.menus.begin(in, m); err != nil {
		return tgapi.Page{}, err
	}
	text, keyboard := m.view()
	return tgapi.Page{Text: text, Keyboard: keyboard}, nil
}

func (m *jobModelMenu) store(ctx context.Context, _ orchestrator.Press) (said, short string, err error) {
	c := m.chosen
	if err := m.choose(ctx, c.agent, c.model, c.effort); err != nil {
		return "", "", fmt.Errorf("choose the model of a job: %w", err)
	}
	return "", c.String(), nil
}

// leads implements leading.
func (m *jobModelMenu) leads() (string, tgapi.Keyboard) {
	page := m.back()
	return page.Text, page.Keyboard
}
