package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// cronDraft is a job that was understood and is not stored yet. It is kept in the journal, so its buttons work after
// a restart too.
type cronDraft struct {
	Job *orchestrator.Job `json:"job,omitempty"` // nil once it was added or cancelled
}

// cronAwaited is a message that somebody is to reply to with what a job is to have.
type cronAwaited struct {
	Key   string                `json:"key,omitempty"` // of the job or the draft; empty for none
	Field string                `json:"field,omitempty"`
	From  orchestrator.PersonID `json:"from,omitempty"`
	Until time.Time             `json:"until,omitzero"`
}

// draftJob is the id of the job that a draft becomes: adding it twice adds it once.
func draftJob(nonce string) orchestrator.JobID { return orchestrator.JobID("chat/" + nonce) }

func cronDraftKey(nonce string) string { return "cron:" + nonce }

func cronAwaitedKey(in orchestrator.ConversationID, message int) string {
	return "cron@" + string(in.Key()) + "/" + strconv.Itoa(message)
}

func (k *crons) keep(ctx context.Context, key string, what any) error {
	data, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("encode what is kept of a job: %w", err)
	}
	if err := k.journal.SaveCard(ctx, key, data); err != nil {
		return fmt.Errorf("keep what was said of a job: %w", err)
	}
	return nil
}

// kept reads what keep wrote into what; false if there is nothing.
func (k *crons) kept(ctx context.Context, key string, what any) (bool, error) {
	data, _, err := k.journal.LoadCard(ctx, key)
	if err != nil || len(data) == 0 {
		return false, err
	}
	if err := json.Unmarshal(data, what); err != nil {
		return false, fmt.Errorf("decode what is kept of a job: %w", err)
	}
	return true, nil
}

func (k *crons) saveDraft(ctx context.Context, nonce string, d cronDraft) error {
	return k.keep(ctx, cronDraftKey(nonce), d)
}

// loadDraft is the draft of a nonce. ErrNoJob for one of another conversation, ErrRepeated for one that is over.
func (k *crons) loadDraft(ctx context.Context, in orchestrator.ConversationID, nonce string) (orchestrator.Job, error) {
	var d cronDraft
	there, err := k.kept(ctx, cronDraftKey(nonce), &d)
	switch {
	case err != nil:
		return orchestrator.Job{}, err
	case !there || d.Job != nil && d.Job.Conversation != in:
		return orchestrator.Job{}, orchestrator.ErrNoJob
	case d.Job == nil:
		return orchestrator.Job{}, orchestrator.ErrRepeated
	}
	return *d.Job, nil
}

// draftPage shows what was understood, before it is stored.
func (k *crons) draftPage(key string, j orchestrator.Job) (cronPage, error) {
	st, err := k.jobs.CheckJob(j)
	text := ""
	switch bad := (*orchestrator.BadJob)(nil); {
	case errors.As(err, &bad): // its moment may be over by now
		text, st.Job = "⚠️ "+render.Cut(bad.Why, 500), j
	case err != nil:
		return cronPage{}, err
	default:
		text = cronWhen(st)
	}
	lines := append([]string{"⏰ New job: " + render.Cut(st.Job.Name, cronNameShown), text}, k.settings(st.Job)...)
	lines = append(lines, "", render.Cut(strings.TrimSpace(st.Job.Prompt), cronPromptShown))
	return cronPage{strings.Join(lines, "\n"), tgapi.Keyboard{
		{cronButton("✅ Add", cronAdd, key, ""), cronButton("✏️ Change", cronEdit, key, "")},
		{cronButton("✖ Cancel", cronCancel, key, "")},
	}}, nil
}

// actOnDraft does what the buttons below a draft say.
func (k *crons) actOnDraft(ctx context.Context, p press, cp cronPress, nonce string) (page cronPage, short string, err error) {
	j, err := k.loadDraft(ctx, p.by.Conversation, nonce)
	if errors.Is(err, orchestrator.ErrRepeated) {
		st, err := k.jobs.Job(ctx, draftJob(nonce), p.by.Conversation)
		if errors.Is(err, orchestrator.ErrNoJob) {
			return cronPage{}, cronOver, nil
		}
		return k.jobPage(st), "That was added already.", err
	}
	if err != nil {
		return cronPage{}, "", err
	}
	switch cp.op {
	case cronAdd:
		st, err := k.jobs.AddJob(ctx, j)
		if err == nil {
			err = k.saveDraft(ctx, nonce, cronDraft{})
		}
		return k.jobPage(st), "Added.", err
	case cronCancel:
		return cronPage{text: "Cancelled: " + render.Cut(j.Name, cronNameShown)}, "Cancelled.", k.saveDraft(ctx, nonce, cronDraft{})
	case cronOpen:
		page, err = k.draftPage(cp.key, j)
		return page, "", err
	case cronEdit, cronField, cronValue, cronModel:
		return k.actOnForm(ctx, p, cp, cronForm{key: cp.key, by: p.by, job: j})
	}
	return cronPage{}, render.StaleButton, nil
}

// wordsPatience is how long a page waits for words: a later message is a prompt.
const wordsPatience = 10 * time.Minute

// await has the next reply of a person to a message be what a job is to have.
func (k *crons) await(ctx context.Context, p press, f cronForm, field jobField) error {
	return k.keep(ctx, cronAwaitedKey(p.by.Conversation, p.message), cronAwaited{
		Key: f.key, Field: field.code, From: p.by.Person, Until: k.now().Add(wordsPatience),
	})
}

func (k *crons) awaitNothing(ctx context.Context, in orchestrator.ConversationID, message int) error {
	var a cronAwaited
	if there, err := k.kept(ctx, cronAwaitedKey(in, message), &a); err != nil || !there || a.Key == "" {
		return err
	}
	return k.keep(ctx, cronAwaitedKey(in, message), cronAwaited{})
}

// reply takes a message that answers to a page which waits for it. False if it is a prompt. What is taken is finished.
func (k *crons) reply(ctx context.Context, in *incoming) bool {
	if k.jobs == nil {
		return false
	}
	var a cronAwaited
	there, err := k.kept(ctx, cronAwaitedKey(in.conv, in.replyTo), &a)
	if err != nil {
		k.log.Error("look up what a reply is about", "update", in.update, "err", err)
		k.closer.answer(ctx, in, "I could not look up what this answers to, so nothing was done with it. The log says what is wrong.", nil)
		return true
	}
	field, known := jobFieldOf(a.Field)
	if !there || !known || field.read == nil || a.Key == "" || a.From != in.person || !k.now().Before(a.Until) {
		return false
	}
	page, err := k.written(ctx, in, a, field)
	bad := (*orchestrator.BadJob)(nil)
	switch {
	case errors.As(err, &bad):
		k.closer.answer(ctx, in, render.Cut(bad.Why, 1500)+"\n\nReply to the same message again, or press ‹ Back below it.", nil)
		return true
	case errors.Is(err, orchestrator.ErrNoJob), errors.Is(err, orchestrator.ErrRepeated), errors.Is(err, orchestrator.ErrJobConfigured):
		page = cronPage{text: cronGone}
	case err != nil:
		k.log.Error("change a job", "update", in.update, "err", err)
		page = cronPage{text: "I could not change the job. The log says what is wrong."}
	}
	k.closer.answer(ctx, in, page.text, page.keyboard)
	if err := k.awaitNothing(ctx, in.conv, in.replyTo); err != nil {
		k.log.Warn("forget what a reply was awaited for", "update", in.update, "err", err)
	}
	k.voice.unbutton(in.conv, in.replyTo)
	return true
}

// written changes a job by what a person wrote, and gives the page that goes on from there.
func (k *crons) written(ctx context.Context, in *incoming, a cronAwaited, field jobField) (cronPage, error) {
	f := cronForm{key: a.Key, by: orchestrator.Press{Conversation: in.conv, Person: in.person}, job: orchestrator.Job{Conversation: in.conv}}
	if _, draft := f.nonce(); !draft {
		st, err := k.find(ctx, in.conv, a.Key)
		if err != nil {
			return cronPage{}, err
		}
		f.job = st.Job
	}
	f, err := k.save(ctx, f, func(j *orchestrator.Job) error { return field.read(k.jobs, j, in.text) })
	if err != nil {
		return cronPage{}, err
	}
	if _, is := f.nonce(); is {
		return k.draftPage(f.key, f.job)
	}
	st, err := k.jobs.Job(ctx, f.job.ID, in.conv)
	return k.jobPage(st), err
}
