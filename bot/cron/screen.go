package cron

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// ModelMenu shows a menu of agents, models and efforts.
type ModelMenu interface {
	// ChooseModel returns the first page of a menu. The menu marks the choice in current. If current has no agent, it
	// marks the settings of the conversation. After the user has made a choice, the menu calls choose, at most once,
	// and then shows the page that back returns.
	ChooseModel(ctx context.Context, in orchestrator.ConversationID, current orchestrator.Status,
		choose func(context.Context, cli.Agent, cli.ModelID, cli.Effort) error, back func() tgapi.Page) (tgapi.Page,
		error)
}

// Options configures a Screen. All fields except Jobs are required.
type Options struct {
	Jobs    orchestrator.Jobs      // if nil, /cron only answers that there are no jobs
	Journal orchestrator.CardStore // stores drafts and expected replies
	Models  ModelMenu
	Now     func() time.Time
	Lang    *lang.Choices
	Log     *slog.Logger
}

// Screen implements the command /cron. A button contains a hash of the job's ID, and each press loads the job from the
// database. Buttons therefore never expire. A Screen is safe for concurrent use.
type Screen struct{ o Options }

// New returns a Screen.
func New(o Options) *Screen { return &Screen{o} }

// Command handles "/cron". Without arguments, it lists the jobs of the conversation. Otherwise, args describes a new
// job, and Command returns a page that asks the user to add it.
func (s *Screen) Command(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error) {
	switch {
	case s.o.Jobs == nil:
		return tgapi.Page{Text: s.o.Lang.Of(by.Conversation.Chat).Text("cron.no-jobs-kept")}, nil
	case args == "" || strings.EqualFold(args, "list"):
		return s.list(ctx, by.Conversation, 0)
	}
	return s.read(ctx, by, args)
}

// read parses the user's description of a new job, stores the job as a draft, and returns the draft's page.
func (s *Screen) read(ctx context.Context, by orchestrator.Press, request string) (tgapi.Page, error) {
	j, err := s.o.Jobs.ReadJob(by.Conversation, request)
	if err == nil {
		j.Conversation, j.Person = by.Conversation, by.Person
		_, err = s.o.Jobs.CheckJob(j)
	}
	if bad := (*orchestrator.BadJob)(nil); errors.As(err, &bad) {
		return tgapi.Page{Text: render.Cut(bad.Why, 1500)}, nil
	}
	if err != nil {
		return tgapi.Page{}, err
	}
	nonce := rand.Text()[:12] // each character has 5 random bits
	j.ID = draftJob(nonce)
	if err := s.saveDraft(ctx, nonce, draft{Job: &j}); err != nil {
		return tgapi.Page{}, err
	}
	return s.draftPage(draftKey(nonce), j)
}

// Press handles a button of this package. data is the button's data without the action.
func (s *Screen) Press(ctx context.Context, by orchestrator.Press, messageID int, data string) (tgapi.Answer, error) {
	say := s.o.Lang.Of(by.Conversation.Chat)
	button, ok := parseButton(data)
	if !ok || s.o.Jobs == nil {
		return tgapi.Stale(say), nil
	}
	p := press{pressed: button, by: by, message: messageID}
	if err := message.End(ctx, s.o.Journal, by); err != nil {
		return tgapi.Answer{}, err
	}
	if p.op == opNew {
		return s.showAnew(ctx, p)
	}
	page, short, err := s.act(ctx, p)
	bad := (*orchestrator.BadJob)(nil)
	switch {
	case errors.As(err, &bad):
		return tgapi.Answer{Text: bad.Why}, nil
	case errors.Is(err, orchestrator.ErrNoJob), errors.Is(err, orchestrator.ErrElsewhere):
		page, err = s.list(ctx, by.Conversation, 0)
		return tgapi.Answer{Text: say.Text("cron.gone"), Edit: page}, err
	case errors.Is(err, orchestrator.ErrJobsFull):
		return tgapi.Answer{Text: say.Text("cron.full")}, nil
	case errors.Is(err, orchestrator.ErrJobConfigured):
		return tgapi.Answer{Text: say.Text("cron.configured")}, nil
	}
	return tgapi.Answer{Text: short, Edit: page}, err
}

// showAnew sends the page of a job as a new message. The message with the pressed button stays unchanged.
func (s *Screen) showAnew(ctx context.Context, p press) (tgapi.Answer, error) {
	st, err := s.find(ctx, p.by.Conversation, p.key)
	if errors.Is(err, orchestrator.ErrNoJob) {
		return tgapi.Answer{Text: s.o.Lang.Of(p.by.Conversation.Chat).Text("cron.gone")}, nil
	}
	if err != nil {
		return tgapi.Answer{}, err
	}
	page := s.jobPage(st)
	content := message.Content{Text: render.Plain(page.Text), Keyboard: page.Keyboard}
	return tgapi.Answer{Messages: []orchestrator.Message{message.Compose(p.by.Conversation, content)}}, nil
}

// act handles a button. It returns the new page of the message and a short notice for the user. An empty page leaves
// the message unchanged.
func (s *Screen) act(ctx context.Context, p press) (page tgapi.Page, short string, err error) {
	say := s.o.Lang.Of(p.by.Conversation.Chat)
	in := p.by.Conversation
	if p.op == opList {
		page, err = s.list(ctx, in, p.number())
		return page, "", err
	}
	if nonce, is := p.draft(); is {
		return s.actOnDraft(ctx, p, nonce)
	}
	st, err := s.find(ctx, in, p.key)
	if err != nil {
		return tgapi.Page{}, "", err
	}
	id := st.Job.ID
	switch p.op {
	case opOpen:
	case opRun:
		st, short, err = s.run(ctx, st, p.by, p.arg)
	case opPause:
		st, err = s.o.Jobs.PauseJob(ctx, id, p.by)
		short = say.Text("cron.is-paused")
	case opResume:
		st, err = s.o.Jobs.ResumeJob(ctx, id, p.by)
		short = say.Text("cron.is-resumed")
	case opHistory:
		page, err = s.historyPage(ctx, st)
		return page, "", err
	case opDelete:
		return s.deletePage(st), "", nil
	case opDeleted:
		if err = s.o.Jobs.DeleteJob(ctx, id, p.by); err == nil {
			page, err = s.list(ctx, in, 0)
		}
		return page, say.Text("cron.deleted", render.Cut(st.Job.Name, 100)), err
	case opEdit, opMore, opField, opValue, opModel:
		return s.actOnForm(ctx, p, form{key: p.key, by: p.by, job: st.Job})
	default:
		return tgapi.Page{}, say.Text("common.stale-button"), nil
	}
	if err != nil {
		return tgapi.Page{}, "", err
	}
	return s.jobPage(st), short, nil
}

// run starts a job now, unless the job has run since its button was created. So a button that is pressed twice starts
// the job only once. runsBefore is the number of the job's runs when the button was created.
func (s *Screen) run(ctx context.Context, st orchestrator.JobStatus, by orchestrator.Press,
	runsBefore string) (orchestrator.JobStatus, string, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	now, err := s.o.Jobs.RunJob(ctx, st.Job.ID, by, runsBefore)
	switch {
	case errors.Is(err, orchestrator.ErrRepeated):
		now, err = s.o.Jobs.Job(ctx, st.Job.ID, st.Job.Conversation)
		return now, p.Text("cron.started-already"), err
	case errors.Is(err, orchestrator.ErrJobsFull):
		return st, p.Text("cron.runs-full"), nil
	case err != nil:
		return st, "", err
	case st.Open > 0:
		return now, p.Text("cron.started-next"), nil
	}
	return now, p.Text("cron.started"), nil
}

func (s *Screen) find(ctx context.Context, in orchestrator.ConversationID, key string) (orchestrator.JobStatus, error) {
	all, err := s.o.Jobs.Jobs(ctx, in)
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

func runsOf(st orchestrator.JobStatus) string { return strconv.Itoa(st.Runs + st.Open) }
