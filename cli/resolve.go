package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Resolve finds what a person means by a name: an agent ("claude"), an agent's model ("claude/opus"), or
// a model alone ("opus"), by id or by name, whatever the case. A model after an agent's name that is not
// on its list is taken as it is, unless it looks mistyped: lists are not always whole. The error is a
// *Failure that says what comes near.
func (s *Service) Resolve(ctx context.Context, name string) (Agent, ModelID, error) {
	name = strings.TrimSpace(name)
	head, rest, qualified := strings.Cut(name, "/")
	if agent, ok := s.agentNamed(head); ok && (!qualified || rest == "") {
		return agent, "", nil
	} else if ok {
		return s.resolveIn(ctx, agent, rest)
	}
	menu := s.Menu(ctx)
	for _, agent := range s.order() {
		if model, ok := modelNamed(modelsOf(menu, agent), name); ok {
			return agent, model, nil
		}
	}
	known := []string{}
	for _, agent := range s.order() {
		known = append(known, string(agent))
		for _, m := range modelsOf(menu, agent) {
			known = append(known, string(m.ID), string(agent)+"/"+string(m.ID))
		}
	}
	return "", "", unknownModel("", name, known)
}

func (s *Service) resolveIn(ctx context.Context, agent Agent, name string) (Agent, ModelID, error) {
	models := s.agents[agent].menu(ctx).Models
	if model, ok := modelNamed(models, name); ok {
		return agent, model, nil
	}
	var known []string
	for _, m := range models {
		known = append(known, string(m.ID))
	}
	if near := nearest(name, known); near != "" {
		return "", "", unknownModel(agent, name, known)
	}
	return agent, ModelID(name), nil
}

func (s *Service) agentNamed(name string) (Agent, bool) {
	for _, agent := range s.order() {
		if strings.EqualFold(string(agent), name) {
			return agent, true
		}
	}
	return "", false
}

func modelsOf(menu []MenuEntry, agent Agent) []Model {
	i := slices.IndexFunc(menu, func(e MenuEntry) bool { return e.Agent == agent })
	if i < 0 {
		return nil
	}
	return menu[i].Models
}

func modelNamed(models []Model, name string) (ModelID, bool) {
	for _, m := range models {
		if strings.EqualFold(string(m.ID), name) || strings.EqualFold(m.Name, name) {
			return m.ID, true
		}
	}
	return "", false
}

func unknownModel(agent Agent, name string, known []string) *Failure {
	f := Failf(UnknownModel, agent, "there is no %q", Shorten(name, 60))
	if near := nearest(name, known); near != "" {
		f.Reason += fmt.Sprintf(", but there is %q", near)
	}
	return f
}

// nearest is the known name with the fewest typing errors in name, or "" if every one has more than a
// third of name's letters wrong. One letter may always be.
func nearest(name string, known []string) string {
	best, limit := "", (len(name)+2)/3
	for _, k := range known {
		if d := editDistance(strings.ToLower(name), strings.ToLower(k)); d <= limit {
			best, limit = k, d-1
		}
	}
	return best
}

// editDistance counts the single letters to add, remove or change to make b of a.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		before := row[0]
		row[0] = i + 1
		for j := range y {
			change := before
			if x[i] != y[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(y)]
}
