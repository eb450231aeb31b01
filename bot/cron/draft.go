package cron

import (
	"context"
	"errors"
	"strings"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// draft is a new job that the user has not confirmed yet. It is stored in the database, so its buttons work after a
// restart.
type draft struct {
	Job *orchestrator.Job `json:"job,omitempty"` // nil after the user added or cancelled the job
}

// draftJob returns the job ID for a draft. The ID depends only on the nonce, so that adding a draft twice creates one
// job.
func draftJob(nonce string) orchestrator.JobID { return orchestrator.JobID("chat/" + nonce) }

func draftName(nonce string) string { return "cron:" + nonce }

func (s *Screen) saveDraft(ctx context.Context, nonce string, d draft) error {
	return message.SaveValue(ctx, s.o.Journal, draftName(nonce), d)
}

// loadDraft returns the job of a draft. It returns ErrNoJob if the draft does not exist or belongs to another
// conversation, and ErrRepeated if a user has already added or cancelled the job.
func (s *Screen) loadDraft(ctx context.Context, in orchestrator.ConversationID, nonce string) (orchestrator.Job,
	error) {
	d, found, err := message.LoadValue[draft](ctx, s.o.Journal, draftName(nonce))
	switch {
	case err != nil:
		return orchestrator.Job{}, err
	case !found || d.Job != nil && d.Job.Conversation != in:
		return orchestrator.Job{}, orchestrator.ErrNoJob
	case d.Job == nil:
		return orchestrator.Job{}, orchestrator.ErrRepeated
	}
	return *d.Job, nil
}

// draftPage returns the page that asks the user to add the new job.
func (s *Screen) draftPage(key string, j orchestrator.Job) (tgapi.Page, error) {
	p := s.o.Lang.Of(j.Conversation.Chat)
	st, err := s.o.Jobs.CheckJob(j)
	text := ""
	switch bad := (*orchestrator.BadJob)(nil); {
	case errors.As(err, &bad):
		text, st.Job = "⚠️ "+render.Cut(bad.Why, 500), j
	case err != nil:
		return tgapi.Page{}, err
	default:
		text = when(p, st)
	}
	lines := append([]string{p.Text("cron.new", render.Cut(st.Job.Name, nameShown)), text}, s.settings(st.Job)...)
	lines = append(lines, promptLines(st.Job)...)
	return tgapi.Page{Text: strings.Join(lines, "\n"), Keyboard: tgapi.Keyboard{
		{newButton(p.Text("cron.add"), opAdd, key, ""), newButton(p.Text("cron.change"), opEdit, key, "")},
		{newButton(p.Text("common.cancel"), opCancel, key, "")},
	}}, nil
}

// actOnDraft handles a button of a draft. It returns the new page, and a short notice for the user.
func (s *Screen) actOnDraft(ctx context.Context, p press, nonce string) (page tgapi.Page, short string, err error) {
	say := s.o.Lang.Of(p.by.Conversation.Chat)
	j, err := s.loadDraft(ctx, p.by.Conversation, nonce)
	if errors.Is(err, orchestrator.ErrRepeated) {
		st, err := s.o.Jobs.Job(ctx, draftJob(nonce), p.by.Conversation)
		if errors.Is(err, orchestrator.ErrNoJob) {
			return tgapi.Page{}, say.Text("cron.over"), nil
		}
		return s.jobPage(st), say.Text("cron.added-already"), err
	}
	if err != nil {
		return tgapi.Page{}, "", err
	}
	switch p.op {
	case opAdd:
		st, err := s.o.Jobs.AddJob(ctx, j)
		if err == nil {
			err = s.saveDraft(ctx, nonce, draft{})
		}
		return s.jobPage(st), say.Text("cron.added"), err
	case opCancel:
		return tgapi.Page{Text: say.Text("cron.cancelled-job", render.Cut(j.Name, nameShown))},
			say.Text("common.cancelled"), s.saveDraft(ctx, nonce, draft{})
	case opOpen:
		page, err = s.draftPage(p.key, j)
		return page, "", err
	case opEdit, opMore, opField, opValue, opModel:
		return s.actOnForm(ctx, p, form{key: p.key, by: p.by, job: j})
	}
	return tgapi.Page{}, say.Text("common.stale-button"), nil
}
