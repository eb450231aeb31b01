package bot

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// cronForm is a job that is being changed: one that is stored, or a draft.
type cronForm struct {
	key string
	by  orchestrator.Press // who changes it
	job orchestrator.Job
}

// nonce is that of a draft.
func (f cronForm) nonce() (string, bool) { return cronPress{key: f.key}.draft() }

// surely is a change that cannot fail.
func surely(set func(*orchestrator.Job)) func(*orchestrator.Job) error {
	return func(j *orchestrator.Job) error {
		set(j)
		return nil
	}
}

// save makes change of the job, or of its draft, and gives what it is then. *orchestrator.BadJob for what cannot be.
func (k *crons) save(ctx context.Context, f cronForm, change func(*orchestrator.Job) error) (cronForm, error) {
	nonce, is := f.nonce()
	if !is {
		st, err := k.jobs.EditJob(ctx, f.job.ID, f.by, change)
		f.job = st.Job
		return f, err
	}
	// As it is now: a page of it may have been open for long, and it may be over meanwhile.
	j, err := k.loadDraft(ctx, f.job.Conversation, nonce)
	if errors.Is(err, orchestrator.ErrRepeated) {
		err = orchestrator.ErrNoJob
	}
	if err != nil {
		return f, err
	}
	if err := change(&j); err != nil {
		return f, err
	}
	st, err := k.jobs.CheckJob(j)
	if err != nil {
		return f, err
	}
	f.job = st.Job
	return f, k.saveDraft(ctx, nonce, cronDraft{Job: &f.job})
}

// actOnForm does what the buttons of the pages that change a job say.
func (k *crons) actOnForm(ctx context.Context, p press, cp cronPress, f cronForm) (page cronPage, short string, err error) {
	if f.job.Configured {
		return cronPage{}, "", orchestrator.ErrJobConfigured
	}
	switch cp.op {
	case cronField:
		field, ok := jobFieldOf(cp.arg)
		if !ok {
			return cronPage{}, render.StaleButton, nil
		}
		if field.ask != "" {
			err = k.await(ctx, p, f, field)
		}
		return k.fieldPage(f, field), "", err
	case cronModel:
		return k.modelPage(ctx, p, f)
	case cronValue:
		if f, err = k.choose(ctx, cp, f); err != nil {
			return cronPage{}, "", err
		}
		short = "Changed."
	}
	if err = k.awaitNothing(ctx, p.by.Conversation, p.message); err != nil {
		return cronPage{}, "", err
	}
	return k.editPage(f), short, nil
}

// choose makes what a button chooses so.
func (k *crons) choose(ctx context.Context, cp cronPress, f cronForm) (cronForm, error) {
	code, i, ok := cp.choice()
	field, known := jobFieldOf(code)
	if !ok || !known || i >= len(field.choices) {
		return f, orchestrator.ErrNoJob
	}
	return k.save(ctx, f, surely(field.choices[i].set))
}

// editPage shows what can be changed of a job.
func (k *crons) editPage(f cronForm) cronPage {
	lines := []string{"✏️ " + render.Cut(f.job.Name, cronNameShown), ""}
	var keyboard tgapi.Keyboard
	for i, field := range jobFields() {
		if field.code != "t" {
			lines = append(lines, field.label+": "+field.value(f.job))
		}
		button := cronButton(field.label, cronField, f.key, field.code)
		if i%2 == 0 {
			keyboard = append(keyboard, nil)
		}
		keyboard[len(keyboard)-1] = append(keyboard[len(keyboard)-1], button)
	}
	lines = append(lines, "", render.Cut(strings.TrimSpace(f.job.Prompt), cronPromptShown))
	return cronPage{strings.Join(lines, "\n"), append(keyboard, []tgapi.Button{cronButton("‹ Done", cronOpen, f.key, "")})}
}

// fieldPage shows one thing that can be changed.
func (k *crons) fieldPage(f cronForm, field jobField) cronPage {
	lines := []string{render.Cut(f.job.Name, cronNameShown), field.label + ": " + field.value(f.job)}
	if field.ask != "" {
		lines = append(lines, "", "Reply to this message with "+field.ask+".")
	}
	var keyboard tgapi.Keyboard
	for i, c := range field.choices {
		keyboard = append(keyboard, []tgapi.Button{cronButton(render.Marked(c.label, c.is(f.job)), cronValue, f.key, field.code+strconv.Itoa(i))})
	}
	if field.code == "a" {
		keyboard = append(keyboard, []tgapi.Button{cronButton(render.Marked("Choose…", f.job.Agent != ""), cronModel, f.key, "")})
	}
	return cronPage{strings.Join(lines, "\n"), append(keyboard, []tgapi.Button{cronButton("‹ Back", cronEdit, f.key, "")})}
}

// jobModelMenu is the model menu for a job: it leads back to it.
type jobModelMenu struct {
	*modelMenu
	crons *crons
	form  cronForm
}

// modelPage has the message become a model menu.
func (k *crons) modelPage(ctx context.Context, p press, f cronForm) (cronPage, string, error) {
	entries, err := k.desk.Menu(ctx, p.by.Conversation)
	if err != nil {
		return cronPage{}, "", err
	}
	now := orchestrator.Status{Agent: f.job.Agent, Model: f.job.Model, Effort: f.job.Effort}
	if now.Agent == "" {
		if now, err = k.desk.Status(ctx, p.by.Conversation); err != nil {
			return cronPage{}, "", err
		}
	}
	m := &jobModelMenu{crons: k, form: f, modelMenu: &modelMenu{
		menuFrame: menuFrame{act: actJobModel}, entries: entries, agent: -1, model: -1, current: now,
	}}
	if err := k.menus.begin(p.by.Conversation, m); err != nil {
		return cronPage{}, "", err
	}
	text, keyboard := m.view()
	return cronPage{text, keyboard}, "", nil
}

func (m *jobModelMenu) unchanged() string { return cronWho(m.form.job) }

func (m *jobModelMenu) store(ctx context.Context, _ orchestrator.Press) (said, short string, err error) {
	c := m.chosen
	m.form, err = m.crons.save(ctx, m.form, surely(func(j *orchestrator.Job) { j.Agent, j.Model, j.Effort = c.agent, c.model, c.effort }))
	if err != nil {
		return "", "", fmt.Errorf("choose the model of a job: %w", err)
	}
	return "", c.String(), nil
}

// leads implements leading.
func (m *jobModelMenu) leads() (string, tgapi.Keyboard) {
	page := m.crons.editPage(m.form)
	return page.text, page.keyboard
}
