package menu

import (
	"ductor/bot/render"
	"ductor/cli"
	"ductor/cli/naming"
	"ductor/lang"
)

// whyNot returns a text that explains why a model could not be found by its name.
func whyNot(p lang.Printer, w *naming.Problem) string {
	name := render.Cut(w.Name, 60)
	switch w.Kind {
	case naming.Unusable:
		return p.Text("menu.unusable", render.AgentName(p, w.Agent), unusableBecause(p, w.Entry))
	case naming.NotListed:
		return p.Text("menu.chosen-unseen", render.AgentName(p, w.Agent), unusableBecause(p, w.Entry))
	case naming.Loading:
		if w.Agent == "" {
			return p.Text("menu.looking-for", name)
		}
		return p.Text("menu.looking-up", render.AgentName(p, w.Agent))
	case naming.Ambiguous:
		return p.Text("menu.ambiguous-model", modelIDs(p, w.Models))
	case naming.Elsewhere:
		return p.Text("menu.no-agent-runs", name, render.AgentName(p, w.Agent))
	case naming.Unknown:
		if w.Near != "" {
			return p.Text("menu.model-mistyped", name, w.Near)
		}
		return p.Text("menu.no-such-model", name, modelIDs(p, w.Models))
	case naming.TooManyWords:
		return p.Text("menu.too-many-words")
	case naming.NoEfforts:
		return p.Text("menu.no-efforts", modelOrDefault(p, w.Model))
	case naming.UnknownEffort:
		var efforts []string
		for _, e := range w.Model.Efforts {
			efforts = append(efforts, string(e))
		}
		return p.Text("menu.no-such-effort", modelOrDefault(p, w.Model), p.List(efforts...))
	}
	return p.Text("menu.no-agent-for-model")
}

func modelOrDefault(p lang.Printer, m cli.Model) string {
	if m.ID == "" {
		return p.Text("menu.default-model-of", render.AgentName(p, m.Agent))
	}
	return modelName(m)
}

func modelIDs(p lang.Printer, models []cli.Model) string {
	var names []string
	for _, m := range models[:min(len(models), 30)] {
		names = append(names, string(m.Agent)+"/"+string(m.ID))
	}
	if len(models) > 30 {
		names = append(names, "…")
	}
	return p.List(names...)
}
