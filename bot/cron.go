package bot

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// cronJournal is what /cron needs of a Journal: it keeps drafts of jobs by key.
type cronJournal interface {
	SaveCard(ctx context.Context, key string, content []byte) error
	LoadCard(ctx context.Context, key string) ([]byte, []orchestrator.CardPart, error)
}

// crons is /cron: what people do with jobs. Its buttons name the job they act on and show it as it stands by then, so they
// work after a restart too, and one of an old message does what it says.
type crons struct {
	jobs    orchestrator.Jobs // nil: none are kept
	desk    Desk
	journal cronJournal
	closer  *closer
	mail    mail
	voice   voice
	menus   *menus
	now     func() time.Time
	random  io.Reader
	log     *slog.Logger
}

// cronPage is what a message of /cron shows.
type cronPage struct {
	text     string
	keyboard tgapi.Keyboard
}

const (
	cronNoJobs = "Jobs are not kept here."
	cronGone   = "That job is no longer there."
	cronFull   = "There are too many jobs here already. Delete one first."
	cronOver   = "This was cancelled or deleted already. /cron shows what there is."
)

// start answers "/cron": it lists the jobs, or shows what it understood of a request before that is stored.
func (k *crons) start(ctx context.Context, r request) error {
	switch {
	case k.jobs == nil:
		k.closer.answer(ctx, r.in, cronNoJobs, nil)
		return nil
	case r.args == "" || strings.EqualFold(r.args, "list"):
		page, err := k.list(ctx, r.in.conv, 0)
		if err == nil {
			k.closer.answer(ctx, r.in, page.text, page.keyboard)
		}
		return err
	}
	page, err := k.read(ctx, r)
	if err == nil {
		k.closer.answer(ctx, r.in, page.text, page.keyboard)
	}
	return err
}

// read makes a draft of a request.
func (k *crons) read(ctx context.Context, r request) (cronPage, error) {
	j, err := k.jobs.ReadJob(r.args)
	if err == nil {
		j.Conversation, j.Person = r.in.conv, r.in.person
		_, err = k.jobs.CheckJob(j)
	}
	if bad := (*orchestrator.BadJob)(nil); errors.As(err, &bad) {
		return cronPage{text: render.Cut(bad.Why, 1500)}, nil
	}
	if err != nil {
		return cronPage{}, err
	}
	var raw [9]byte
	if _, err := io.ReadFull(k.random, raw[:]); err != nil {
		return cronPage{}, fmt.Errorf("make a nonce: %w", err)
	}
	nonce := base64.RawURLEncoding.EncodeToString(raw[:])
	j.ID = draftJob(nonce)
	if err := k.saveDraft(ctx, nonce, cronDraft{Job: &j}); err != nil {
		return cronPage{}, err
	}
	return k.draftPage(draftKey(nonce), j)
}

// press acts on a button and returns the short answer to it, and what is to be sent.
func (k *crons) press(ctx context.Context, p press, what string) (string, []orchestrator.Notice, error) {
	cp, ok := parseCronData(what)
	if !ok || k.jobs == nil {
		return render.StaleButton, nil, nil
	}
	if cp.op == cronNew {
		return k.anew(ctx, p, cp)
	}
	page, short, err := k.act(ctx, p, cp)
	bad := (*orchestrator.BadJob)(nil)
	switch {
	case errors.As(err, &bad):
		return render.Cut(bad.Why, 190), nil, nil
	case errors.Is(err, orchestrator.ErrNoJob), errors.Is(err, orchestrator.ErrElsewhere):
		if page, err = k.list(ctx, p.by.Conversation, 0); err != nil {
			return "", nil, err
		}
		short = cronGone
	case errors.Is(err, orchestrator.ErrJobsFull):
		return cronFull, nil, nil
	case errors.Is(err, orchestrator.ErrJobConfigured):
		return "This job is in the configuration file; change it there.", nil, nil
	case err != nil:
		return "", nil, err
	}
	if page.text != "" {
		k.voice.edit(p.by.Conversation, p.message, page.text, page.keyboard)
	}
	return short, nil, nil
}

// anew shows a job in a new message: what the old one says is to stay.
func (k *crons) anew(ctx context.Context, p press, cp cronPress) (string, []orchestrator.Notice, error) {
	st, err := k.find(ctx, p.by.Conversation, cp.key)
	if errors.Is(err, orchestrator.ErrNoJob) {
		return cronGone, nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	page := k.jobPage(st)
	letter, err := k.mail.compose(p.by.Conversation, page.text, page.keyboard, 0)
	return "", []orchestrator.Notice{letter}, err
}

// act does what a button says, and gives what its message shows then; an empty page leaves it as it is.
func (k *crons) act(ctx context.Context, p press, cp cronPress) (page cronPage, short string, err error) {
	in := p.by.Conversation
	if cp.op == cronList {
		page, err = k.list(ctx, in, cp.number())
		return page, "", err
	}
	if nonce, is := cp.draft(); is {
		return k.actOnDraft(ctx, p, cp, nonce)
	}
	st, err := k.find(ctx, in, cp.key)
	if err != nil {
		return cronPage{}, "", err
	}
	id := st.Job.ID
	switch cp.op {
	case cronOpen:
	case cronRun:
		st, short, err = k.run(ctx, st, p.by, cp.arg)
	case cronPause:
		st, err = k.jobs.PauseJob(ctx, id, p.by)
		short = "Paused."
	case cronResume:
		st, err = k.jobs.ResumeJob(ctx, id, p.by)
		short = "It runs again."
	case cronHistory:
		page, err = k.historyPage(ctx, st)
		return page, "", err
	case cronDelete:
		return k.deletePage(st), "", nil
	case cronDeleted:
		if err = k.jobs.DeleteJob(ctx, id, p.by); err == nil {
			page, err = k.list(ctx, in, 0)
		}
		return page, "Deleted: " + render.Cut(st.Job.Name, 100), err
	case cronEdit, cronField, cronValue, cronModel:
		return k.actOnForm(ctx, p, cp, cronForm{key: cp.key, by: p.by, job: st.Job})
	default:
		return cronPage{}, render.StaleButton, nil
	}
	if err != nil {
		return cronPage{}, "", err
	}
	return k.jobPage(st), short, nil
}

// run has a job run now. The button says how many runs there were as it was made, so pressing it twice runs once.
func (k *crons) run(ctx context.Context, st orchestrator.JobStatus, by orchestrator.Press, count string) (orchestrator.JobStatus, string, error) {
	now, err := k.jobs.RunJob(ctx, st.Job.ID, by, count)
	switch {
	case errors.Is(err, orchestrator.ErrRepeated):
		now, err = k.jobs.Job(ctx, st.Job.ID, st.Job.Conversation)
		return now, "That was started already.", err
	case errors.Is(err, orchestrator.ErrJobsFull):
		return st, "Too many runs of it wait already.", nil
	case err != nil:
		return st, "", err
	case st.Open > 0:
		return now, "It runs after what runs of it.", nil
	}
	return now, "It runs now.", nil
}

// find is the job that a button names.
func (k *crons) find(ctx context.Context, in orchestrator.ConversationID, key string) (orchestrator.JobStatus, error) {
	all, err := k.jobs.Jobs(ctx, in)
	if err != nil {
		return orchestrator.JobStatus{}, err
	}
	for _, st := range all {
		if jobKey(st.Job.ID) == key {
			return st, nil
		}
	}
	return orchestrator.JobStatus{}, orchestrator.ErrNoJob
}

// runsOf counts what a job was asked for so far.
func runsOf(st orchestrator.JobStatus) string { return strconv.Itoa(st.Runs + st.Open) }
