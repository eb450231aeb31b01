package bot

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"slices"
	"time"

	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/cli"
	"ductor/orchestrator"
)

// asking deals with what people do about asks: buttons and replies. A press or a reply that comes too late,
// from somebody else or from elsewhere changes nothing and is told so.
type asking struct {
	desk   Desk
	board  *askBoard
	closer *closer
	voice  voice
	now    func() time.Time
	log    *slog.Logger
}

// forgetting deals with what holds a secret: nothing of it is left in the journal.
func (k *asking) forgetting() *asking {
	secret := *k
	secret.closer = k.closer.forgetting()
	return &secret
}

// Short answers to presses.
const (
	askOthers    = "Somebody else is to decide this."
	askMovedOn   = "This had already moved on; nothing was changed by this press."
	askPickFirst = "Choose something first."
	askReadFirst = "Not all of it is shown here: open 📄 Full text first. Nothing was allowed."
	askNoText    = "There is nothing to allow here that you were shown. Nothing was allowed."
)

// press acts on a button below an ask and returns the short answer to it, and what is to be sent.
func (k *asking) press(ctx context.Context, p press, what string) (string, []orchestrator.Notice, error) {
	ap, ok := parseAskData(what)
	if !ok {
		return render.StaleButton, nil, nil
	}
	p.by.Conversation = k.board.home(p.by.Conversation, p.message)
	ask, err := k.desk.Ask(ctx, ap.id, p.by.Conversation)
	switch {
	case err != nil:
		return askRefusal(orchestrator.Ask{}, err)
	case subtle.ConstantTimeCompare([]byte(ask.Nonce), []byte(ap.nonce)) != 1:
		return render.StaleButton, nil, nil
	case !slices.Contains(ask.Approvers, p.by.Person):
		return askOthers, nil, nil
	}
	k.board.meet(p.by.Person, p.name)
	c, err := k.board.enter(ctx, ask)
	if err != nil {
		return "", nil, err
	}
	if err := k.board.found(ctx, c, p.message, ap.op); err != nil {
		return "", nil, err
	}
	if choice, is := ap.op.choice(); is {
		if said := k.unseen(c, ask, choice); said != "" {
			return said, nil, nil
		}
		return k.decide(ctx, c, p, ap, orchestrator.Verdict{Choice: choice})
	}
	if err := whyOver(ask, k.now()); err != nil {
		k.board.heal(c, ask, p.message)
		return askRefusal(ask, err)
	}
	if ap.op == askFull {
		return k.whole(ctx, c, ask, p)
	}
	return k.draft(ctx, c, ask, p, ap)
}

// whyOver says why nothing can be done about an ask any more.
func whyOver(a orchestrator.Ask, now time.Time) error {
	switch {
	case a.State == orchestrator.AskExpired, a.State == orchestrator.AskOpen && !now.Before(a.Expires):
		return orchestrator.ErrAskExpired
	case a.State == orchestrator.AskWithdrawn:
		return orchestrator.ErrAskWithdrawn
	case a.State != orchestrator.AskOpen:
		return orchestrator.ErrAskDecided
	}
	return nil
}

// decide hands a verdict to the desk, which says whether it counts.
func (k *asking) decide(ctx context.Context, c *askCard, p press, ap askPress, v orchestrator.Verdict) (string, []orchestrator.Notice, error) {
	now, err := k.verdict(ctx, c, p, ap, v)
	if err != nil {
		return askRefusal(now, err)
	}
	switch now.State {
	case orchestrator.AskAllowed:
		return "Allowed.", nil, nil
	case orchestrator.AskAnswered:
		return "Sent to the agent.", nil, nil
	}
	if now.Approval == nil {
		return "The agent is told that you do not answer.", nil, nil
	}
	return "Denied.", nil, nil
}

// verdict is decide, without words. The desk shows what came of it; where the chat showed something else than
// what is so, that is put right.
func (k *asking) verdict(ctx context.Context, c *askCard, p press, ap askPress, v orchestrator.Verdict) (orchestrator.Ask, error) {
	now, err := k.desk.Decide(ctx, ap.id, ap.nonce, p.by, v)
	k.board.heal(c, now, p.message)
	return now, err
}

// askRefusal says why nothing was changed; an error that people can do nothing about is returned.
func askRefusal(a orchestrator.Ask, err error) (string, []orchestrator.Notice, error) {
	switch {
	case errors.Is(err, orchestrator.ErrNoAsk), errors.Is(err, orchestrator.ErrElsewhere), errors.Is(err, orchestrator.ErrBadChoice):
		return render.StaleButton, nil, nil
	case errors.Is(err, orchestrator.ErrNotApprover):
		return askOthers, nil, nil
	case errors.Is(err, orchestrator.ErrAskExpired):
		return "Too late: the time to decide this is over, and it was denied.", nil, nil
	case errors.Is(err, orchestrator.ErrAskWithdrawn):
		return "Too late: the agent no longer waits for this.", nil, nil
	case errors.Is(err, orchestrator.ErrAskDecided):
		return "This was decided before: " + string(a.State) + ".", nil, nil
	}
	return "", nil, err
}

// unseen says why an ask cannot be allowed by who was not shown all of it; empty if it can.
func (k *asking) unseen(c *askCard, a orchestrator.Ask, choice orchestrator.Choice) string {
	if a.State != orchestrator.AskOpen || a.Approval == nil || choice == orchestrator.Deny {
		return ""
	}
	k.board.mu.Lock()
	opened := c.draft.Opened
	k.board.mu.Unlock()
	switch {
	case whyShut(a) != "":
		return askNoText
	case !opened && unreadFor(a, choice):
		return askReadFirst
	}
	return ""
}

// whole is everything there is to decide on, as messages of its own. It is sent once.
func (k *asking) whole(ctx context.Context, c *askCard, a orchestrator.Ask, p press) (string, []orchestrator.Notice, error) {
	again := false
	_, _, err := k.board.change(ctx, c, func(d *askDraft) bool {
		if d.applied(p.by.Updates) { // ductor died before it was recorded that this press was dealt with
			return false
		}
		again = d.Opened
		d.Opened = true
		return !again
	})
	if err != nil {
		return "", nil, err
	}
	if again {
		return "The full text is in the chat already.", nil, nil
	}
	var letters []orchestrator.Notice
	for _, t := range askWhole(a) {
		l, err := letterOf(a.Conversation, letterContent{Text: t.Text, Entities: t.Entities, ReplyTo: p.message})
		if err != nil {
			return "", nil, err
		}
		letters = append(letters, l)
	}
	return "", letters, nil
}

// draft moves an ask on by a press that decides nothing yet, or answers the last of its questions.
func (k *asking) draft(ctx context.Context, c *askCard, a orchestrator.Ask, p press, ap askPress) (string, []orchestrator.Notice, error) {
	said, last := render.StaleButton, false
	d, _, err := k.board.change(ctx, c, func(d *askDraft) (ok bool) {
		if d.applied(p.by.Updates) { // ductor died before it was recorded that this press was dealt with
			said, last = "", ap.op == askNext || ap.op == askOption && !a.Questions[d.Question].Multi
			return false
		}
		if a.Approval != nil {
			ok = k.turnApproval(d, a, p, ap.op)
		} else {
			said, last, ok = k.turnQuestion(d, a, p, ap)
		}
		if ok {
			said = ""
		}
		return ok
	})
	if err != nil {
		return "", nil, err
	}
	if last && complete(a.Questions, d) {
		return k.decide(ctx, c, p, ap, orchestrator.Verdict{Choice: orchestrator.Answer, Answers: d.answers(a.Questions)})
	}
	return said, nil, nil
}

// turnApproval changes what the message of an approval shows.
func (k *asking) turnApproval(d *askDraft, a orchestrator.Ask, p press, op askOp) bool {
	switch {
	case op == askShowSession && a.SessionRule != "", op == askShowPattern && a.Rule != "":
		d.View = op
	case op == askReason:
		d.listen(askReason, p.by.Person, k.now())
	case op == askBack, op == askHere:
		d.View, d.From = "", 0
	default:
		return false
	}
	return true
}

// turnQuestion chooses, goes on and goes back. last says that all questions may be answered now.
func (k *asking) turnQuestion(d *askDraft, a orchestrator.Ask, p press, ap askPress) (said string, last, ok bool) {
	q := a.Questions[d.Question]
	switch ap.op {
	case askBack:
		if d.View == "" {
			d.Question = max(d.Question-1, 0)
		}
		d.View, d.From = "", 0
		return "", false, true
	case askHere:
		return "", false, true
	}
	switch {
	case ap.question != d.Question:
		return askMovedOn, false, false
	case ap.op == askWords && takesWords(q):
		d.listen(askWords, p.by.Person, k.now())
		return "", false, true
	case ap.op == askOption && ap.option < len(q.Options):
		d.View = ""
		d.toggle(q, ap.option)
		if q.Multi {
			return "", false, true
		}
	case ap.op == askNext && len(d.answer(d.Question, q)) > 0:
		d.View = ""
	case ap.op == askNext:
		return askPickFirst, false, false
	default:
		return render.StaleButton, false, false
	}
	return "", d.forward(a), true
}

// forward goes to the next question; true if there is none.
func (d *askDraft) forward(a orchestrator.Ask) bool {
	if d.Question+1 == len(a.Questions) {
		return true
	}
	d.Question++
	return false
}

func complete(questions []cli.Question, d askDraft) bool {
	for i, q := range questions {
		if len(d.answer(i, q)) == 0 {
			return false
		}
	}
	return true
}

// found takes note of the message that a button was pressed below: one that was given up as lost is there.
func (b *askBoard) found(ctx context.Context, c *askCard, message int, op askOp) error {
	b.mu.Lock()
	notice := 0
	lost := c.state == orchestrator.Unknown && (c.message != message || op == askHere)
	if lost && c.message > 0 && c.message != message {
		notice = c.message
	}
	busy := c.busy // with the notice, perhaps: then that stands for the ask
	b.mu.Unlock()
	if !lost || busy || message <= 0 {
		return nil
	}
	if notice != 0 {
		b.removeNotice(c, notice)
	}
	b.mu.Lock()
	c.shown = ""
	b.mu.Unlock()
	if err := b.move(ctx, c, orchestrator.Sent, message); err != nil {
		return err
	}
	b.push(c)
	return nil
}

// removeNotice takes a notice away that turned out to be wrong.
func (b *askBoard) removeNotice(c *askCard, message int) {
	b.out.Go(context.Background(), outbox.Call{
		Chat: outbox.ChatOf(c.conv.Chat), Priority: outbox.Housekeeping, Key: "ask/" + string(c.id) + "/notice", Idempotent: true,
		Run: func(ctx context.Context) error { return b.client.Delete(ctx, c.conv.Chat, message) },
	}, func(err error) {
		if err != nil {
			c.log.Warn("take a notice away", "err", err)
		}
	})
}

// heal shows how an ask that is over stands where a button was pressed that should no longer be there.
func (b *askBoard) heal(c *askCard, a orchestrator.Ask, message int) {
	if a.ID != c.id || a.State == orchestrator.AskOpen || message <= 0 {
		return
	}
	b.mu.Lock()
	c.ask = a
	own := c.message == message
	if own {
		c.shown = ""
	}
	b.mu.Unlock()
	if !own {
		b.out.Go(context.Background(), outbox.Call{
			Chat: outbox.ChatOf(c.conv.Chat), Delivery: outbox.Newest, Priority: outbox.Housekeeping, Key: "ask/" + string(c.id) + "/other", Idempotent: true,
			Run: func(ctx context.Context) error {
				t, _ := drawAsk(a, askDraft{}, "")
				return b.client.Edit(ctx, c.conv.Chat, message, t, nil)
			},
		}, nil)
	}
	b.push(c)
}
