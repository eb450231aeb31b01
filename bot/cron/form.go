package cron

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// form is a saved job or a draft that a user edits.
type form struct {
	key string
	by  orchestrator.Press
	job orchestrator.Job
}

// nonce returns the random ID of the draft. It returns false if the form edits a saved job.
func (f form) nonce() (string, bool) { return pressed{key: f.key}.draft() }

func unfailing(set func(*orchestrator.Job)) func(*orchestrator.Job) error {
	return func(j *orchestrator.Job) error {
		set(j)
		return nil
	}
}

// change applies a change to the job or draft, saves it, and returns the new form. It returns an *orchestrator.BadJob
// if the changed job is invalid.
func (s *Screen) change(ctx context.Context, f form, by func(*orchestrator.Job) error) (form, error) {
	nonce, is := f.nonce()
	if !is {
		st, err := s.o.Jobs.EditJob(ctx, f.job.ID, f.by, by)
		f.job = st.Job
		return f, err
	}
	// Load the draft again, because another user may have changed, added or cancelled it.
	j, err := s.loadDraft(ctx, f.job.Conversation, nonce)
	if errors.Is(err, orchestrator.ErrRepeated) {
		err = orchestrator.ErrNoJob
	}
	if err != nil {
		return f, err
	}
	if err := by(&j); err != nil {
		return f, err
	}
	st, err := s.o.Jobs.CheckJob(j)
	if err != nil {
		return f, err
	}
	f.job = st.Job
	return f, s.saveDraft(ctx, nonce, draft{Job: &f.job})
}

// actOnForm handles a button of the pages that edit a job. It returns the new page, and a short notice for the user.
func (s *Screen) actOnForm(ctx context.Context, p press, f form) (page tgapi.Page, short string, err error) {
	say := s.o.Lang.Of(p.by.Conversation.Chat)
	if f.job.Configured {
		return tgapi.Page{}, "", orchestrator.ErrJobConfigured
	}
	more := p.op == opMore
	switch p.op {
	case opField:
		field, ok := fieldOf(say, p.arg)
		if !ok {
			return tgapi.Page{}, say.Text("common.stale-button"), nil
		}
		if field.ask != "" {
			err = s.awaitReply(ctx, p, f, field)
		}
		return s.fieldPage(f, field), "", err
	case opModel:
		page, err = s.modelPage(ctx, p.by.Conversation, f)
		return page, "", err
	case opValue:
		if f, more, err = s.choose(ctx, p.pressed, f); err != nil {
			return tgapi.Page{}, "", err
		}
		short = say.Text("cron.changed")
	}
	if err = s.stopAwaiting(ctx, p.by.Conversation, p.message); err != nil {
		return tgapi.Page{}, "", err
	}
	return s.editPage(f, more), short, nil
}

// choose sets a field to the value of the button. It reports whether the field is on the page that "More" opens.
func (s *Screen) choose(ctx context.Context, p pressed, f form) (_ form, more bool, err error) {
	code, i, ok := p.choice()
	field, known := fieldOf(s.o.Lang.Of(f.by.Conversation.Chat), code)
	if !ok || !known || i >= len(field.choices) {
		return f, false, orchestrator.ErrNoJob
	}
	f, err = s.change(ctx, f, unfailing(field.choices[i].set))
	return f, field.more, err
}

// editPage returns the page with the first fields of a job. If more is true, it returns the page with all other fields.
func (s *Screen) editPage(f form, more bool) tgapi.Page {
	p := s.o.Lang.Of(f.by.Conversation.Chat)
	lines := []string{"✏️ " + render.Cut(f.job.Name, nameShown), ""}
	var buttons []tgapi.Button
	for _, field := range fields(p) {
		if field.more != more {
			continue
		}
		if field.code != "t" { // "t" is the prompt, which stands at the end of the page
			lines = append(lines, field.label+": "+field.value(f.job))
		}
		buttons = append(buttons, newButton(field.label, opField, f.key, field.code))
	}
	last := []tgapi.Button{newButton(p.Text("cron.more"), opMore, f.key, ""),
		newButton(p.Text("cron.done"), opOpen, f.key, "")}
	if more {
		last = []tgapi.Button{newButton(p.Text("common.back"), opEdit, f.key, "")}
	} else {
		lines = append(lines, "", render.Cut(strings.TrimSpace(f.job.Prompt), promptShown))
	}
	return tgapi.Page{Text: strings.Join(lines, "\n"), Keyboard: append(slices.Collect(slices.Chunk(buttons, 2)), last)}
}

// fieldPage returns the page on which users change one field.
func (s *Screen) fieldPage(f form, field field) tgapi.Page {
	p := s.o.Lang.Of(f.by.Conversation.Chat)
	lines := []string{render.Cut(f.job.Name, nameShown), field.label + ": " + field.value(f.job)}
	if field.ask != "" {
		lines = append(lines, "", field.ask)
	}
	var keyboard tgapi.Keyboard
	for i, c := range field.choices {
		keyboard = append(keyboard, []tgapi.Button{newButton(render.Marked(c.label, c.is(f.job)), opValue, f.key,
			field.code+strconv.Itoa(i))})
	}
	if field.code == "a" {
		keyboard = append(keyboard, []tgapi.Button{newButton(render.Marked(p.Text("cron.choose"), f.job.Agent != ""),
			opModel, f.key, "")})
	}
	back := opEdit
	if field.more {
		back = opMore
	}
	return tgapi.Page{Text: strings.Join(lines, "\n"),
		Keyboard: append(keyboard, []tgapi.Button{newButton(p.Text("common.back"), back, f.key, "")})}
}

// modelPage returns a menu of agents and models. When the user has chosen, the menu shows the edit page of the job
// again.
func (s *Screen) modelPage(ctx context.Context, in orchestrator.ConversationID, f form) (tgapi.Page, error) {
	now := orchestrator.Status{Agent: f.job.Agent, Model: f.job.Model, Effort: f.job.Effort}
	choose := func(ctx context.Context, agent cli.Agent, model cli.ModelID, effort cli.Effort) (err error) {
		f, err = s.change(ctx, f, unfailing(func(j *orchestrator.Job) {
			j.Agent, j.Model, j.Effort = agent, model, effort
		}))
		return err
	}
	return s.o.Models.ChooseModel(ctx, in, now, choose, func() tgapi.Page { return s.editPage(f, false) })
}
