package bot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/orchestrator"
)

// reply takes a message that answers to one of ours: the reason of a denial, or the answer to a question. False
// if it is a prompt. What is taken is finished.
func (k *asking) reply(ctx context.Context, in *incoming) bool {
	ask, err := k.desk.AskAt(ctx, k.board.home(in.conv, in.replyTo), in.replyTo)
	switch {
	case errors.Is(err, orchestrator.ErrNoAsk):
		return false
	case errors.Is(err, orchestrator.ErrShutdown):
		return true // stays in the journal
	case err != nil:
		k.log.Error("look up what a reply is about", "update", in.update, "err", err)
		return k.say(ctx, in, "I could not look up what this answers to, so nothing was done with it. The log says what is wrong.")
	case !slices.Contains(ask.Approvers, in.person):
		return false
	}
	c, err := k.board.enter(ctx, ask)
	if err != nil {
		k.log.Error("look up what a reply is about", "update", in.update, "err", err)
		return k.say(ctx, in, "I could not look up what this answers to, so nothing was done with it. The log says what is wrong.")
	}
	return k.take(ctx, in, c, ask)
}

// next takes a message that answers to nothing from a person who pressed a button to say something of their own:
// it is what they were asked for. False if it is a prompt.
func (k *asking) next(ctx context.Context, in *incoming) bool {
	c := k.board.waiting(in.conv, in.person, k.now())
	if c == nil {
		return false
	}
	ask, err := k.desk.Ask(ctx, c.id, c.conv)
	switch {
	case errors.Is(err, orchestrator.ErrShutdown):
		return true // stays in the journal
	case err != nil:
		k.log.Error("look up what a message is about", "update", in.update, "err", err)
		return k.say(ctx, in, "I could not look up what this answers to, so nothing was done with it. The log says what is wrong.")
	case ask.State != orchestrator.AskOpen || !slices.Contains(ask.Approvers, in.person):
		return false
	}
	return k.take(ctx, in, c, ask)
}

func (k *asking) take(ctx context.Context, in *incoming, c *askCard, ask orchestrator.Ask) bool {
	k.board.mu.Lock()
	d := c.draft.clone()
	k.board.mu.Unlock()
	k.board.push(c)
	if ask.Approval != nil {
		return k.reason(ctx, in, c, ask, d)
	}
	return k.words(ctx, in, c, ask, d)
}

// waiting is the card of an open ask of a place that waits for a person's own words; of several the last one that
// was pressed; nil if there is none. Those of before a restart wait once they are shown again.
func (b *askBoard) waiting(in orchestrator.ConversationID, person orchestrator.PersonID, now time.Time) (last *askCard) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.cards {
		if c.place() == in && c.open() && c.draft.waits(person, now) && (last == nil || c.draft.Until.After(last.draft.Until)) {
			last = c
		}
	}
	return last
}

func (k *asking) say(ctx context.Context, in *incoming, text string) bool {
	k.closer.answer(ctx, in, text, nil)
	return true
}

// reason denies with the words of who was asked for them.
func (k *asking) reason(ctx context.Context, in *incoming, c *askCard, a orchestrator.Ask, d askDraft) bool {
	if !d.waits(in.person, k.now()) {
		return false
	}
	v := orchestrator.Verdict{Choice: orchestrator.Deny, Reason: in.text}
	if a.Approval.Deaf {
		return k.reprove(ctx, in, c, a, v)
	}
	return k.settle(ctx, in, c, a, v)
}

// reprove denies, and leaves the reason to be a prompt: this agent hears it in no other way. False when it is one.
// Should ductor die between the two it finds the ask denied by this message, and goes on from there.
func (k *asking) reprove(ctx context.Context, in *incoming, c *askCard, a orchestrator.Ask, v orchestrator.Verdict) bool {
	again := false
	_, _, err := k.board.change(ctx, c, func(d *askDraft) bool {
		again = d.applied(in.updates())
		return !again
	})
	if err != nil {
		k.log.Error("keep a reason", "update", in.update, "err", err)
		return k.say(ctx, in, "I could not keep this reason. Please send it again; the log says what is wrong.")
	}
	by := orchestrator.Press{Conversation: a.Conversation, Person: in.person} // the prompt finishes the updates
	now, err := k.verdict(ctx, c, press{message: in.replyTo, by: by}, askPress{id: a.ID, nonce: a.Nonce}, v)
	if err != nil && !(again && now.State == orchestrator.AskDenied && now.By == in.person) {
		return k.refuse(ctx, in, now, err)
	}
	in.context = "[You asked to use " + render.ShortenPlain(render.OneLine(a.Approval.Tool), render.NameLimit) + ": " +
		render.ShortenPlain(render.OneLine(a.Approval.Title), answerMax) + ". That was denied:]\n"
	return false
}

// settle decides by a reply.
func (k *asking) settle(ctx context.Context, in *incoming, c *askCard, a orchestrator.Ask, v orchestrator.Verdict) bool {
	p := press{
		message: in.replyTo,
		by:      orchestrator.Press{Conversation: a.Conversation, Person: in.person, Updates: in.updates()},
	}
	now, err := k.verdict(ctx, c, p, askPress{id: a.ID, nonce: a.Nonce}, v)
	if err == nil {
		return true
	}
	return k.refuse(ctx, in, now, err)
}

// refuse says why words decided nothing.
func (k *asking) refuse(ctx context.Context, in *incoming, now orchestrator.Ask, err error) bool {
	if errors.Is(err, orchestrator.ErrShutdown) {
		return true
	}
	text, _, err := askRefusal(now, err)
	if err != nil {
		k.log.Error("decide by a reply", "update", in.update, "err", err)
		text = "That did not work. The log says why."
	}
	return k.say(ctx, in, text)
}

// words answers the present question in own words.
func (k *asking) words(ctx context.Context, in *incoming, c *askCard, a orchestrator.Ask, d askDraft) bool {
	q := a.Questions[d.Question]
	secret := slices.ContainsFunc(a.Questions, func(q cli.Question) bool { return q.Secret })
	if secret {
		k.voice.remove(in.conv, in.message)
		k = k.forgetting()
	}
	if err := whyOver(a, k.now()); err != nil {
		if !secret && !d.waits(in.person, k.now()) {
			return false
		}
		text, _, _ := askRefusal(a, err)
		return k.say(ctx, in, text)
	}
	option := slices.IndexFunc(q.Options, func(o cli.Option) bool {
		return strings.EqualFold(strings.TrimSpace(o.Label), strings.TrimSpace(in.text))
	})
	if option < 0 && !takesWords(q) {
		return k.say(ctx, in, "This question takes no words of your own: choose one of its buttons.")
	}
	last := false
	d, _, err := k.board.change(ctx, c, func(d *askDraft) bool {
		if d.applied(in.updates()) {
			last = d.Question+1 == len(a.Questions)
			return false
		}
		if option >= 0 && !slices.Contains(d.Picks[d.Question], option) {
			d.toggle(q, option)
		} else if option < 0 {
			d.say(q, in.text)
		}
		d.View = ""
		last = d.forward(a)
		return true
	})
	if err != nil {
		k.log.Error("keep an answer", "update", in.update, "err", err)
		return k.say(ctx, in, "I could not keep this answer. Please send it again; the log says what is wrong.")
	}
	if last && complete(a.Questions, d) {
		return k.settle(ctx, in, c, a, orchestrator.Verdict{Choice: orchestrator.Answer, Answers: d.answers(a.Questions)})
	}
	k.closer.finish(ctx, in.updates())
	return true
}
