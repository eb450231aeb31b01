package menu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/cli/naming"
	"ductor/lang"
	"ductor/orchestrator"
)

// modelMenu is the menu of /model. The user chooses an agent, one of its models, and the effort of the model.
type modelMenu struct {
	frame
	set     func(ctx context.Context, c naming.Choice) (said string, err error) // stores and describes the choice
	entries []cli.MenuEntry
	current orchestrator.Status
	agent   int // index into entries; -1 before the user has chosen
	model   int // index into the agent's models; -1 before the user has chosen
	page    int
	chosen  naming.Choice
}

// Model answers "/model" with a menu. If sent is not nil, the caller must call it with the ID of the message that
// contains page; see openLoading.
func (k *Menus) Model(ctx context.Context, by orchestrator.Press) (page tgapi.Page, sent func(message int), err error) {
	in := by.Conversation
	st, err := k.service.Status(ctx, in)
	if err != nil {
		return tgapi.Page{}, nil, err
	}
	entries, err := k.service.MenuNow(ctx, in)
	if err != nil {
		return tgapi.Page{}, nil, err
	}
	m := k.newModelMenu(in, entries, st)
	if slices.ContainsFunc(entries, naming.IsLoading) {
		page, sent = k.openLoading(in, m)
		return page, sent, nil
	}
	m.enterOnly()
	return k.open(in, m), nil, nil
}

// newModelMenu returns a menu for the model of a conversation.
func (k *Menus) newModelMenu(in orchestrator.ConversationID, entries []cli.MenuEntry,
	current orchestrator.Status) *modelMenu {
	set := func(ctx context.Context, c naming.Choice) (string, error) {
		return setModel(ctx, k.service, k.lang.Of(in.Chat), in, c)
	}
	return &modelMenu{
		frame: frame{action: ModelAction}, set: set, entries: entries, current: current, agent: -1, model: -1,
	}
}

// fill adds the models of agents that have meanwhile listed their models.
func (m *modelMenu) fill(entries []cli.MenuEntry, current orchestrator.Status) {
	m.current = current
	for i, e := range entries {
		// Replace only entries that were still loading. The other entries must not change, because the data of buttons
		// in the chat contains their indexes.
		if i < len(m.entries) && naming.IsLoading(m.entries[i]) {
			m.entries[i] = e
		}
	}
	m.enterOnly()
}

// enterOnly opens the page of the only usable agent, unless the user has pressed a button already.
func (m *modelMenu) enterOnly() {
	if only, ok := onlyUsable(m.entries); ok && m.step == 0 {
		m.enterAgent(only)
	}
}

// ModelByName handles "/model" with the name of a model. Usually, it returns the final page, and awaitFinal is nil. If
// it must wait for agents that are still listing their models, it returns a page that asks the user to wait. The
// function awaitFinal then waits for these agents and returns the final page.
func (k *Menus) ModelByName(ctx context.Context, by orchestrator.Press,
	name string) (page tgapi.Page, awaitFinal func(context.Context) (tgapi.Page, error), err error) {
	in := by.Conversation
	st, err := k.service.Status(ctx, in)
	if err != nil {
		return tgapi.Page{}, nil, err
	}
	c, problem, err := k.find(ctx, in, name, st.Agent, nil)
	switch {
	case err != nil:
		return tgapi.Page{}, nil, err
	case !isUnsettled(problem):
		page, err = k.chooseFound(ctx, in, st, c, problem)
		return page, nil, err
	}
	return tgapi.Page{Text: whyNot(k.lang.Of(in.Chat), problem)}, func(ctx context.Context) (tgapi.Page, error) {
		c, problem, err := k.find(ctx, in, name, st.Agent, problem)
		if err != nil {
			return tgapi.Page{}, err
		}
		return k.chooseFound(ctx, in, st, c, problem)
	}, nil
}

// chooseFound stores the model that find returned, or explains the problem. If several models match the name,
// chooseFound returns a menu of these models.
func (k *Menus) chooseFound(ctx context.Context, in orchestrator.ConversationID, now orchestrator.Status,
	c naming.Choice, problem *naming.Problem) (tgapi.Page, error) {
	p, note := k.lang.Of(in.Chat), ""
	if a, known := k.newAgent(problem); known {
		return tgapi.Page{Text: p.Text("menu.agent-unused", a.Name, a.ID)}, nil
	}
	switch {
	// If the model has no efforts, store the model anyway, because it matters more than the effort.
	case problem != nil && problem.Chosen():
		note = "\n" + whyNot(p, problem)
	case problem != nil && len(problem.Meant) > 0:
		return k.openList(in, ModelAction, meantModels{k.service, problem, now}, ""), nil
	case problem != nil:
		return tgapi.Page{Text: whyNot(p, problem)}, nil
	}
	said, err := storeModel(ctx, k.service, p, in, c)
	if err != nil {
		return tgapi.Page{}, err
	}
	return k.withModes(ctx, in, tgapi.Page{Text: said + note})
}

// withModes adds the menu of /permissions to a page about the chosen agent if the agent does not support the current
// permission mode.
func (k *Menus) withModes(ctx context.Context, in orchestrator.ConversationID, page tgapi.Page) (tgapi.Page, error) {
	m, err := k.permissionMenu(ctx, in)
	if err != nil || !m.refused(m.now.Mode) {
		return page, err
	}
	modes := k.open(in, m)
	return tgapi.Page{Text: page.Text + "\n\n" + modes.Text, Keyboard: modes.Keyboard}, nil
}

// newAgent returns the agent that the user named, if it is not in the configuration but can be added. problem may be
// nil.
func (k *Menus) newAgent(problem *naming.Problem) (NewAgent, bool) {
	if k.offers.Known == nil || problem == nil {
		return NewAgent{}, false
	}
	if !slices.Contains([]naming.ProblemKind{naming.Unknown, naming.NoAgent, naming.NotListed}, problem.Kind) {
		return NewAgent{}, false
	}
	return k.offers.Known(strings.ToLower(strings.TrimSpace(problem.Name)))
}

// Effort answers "/effort". If args is an effort of the current model, Effort selects this effort. If args is empty,
// Effort returns a menu.
func (k *Menus) Effort(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error) {
	p := k.lang.Of(by.Conversation.Chat)
	st, err := k.service.Status(ctx, by.Conversation)
	if err != nil {
		return tgapi.Page{}, err
	}
	var only []cli.Agent
	if args != "" { // without a menu, the models of other agents are not needed
		only = append(only, st.Agent)
	}
	entries, err := k.service.Menu(ctx, by.Conversation, only...)
	if err != nil {
		return tgapi.Page{}, err
	}
	m := k.newModelMenu(by.Conversation, entries, st)
	switch m.enterCurrent() {
	case effortsUnknown:
		return tgapi.Page{Text: p.Text("menu.efforts-unknown", render.ChoiceText(p, st.Agent, st.Model, ""))}, nil
	case effortsNone:
		return tgapi.Page{Text: p.Text("menu.no-efforts", render.ChoiceText(p, st.Agent, st.Model, ""))}, nil
	}
	if args == "" {
		return k.open(by.Conversation, m), nil
	}
	model := m.models()[m.model]
	effort := cli.Effort(strings.ToLower(args))
	switch {
	case strings.EqualFold(args, "default"):
		effort = ""
	case !slices.Contains(model.Efforts, effort):
		return tgapi.Page{Text: whyNot(p, &naming.Problem{Kind: naming.UnknownEffort, Name: args, Model: model})}, nil
	}
	c := naming.Choice{Agent: st.Agent, Model: st.Model, Effort: effort}
	said, err := setModel(ctx, k.service, p, by.Conversation, c)
	return tgapi.Page{Text: said}, err
}

// efforts describes whether users can choose the effort of a model.
type efforts int

const (
	effortsUnknown efforts = iota // the agent has not listed the model
	effortsNone
	effortsSome
)

// enterCurrent opens the page with the efforts of the current model.
func (m *modelMenu) enterCurrent() efforts {
	for i, e := range m.entries {
		if e.Agent != m.current.Agent || !naming.Usable(e) {
			continue
		}
		m.enterAgent(i)
		for n, model := range m.models() {
			switch {
			case !m.isCurrent(model):
			case len(model.Efforts) == 0:
				return effortsNone
			default:
				m.model = n
				return effortsSome
			}
		}
	}
	return effortsUnknown
}

// Addressed returns the model that a user named at the start of a prompt, such as "fast" in "@fast explain this". See
// naming.Names.Addressed.
func (k *Menus) Addressed(ctx context.Context, in orchestrator.ConversationID, name string) (naming.Choice, bool) {
	return k.parsed(ctx, in, name, naming.Names.Addressed)
}

// Named returns the model with a name. See naming.Names.Exactly.
func (k *Menus) Named(ctx context.Context, in orchestrator.ConversationID, name string) (naming.Choice, bool) {
	return k.parsed(ctx, in, name, naming.Names.Exactly)
}

// parsed parses a name. It returns false if no model has the name. If the name is neither a short name in the
// configuration nor the name of an agent, parsed waits until all agents have listed their models.
func (k *Menus) parsed(ctx context.Context, in orchestrator.ConversationID, name string,
	parse func(naming.Names, string) (naming.Choice, bool)) (naming.Choice, bool) {
	for _, list := range []func(context.Context, orchestrator.ConversationID) ([]cli.MenuEntry, error){
		k.service.MenuNow, k.Entries,
	} {
		entries, err := list(ctx, in)
		if err != nil {
			return naming.Choice{}, false
		}
		if c, ok := parse(naming.Names{Entries: entries, Aliases: k.aliases()}, name); ok {
			return c, true
		}
		if !slices.ContainsFunc(entries, naming.IsLoading) {
			break
		}
	}
	return naming.Choice{}, false
}

func choiceText(p lang.Printer, c naming.Choice) string {
	return render.ChoiceText(p, c.Agent, c.Model, c.Effort)
}

// storeModel stores a chosen model, and returns a text about it.
func storeModel(ctx context.Context, in Service, p lang.Printer, of orchestrator.ConversationID,
	c naming.Choice) (said string, err error) {
	if err := in.SetModel(ctx, of, c.Agent, c.Model, c.Effort); err != nil {
		return "", err
	}
	return chosenText(ctx, in, p, of, choiceText(p, c), ""), nil
}

// setModel stores the chosen model, like storeModel. If the agent does not support the current permission mode, the
// returned text also warns the user.
func setModel(ctx context.Context, in Service, p lang.Printer, of orchestrator.ConversationID,
	c naming.Choice) (said string, err error) {
	if said, err = storeModel(ctx, in, p, of, c); err != nil {
		return "", err
	}
	if now, err := in.Permissions(ctx, of); err == nil && slices.Contains(now.Refused, now.Mode) {
		said += "\n" + p.Text("menu.mode-refused", now.Mode)
	}
	return said, nil // ignore the error, because the choice is stored anyway
}

// chosenText returns a text about the chosen model or account. accountOf is the agent of the chosen account, or "" if
// the user chose a model.
//
// The text mentions how many waiting prompts will use the chosen model or account. These are the prompts that name no
// agent, and the prompts that name the agent of the chosen account.
func chosenText(ctx context.Context, of Service, p lang.Printer, in orchestrator.ConversationID, chosen string,
	accountOf cli.Agent) string {
	st, err := of.Status(ctx, in)
	follow := 0
	for _, wants := range st.Queue {
		if wants.Agent == "" || wants.Agent == accountOf {
			follow++
		}
	}
	if err != nil || follow == 0 { // ignore the error, because the choice is stored anyway
		return p.Text("menu.model-set", chosen)
	}
	return p.Text("menu.model-set-waiting", follow, chosen)
}

func (m *modelMenu) store(ctx context.Context, _ orchestrator.Press) (said, short string, err error) {
	c := m.chosen
	said, err = m.set(ctx, c)
	return said, choiceText(m.lang, c), err
}

func (m *modelMenu) unchanged() string {
	return render.ChoiceText(m.lang, m.current.Agent, m.current.Model, m.current.Effort)
}

// ChooseModel implements cron.ModelMenu.
func (k *Menus) ChooseModel(ctx context.Context, in orchestrator.ConversationID, current orchestrator.Status,
	choose func(context.Context, cli.Agent, cli.ModelID, cli.Effort) error,
	back func() tgapi.Page) (tgapi.Page, error) {
	entries, err := k.service.Menu(ctx, in)
	if err != nil {
		return tgapi.Page{}, err
	}
	if current.Agent == "" {
		if current, err = k.service.Status(ctx, in); err != nil {
			return tgapi.Page{}, err
		}
	}
	m := k.newModelMenu(in, entries, current)
	m.action, m.end = JobModelAction, back
	// The text for the user is empty, because m.end returns the page that replaces the menu.
	m.set = func(ctx context.Context, c naming.Choice) (string, error) {
		if err := choose(ctx, c.Agent, c.Model, c.Effort); err != nil {
			return "", fmt.Errorf("choose the model of a job: %w", err)
		}
		return "", nil
	}
	return k.open(in, m), nil
}

// OfferAction is the action of the buttons that add a new agent.
const OfferAction = "ao"

// NewAgent is an agent that is installed on this machine but not configured.
type NewAgent struct{ ID, Name, Program string }

// Offers lets users add new agents to the configuration. It is safe for concurrent use.
type Offers struct {
	// Next returns the agents that were not offered before. It records these agents, so that each agent is offered only
	// once. It may read the disk. If Next is nil, no agents are offered.
	Next func() []NewAgent
	// Add adds an agent to the configuration file and loads the file. If the file was changed but not loaded, Add
	// returns ErrNotLoaded.
	Add func(ctx context.Context, by orchestrator.Press, id string) error
	// Known returns the agent with the given ID if it can be added to the configuration. The agent need not be
	// installed. If Known is nil, no agent is known.
	Known func(id string) (NewAgent, bool)
	// AccountTable returns the name of the table in the configuration file that defines the account "work" of an agent.
	// It returns "" if the agent cannot have several accounts. If AccountTable is nil, no agent can have several
	// accounts.
	AccountTable func(agent cli.Agent) string
}

// ErrNotLoaded means that an agent was added to the configuration file, but the file could not be loaded.
var ErrNotLoaded = errors.New("the configuration cannot be loaded")

// Offer offers new agents to an owner of the bot in a private chat. It calls show once for each agent, and stops if
// show fails. It works in the background, because finding programs takes time.
func (k *Menus) Offer(by orchestrator.Press, show func(context.Context, tgapi.Page) error) {
	if k.offers.Next == nil || by.Conversation.Group() || !by.May(orchestrator.ManageDuctor) {
		return
	}
	p := k.lang.Of(by.Conversation.Chat)
	k.spawn(func(ctx context.Context) {
		for _, a := range k.offers.Next() {
			page := tgapi.Page{Text: p.Text("menu.agent-offer", a.Name, a.Program), Keyboard: tgapi.Keyboard{{
				tgapi.NewButton(p.Text("menu.agent-add", a.Name), OfferAction, a.ID),
				tgapi.NewButton(p.Text("menu.agent-not-now"), OfferAction, "-"+a.ID),
			}}}
			if show(ctx, page) != nil {
				return
			}
		}
	})
}

// PressOffer handles a button below the offer of a new agent.
func (k *Menus) PressOffer(ctx context.Context, by orchestrator.Press, data string) (tgapi.Answer, error) {
	p := k.lang.Of(by.Conversation.Chat)
	if id, no := strings.CutPrefix(data, "-"); no {
		return tgapi.Answer{Edit: tgapi.Page{Text: p.Text("menu.agent-declined", id)}}, nil
	}
	if k.offers.Add == nil {
		return tgapi.Answer{Text: p.Text("menu.agent-not-added", data)}, nil
	}
	switch err := k.offers.Add(ctx, by, data); {
	case errors.Is(err, ErrNotLoaded):
		return tgapi.Answer{Edit: tgapi.Page{Text: p.Text("menu.agent-not-loaded", data)}}, nil
	case err != nil: // keep the buttons, so that the user can try again
		return tgapi.Answer{Text: p.Text("menu.agent-not-added", data)}, nil
	}
	return tgapi.Answer{Edit: tgapi.Page{Text: p.Text("menu.agent-added", data)}}, nil
}
