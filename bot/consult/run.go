package consult

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/side"
)

// asked is a question in progress. A message in the chat shows the progress.
type asked struct {
	s       *Screen
	in      orchestrator.ConversationID
	by      orchestrator.PersonID
	id      string
	q       question
	message *message.Message
	began   time.Time

	mu    sync.Mutex
	steps []orchestrator.GroupStep
	state state
	why   string // reason of the failure, as shown to the user; set if state is failed
}

// state is the progress of a question.
type state int

const (
	thinking state = iota
	answered
	failed
)

// begin starts a question. In one transaction, it marks the updates of the question as handled, and stores the message
// that shows the question's progress. If ductor restarts before the answer, the next process changes this message to a
// note about the restart.
func (s *Screen) begin(ctx context.Context, by orchestrator.Press, q question) error {
	p := s.o.Lang.Of(by.Conversation.Chat)
	q.Taken = 0
	if len(q.Text) > maxQuestion {
		q.Text = cli.Shorten(q.Text, maxQuestion)
	}
	r := &asked{s: s, in: by.Conversation, by: by.Person, id: s.o.NewID(), q: q, began: s.o.Now()}
	if err := s.save(ctx, r.in, r.id, q); err != nil {
		return err
	}
	r.message = s.o.Messages.Early(message.Spec{
		Key: keyOf(r.in, r.id), To: r.in, Content: func(context.Context) (message.Content, error) {
			return r.content(), nil
		},
	})
	row, _ := r.message.Keep(r.noAnswer(p.Text("consult.restarted", r.who())))
	// Register the question before its message appears, so that a user who sees the message can stop the question.
	asking, end := s.o.Consults.Begin(context.WithoutCancel(ctx), r.in)
	stored := s.o.Finish(ctx, by.Updates, row)
	if !stored { // the bot handles the updates again later, and asks the question then
		r.fail(p.Text("updates.not-stored"))
		end()
	}
	r.message.Kept(stored)
	if stored {
		s.o.Beside(func(ctx context.Context) { r.run(ctx, asking, end) })
	}
	return nil
}

// run waits for the answer and sends it. /abort cancels askContext, and a stop of ductor cancels ctx. In the latter
// case, run leaves the progress message unchanged, and ductor changes it after the restart.
func (r *asked) run(ctx, askContext context.Context, end func()) {
	defer context.AfterFunc(ctx, end)()
	answers, err := r.ask(askContext)
	if cause := context.Cause(askContext); err != nil && cause != nil {
		err = cause
	}
	end()
	if ctx.Err() != nil || errors.Is(err, orchestrator.ErrShutdown) {
		return
	}
	rows := r.s.compose(ctx, r.in, r.id, r.q, answers)
	if err != nil && !errors.Is(err, orchestrator.ErrNoGroup) {
		r.fail(r.sentence(r.who(), err))
	} else {
		r.set(func() { r.state = answered })
		if c, ok := r.failures(answers, err); ok {
			if len(rows) > 0 {
				c.ReplyTo = 0
			}
			rows = append(rows, message.Compose(r.in, c))
		}
	}
	last, keep := r.message.Keep(r.last())
	if keep {
		rows = append(rows, last)
	}
	err = r.s.o.Journal.FinishUpdates(ctx, nil, rows...)
	if err != nil {
		r.s.o.Log.Error("an answer of a model could not be stored", "question", r.id, "err", err)
		r.fail(r.s.o.Lang.Of(r.in.Chat).Text("consult.not-stored"))
	}
	if keep {
		r.message.Kept(err == nil)
	} else {
		r.message.Update(outbox.Awaited)
	}
	r.s.o.Messages.Wake()
}

// ask sends the question to the models and returns their answers. If it returns an error, it also returns the answers
// that it already got.
func (r *asked) ask(ctx context.Context) ([]orchestrator.GroupStep, error) {
	c := r.s.o.Consults
	if r.q.isGroup() {
		all, err := c.Group(ctx, r.q.group(r.in, r.by), r.step)
		return append(all.Steps, all.Conclusion), err
	}
	a, err := c.Ask(ctx, r.q.one(r.in, r.by))
	return []orchestrator.GroupStep{{Model: a.Model, Answer: a, Err: err}}, err
}

func (r *asked) step(s orchestrator.GroupStep) {
	r.set(func() { r.steps = append(r.steps, s) })
	r.message.Update(outbox.Awaited)
}

func (r *asked) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *asked) fail(why string) { r.set(func() { r.state, r.why = failed, why }) }

// who returns the name of the model, or a text such as "the group" if the question has several models.
func (r *asked) who() string {
	p := r.s.o.Lang.Of(r.in.Chat)
	if r.q.isGroup() {
		return p.Text("consult.the-group")
	}
	return r.s.name(p, r.q.Models[0])
}

// content returns the current content of the progress message.
func (r *asked) content() message.Content {
	p := r.s.o.Lang.Of(r.in.Chat)
	r.mu.Lock()
	state, why := r.state, r.why
	r.mu.Unlock()
	switch state {
	case answered:
		c := r.last()
		c.Lifecycle = message.DeleteWhenDone
		return c
	case failed:
		return r.noAnswer(why)
	}
	lines := []string{p.Text("consult.asking", r.who())}
	switch {
	case r.q.isGroup():
		lines = append(lines, r.progress()...)
	case !side.ReadsFiles(r.q.Models[0].Agent):
		lines = append(lines, p.Text("consult.asking-without-files", render.AgentName(p, r.q.Models[0].Agent)))
	}
	return message.Content{
		Text: render.Plain(strings.Join(lines, "\n")), ReplyTo: r.q.ReplyTo, Lifecycle: message.Growing,
		Keyboard: tgapi.Keyboard{r.s.button(p, "bot.stop", opStop, r.id)},
	}
}

// last returns the final content of the progress message. Users see it only if Telegram does not allow the bot to
// delete the message.
func (r *asked) last() message.Content {
	r.mu.Lock()
	state, why := r.state, r.why
	r.mu.Unlock()
	if state == failed {
		return r.noAnswer(why)
	}
	return message.Content{Text: render.Plain(r.s.o.Lang.Of(r.in.Chat).Text("consult.answered-below", r.who())),
		ReplyTo: r.q.ReplyTo}
}

func (r *asked) noAnswer(why string) message.Content {
	return message.Content{Text: render.Plain(why), ReplyTo: r.q.ReplyTo,
		Keyboard: tgapi.Keyboard{r.s.button(r.s.o.Lang.Of(r.in.Chat), "consult.again", opAgain, r.id)}}
}

// failures returns a message that lists each failed model of a group, with the reason. If the group has reached no
// conclusion, the message has a button that repeats the question. failures returns false if there was no failure. err
// is the error of ask.
func (r *asked) failures(steps []orchestrator.GroupStep, err error) (message.Content, bool) {
	p := r.s.o.Lang.Of(r.in.Chat)
	var lines []string
	concluded := err == nil
	for _, step := range steps {
		if step.Err == nil {
			continue
		}
		name := r.s.name(p, step.Model)
		head := "⚠️ " + name
		if step.Round > r.q.Rounds {
			head, concluded = p.Text("consult.concludes", name), false
		}
		lines = append(lines, head+": "+r.sentence(name, step.Err))
	}
	if err != nil {
		lines = append(lines, r.sentence(r.who(), err))
	}
	c := r.noAnswer(strings.Join(lines, "\n"))
	if concluded {
		c.Silent, c.Keyboard = true, nil
	}
	return c, len(lines) > 0
}

// progress describes the state of each model of a group, in one line per model.
func (r *asked) progress() (lines []string) {
	p := r.s.o.Lang.Of(r.in.Chat)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.q.Models {
		line := "⏳ " + r.s.name(p, m)
		for _, s := range r.steps {
			switch {
			case s.Model != m || s.Round > r.q.Rounds:
			case s.Err != nil:
				line = "⚠️ " + r.s.name(p, m) + ": " + render.Cut(r.sentence(r.s.name(p, m), s.Err), 200)
			case s.Round == r.q.Rounds:
				line = "✅ " + r.s.name(p, m)
			default:
				line = "⏳ " + r.s.name(p, m) + ", " + p.Text("consult.round", s.Round+1)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// sentence describes an error for users. who is the model that failed, or the group.
func (r *asked) sentence(who string, err error) string {
	p := r.s.o.Lang.Of(r.in.Chat)
	var failure *cli.Failure
	switch {
	case errors.Is(err, cli.ErrAborted):
		return p.Text("consult.stopped")
	case errors.As(err, &failure):
		return failure.Sentence(p)
	case errors.Is(err, side.ErrTooLate):
		return p.Text("consult.too-late", who)
	case errors.Is(err, side.ErrNoText):
		return p.Text("consult.no-text", who)
	case errors.Is(err, orchestrator.ErrTooManyConsults):
		return p.Text("consult.too-many")
	case errors.Is(err, orchestrator.ErrNoConsult), errors.Is(err, orchestrator.ErrNoSession):
		return p.Text("consult.forgotten")
	case errors.Is(err, orchestrator.ErrNoGroup):
		return p.Text("consult.group-failed")
	}
	r.s.o.Log.Error("a question to a model failed", "question", r.id, "err", err)
	return p.Text("consult.failed", who)
}
