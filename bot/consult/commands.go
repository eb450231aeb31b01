package consult

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/cli/naming"
	"ductor/orchestrator"
)

// Consult handles "/consult" and "/group". If the first word of a.Args names models, Consult asks these models.
// Otherwise, "/consult" asks the same model as the last time, and "/group" asks the configured models. A question to
// several models first needs a confirmation: Consult returns a page with the estimated cost and a button that asks the
// models.
//
// If Consult returns an empty page, it has asked the question and marked the updates as handled. Otherwise, the caller
// must show the page.
func (s *Screen) Consult(ctx context.Context, a Asked) (tgapi.Page, error) {
	in := a.By.Conversation
	p := s.o.Lang.Of(in.Chat)
	names, rest := splitModels(a.Args)
	if a.Group {
		names, rest = nil, strings.TrimSpace(a.Args)
		for _, name := range s.o.Group() {
			names = append(names, namedModel{name: name})
		}
	}
	if rest == "" && (a.Group || len(names) == 0) {
		return s.help(ctx, in)
	}
	q := question{Text: rest, Rounds: 1, ReplyTo: a.Message}
	problem, err := s.find(ctx, in, names, &q)
	if err == nil && a.Group && len(names) == 0 {
		err = s.defaultPanel(ctx, in, &q)
	}
	switch {
	case err != nil:
		return tgapi.Page{}, err
	case problem != nil && len(q.Models) == 0 && !a.Group && problem.Kind == naming.Unknown && problem.Near == "":
		return s.askLast(ctx, a, problem)
	case problem != nil:
		return tgapi.Page{Text: s.o.Models.WhyNot(p, problem)}, nil
	case a.Group && len(q.Models) < orchestrator.GroupLeast:
		return tgapi.Page{Text: p.Text("consult.no-group")}, nil
	case len(q.Models) > orchestrator.GroupMost:
		return tgapi.Page{Text: p.Text("consult.large-group", orchestrator.GroupMost)}, nil
	case q.Text == "":
		return tgapi.Page{Text: p.Text("consult.no-question", s.nameAll(p, q.Models))}, nil
	}
	q.Text = a.Context + q.Text
	if q.isGroup() {
		return s.propose(ctx, in, q)
	}
	return tgapi.Page{}, s.begin(ctx, a.By, q)
}

// namedModel is a word of a command that may name a model, or may be the first word of the question. In "/consult
// codex, gemini why …", the word gemini names a model. In "/consult codex, why …", the word why begins the question.
//
// The field question contains the command from this word on. It is empty if no space precedes the word, because the
// word then cannot begin a question.
type namedModel struct{ name, question string }

// splitModels splits the arguments of a command into the names of models, for example "codex" or "codex, gemini", and
// the question.
func splitModels(args string) (names []namedModel, rest string) {
	rest = strings.TrimSpace(args)
	question := ""
	for more := true; more && rest != ""; {
		end := strings.IndexAny(rest, ", \t\n")
		if end < 0 {
			end = len(rest)
		}
		names = append(names, namedModel{strings.TrimPrefix(rest[:end], "@"), question})
		if rest, more = strings.CutPrefix(strings.TrimSpace(rest[end:]), ","); more {
			if question = strings.TrimSpace(rest); question == rest {
				question = ""
			}
			rest = strings.TrimSpace(rest)
		}
	}
	return names, rest
}

// find adds the named models to the question. It stops at the first name with a problem, and returns this problem.
func (s *Screen) find(ctx context.Context, in orchestrator.ConversationID, names []namedModel,
	q *question) (*naming.Problem, error) {
	for _, n := range names {
		c, problem, err := s.o.Models.Find(ctx, in, n.name)
		switch {
		case err != nil:
			return nil, err
		case problem == nil || problem.Chosen():
			q.Models = append(q.Models, orchestrator.ModelChoice(c))
		case n.question != "" && problem.Kind == naming.Unknown && problem.Near == "":
			q.Text = n.question
			return nil, nil
		default:
			return problem, nil
		}
	}
	return nil, nil
}

// askLast handles a command that names no model, and asks the same model as the last time. If no model was asked
// before, askLast explains why the first word of the command names no model.
func (s *Screen) askLast(ctx context.Context, a Asked, unknown *naming.Problem) (tgapi.Page, error) {
	last, err := s.o.Consults.Last(ctx, a.By.Conversation, "")
	if errors.Is(err, orchestrator.ErrNoConsult) || !strings.ContainsAny(strings.TrimSpace(a.Args), " \n") {
		return tgapi.Page{Text: s.o.Models.WhyNot(s.o.Lang.Of(a.By.Conversation.Chat), unknown)}, nil
	}
	if err != nil {
		return tgapi.Page{}, err
	}
	return tgapi.Page{}, s.begin(ctx, a.By, question{Models: []orchestrator.ModelChoice{last},
		Text: a.Context + strings.TrimSpace(a.Args), ReplyTo: a.Message})
}

// help explains the command. It also mentions the model that gets a question if the user names none.
func (s *Screen) help(ctx context.Context, in orchestrator.ConversationID) (tgapi.Page, error) {
	p := s.o.Lang.Of(in.Chat)
	text := p.Text("consult.help")
	last, err := s.o.Consults.Last(ctx, in, "")
	if errors.Is(err, orchestrator.ErrNoConsult) {
		return tgapi.Page{Text: text}, nil
	}
	return tgapi.Page{Text: text + "\n" + p.Text("consult.last", s.name(p, last))}, err
}

// Reply handles a reply to the message with the given ID. If this message contains a model's answer, Reply asks the
// model again. Otherwise, it returns false.
func (s *Screen) Reply(ctx context.Context, a Asked, to int) (bool, error) {
	if !s.Offered() || !a.By.May(orchestrator.ActAsChat) || strings.TrimSpace(a.Args) == "" {
		return false, nil
	}
	m, err := s.o.Journal.MessageAt(ctx, a.By.Conversation, to)
	if err != nil {
		return false, fmt.Errorf("find an answer: %w", err)
	}
	id, session, is := adviceOf(m.Key)
	if !is {
		return false, nil
	}
	var model orchestrator.ModelChoice
	if id != "" {
		entry, found := s.o.Entries.Entry(ctx, a.By.Conversation, id)
		model, session, err = modelOf(entry), string(entry.Session), found
	} else {
		model, err = s.o.Consults.Last(ctx, a.By.Conversation, session)
	}
	if err != nil {
		return true, s.refuse(ctx, a, err)
	}
	return true, s.begin(ctx, a.By, question{Session: session, Models: []orchestrator.ModelChoice{model}, Text: a.Args,
		ReplyTo: a.Message})
}

func modelOf(t orchestrator.Turn) orchestrator.ModelChoice {
	return orchestrator.ModelChoice{Agent: t.Agent, Model: t.Model, Effort: t.Wants.Effort}
}

// refuse handles an error that occurred when ductor loaded the answer to which the user replied. If this answer no
// longer exists, refuse tells the user that the model cannot be asked again. It returns any other error.
func (s *Screen) refuse(ctx context.Context, a Asked, err error) error {
	switch {
	case errors.Is(err, orchestrator.ErrNoTurn), errors.Is(err, orchestrator.ErrNoSession),
		errors.Is(err, orchestrator.ErrElsewhere), errors.Is(err, orchestrator.ErrNoConsult):
	default:
		return err
	}
	gone := message.Content{Text: render.Plain(s.o.Lang.Of(a.By.Conversation.Chat).Text("consult.forgotten")),
		ReplyTo: a.Message}
	s.o.Finish(ctx, a.By.Updates, message.Compose(a.By.Conversation, gone))
	return nil
}

// Press handles a button of this package. messageID identifies the message with the button, and data is the button's
// data without the action.
func (s *Screen) Press(ctx context.Context, by orchestrator.Press, messageID int, data string) (tgapi.Answer, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	stale := tgapi.Stale(p)
	op, id, _ := strings.Cut(data, ":")
	switch {
	case op == "" || len(by.Updates) == 0 || !s.Offered():
		return stale, nil
	case op == opGive:
		return s.give(ctx, by, messageID, id)
	case !by.May(orchestrator.ChangeSettings):
		return tgapi.Answer{}, orchestrator.ErrNotAllowed
	case op == opOn:
		return s.askOn(ctx, by, messageID, cli.TurnID(id))
	}
	q, there, err := s.load(ctx, by.Conversation, id)
	if err != nil || !there || len(q.Models) == 0 {
		return stale, err
	}
	switch {
	case op == opStop:
		if s.o.Consults.Abort(by.Conversation) == 0 {
			return stale, nil
		}
		return tgapi.Answer{Text: p.Text("bot.stopping")}, nil
	case op == opAgain:
		return s.again(ctx, by, id, q)
	case q.isGroup():
		return s.pressGroup(ctx, by, op, id, q)
	}
	return stale, nil
}

// again repeats a question that got no answer.
func (s *Screen) again(ctx context.Context, by orchestrator.Press, id string, q question) (tgapi.Answer, error) {
	if err := s.take(ctx, by, id, q); err != nil {
		return tgapi.Answer{}, err
	}
	return tgapi.Answer{Edit: tgapi.Page{Text: s.o.Lang.Of(by.Conversation.Chat).Text("consult.asked-again")}},
		s.begin(ctx, by, q)
}
