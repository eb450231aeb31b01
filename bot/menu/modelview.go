package menu

import (
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

// This file contains the pages of the model menu and their buttons.

// press implements menu.
func (m *modelMenu) press(o op) state {
	switch string(o.kind) {
	case opClose:
		return stateClosed
	case opBack:
		m.back()
	case opAgent:
		if m.agent < 0 && o.arg >= 0 && o.arg < len(m.entries) && naming.Usable(m.entries[o.arg]) {
			m.enterAgent(o.arg)
		}
	case opPage:
		if m.agent >= 0 && m.model < 0 && o.arg >= 0 && o.arg < m.pages() {
			m.page = o.arg
		}
	case opModel:
		if m.agent < 0 || m.model >= 0 || o.arg < 0 || o.arg >= len(m.models()) {
			break
		}
		m.model = o.arg
		if len(m.models()[o.arg].Efforts) == 0 {
			return m.choose("")
		}
	case opEffort:
		if m.agent < 0 || m.model < 0 || o.arg < -1 || o.arg >= len(m.models()[m.model].Efforts) {
			break
		}
		if o.arg < 0 {
			return m.choose("")
		}
		return m.choose(m.models()[m.model].Efforts[o.arg])
	}
	return stateOpen
}

func (m *modelMenu) back() {
	switch {
	case m.model >= 0:
		m.model = -1
	default:
		m.agent, m.page = -1, 0
	}
}

// enterAgent opens the list of an agent's models, at the page that contains the current model.
func (m *modelMenu) enterAgent(agent int) {
	m.agent, m.model, m.page = agent, -1, 0
	for i, model := range m.models() {
		if m.isCurrent(model) {
			m.page = tgapi.PageOf(i)
		}
	}
}

func (m *modelMenu) models() []cli.Model { return m.entries[m.agent].Models }

func (m *modelMenu) pages() int { return tgapi.Pages(len(m.models())) }

func (m *modelMenu) choose(effort cli.Effort) state {
	m.chosen = naming.Choice{Agent: m.entries[m.agent].Agent, Model: m.models()[m.model].ID, Effort: effort}
	return stateDone
}

// isCurrent reports whether the conversation uses the model, because it was chosen or is the agent's default.
func (m *modelMenu) isCurrent(model cli.Model) bool {
	if m.current.Agent != m.entries[m.agent].Agent {
		return false
	}
	return model.ID == m.current.Model || m.current.Model == "" && model.Default
}

func (m *modelMenu) view() tgapi.Page {
	switch {
	case m.agent < 0:
		return m.agentsView()
	case m.model < 0:
		return m.modelsView()
	default:
		return m.effortsView()
	}
}

func (m *modelMenu) head() string {
	return m.lang.Text("menu.now", m.unchanged()) + "\n\n"
}

func (m *modelMenu) agentsView() tgapi.Page {
	var b strings.Builder
	b.WriteString(m.head())
	var keyboard tgapi.Keyboard
	for i, e := range m.entries {
		if naming.Usable(e) {
			keyboard = append(keyboard, []tgapi.Button{
				{Text: render.Marked(render.AgentName(m.lang, e.Agent), e.Agent == m.current.Agent),
					Data: m.data(opAgent, i)},
			})
		}
	}
	switch {
	case len(keyboard) > 0:
		b.WriteString(m.lang.Text("menu.which-agent"))
	case slices.ContainsFunc(m.entries, naming.IsLoading):
		b.WriteString(m.lang.Text("menu.asking-agents"))
	case slices.ContainsFunc(m.entries, m.answers):
		b.WriteString(m.lang.Text("menu.no-model-listed"))
	default:
		b.WriteString(m.lang.Text("menu.no-agent-yet"))
	}
	for _, e := range m.entries {
		switch {
		case naming.IsLoading(e):
			b.WriteString("\n\n" + m.lang.Text("menu.looking-up", render.AgentName(m.lang, e.Agent)))
		case !naming.Usable(e):
			fmt.Fprintf(&b, "\n\n%s: %s", render.AgentName(m.lang, e.Agent), unusableBecause(m.lang, e))
			if e.Auth.State == cli.Installed && e.Auth.Problem == nil {
				keyboard = append(keyboard, []tgapi.Button{tgapi.LogInButton(m.lang, orchestrator.LogInID(e.Agent))})
			}
		case e.Resting != nil:
			b.WriteString("\n\n" + e.Resting.Sentence(m.lang))
		}
	}
	return tgapi.Page{Text: b.String(), Keyboard: append(keyboard, []tgapi.Button{m.closeButton()})}
}

// answers reports whether the conversation uses the agent, and the agent is logged in.
func (m *modelMenu) answers(e cli.MenuEntry) bool {
	return e.Agent == m.current.Agent && e.Auth.State == cli.Authenticated
}

func (m *modelMenu) modelsView() tgapi.Page {
	var b strings.Builder
	b.WriteString(m.head())
	if resting := m.entries[m.agent].Resting; resting != nil {
		b.WriteString(resting.Sentence(m.lang) + "\n\n")
	}
	b.WriteString(m.lang.Text("menu.which-model", render.AgentName(m.lang, m.entries[m.agent].Agent)))
	from, to, pager := m.paged(m.page, len(m.models()))
	var keyboard tgapi.Keyboard
	for i, model := range m.models()[from:to] {
		name := modelName(model)
		if model.Description != "" {
			fmt.Fprintf(&b, "\n%s: %s", name, render.Cut(firstLineOf(model.Description), 120))
		}
		if known := factsText(m.lang, model); known != "" {
			fmt.Fprintf(&b, "\n%s: %s", name, known)
		}
		keyboard = append(keyboard, []tgapi.Button{
			{Text: render.Marked(name, m.isCurrent(model)), Data: m.data(opModel, from+i)},
		})
	}
	keyboard = append(keyboard, pager...)
	return tgapi.Page{Text: b.String(), Keyboard: append(keyboard, m.foot())}
}

// factsText returns the context size and the price of a model, if they are known.
func factsText(p lang.Printer, m cli.Model) string {
	var known []string
	if m.Context > 0 {
		known = append(known, p.Text("menu.model-context", p.Tokens(m.Context)))
	}
	if m.Price != (cli.Price{}) {
		known = append(known, p.Text("menu.model-price", p.Cost(m.Price.Input), p.Cost(m.Price.Output)))
	}
	return p.List(known...)
}

func (m *modelMenu) effortsView() tgapi.Page {
	model := m.models()[m.model]
	here := m.isCurrent(model)
	def := m.lang.Text("menu.default-effort")
	if model.DefaultEffort != "" {
		def = m.lang.Text("menu.default-effort-is", model.DefaultEffort)
	}
	keyboard := tgapi.Keyboard{{{Text: render.Marked(def, here && m.current.Effort == ""), Data: m.data(opEffort, -1)}}}
	for i, e := range model.Efforts {
		keyboard = append(keyboard, []tgapi.Button{
			{Text: render.Marked(string(e), here && m.current.Effort == e), Data: m.data(opEffort, i)},
		})
	}
	return tgapi.Page{Text: m.head() + m.lang.Text("menu.which-effort"), Keyboard: append(keyboard, m.foot())}
}

func (m *modelMenu) foot() []tgapi.Button {
	return []tgapi.Button{m.backButton(), m.closeButton()}
}

func modelName(m cli.Model) string {
	if m.Name != "" {
		return m.Name
	}
	return string(m.ID)
}

func onlyUsable(entries []cli.MenuEntry) (int, bool) {
	found := -1
	for i, e := range entries {
		if !naming.Usable(e) {
			continue
		}
		if found >= 0 {
			return -1, false
		}
		found = i
	}
	return found, found >= 0
}

// unusableBecause explains why an agent cannot be chosen, and how to fix that.
func unusableBecause(p lang.Printer, e cli.MenuEntry) string {
	var s string
	var f *cli.Failure
	switch {
	case errors.As(e.Err, &f) && f.Sandbox != "":
		return f.Sentence(p)
	case e.Auth.Problem != nil:
		return e.Auth.Problem.Sentence(p)
	case e.Auth.State == cli.NotFound:
		s = p.Text("menu.not-installed")
	case e.Auth.State == cli.Installed:
		s = p.Text("menu.not-logged-in")
	case f != nil && !p.IsEnglish(): // omit the reason, because it is in English
		without := *f
		without.Reason = ""
		return p.Text("menu.not-listed", strings.TrimRight(without.Sentence(p), ".。"))
	case e.Err != nil:
		return p.Text("menu.not-listed", render.Cut(firstLineOf(e.Err.Error()), 200))
	default:
		return p.Text("menu.no-models")
	}
	return strings.TrimSpace(s + " " + e.Auth.Advice(p))
}

func firstLineOf(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
