package consult

import (
	"context"
	"slices"
	"strings"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/side"
)

// compose returns messages with the models' answers. The caller must store the messages. If a user replies to a
// message, ductor asks the model of this message again. If several models discuss the question (isGroup), a conclusion
// follows their answers, so the answers are collapsed, and users get no notification of them. If an answer needs too
// many messages, the messages show the beginning and the end of the answer, and a file contains the whole answer.
func (s *Screen) compose(ctx context.Context, in orchestrator.ConversationID, id string, q question,
	answers []orchestrator.GroupStep) (rows []orchestrator.Message) {
	keyboard := s.keyboard(ctx, in)
	for _, one := range answers {
		if one.Err != nil || one.Answer.Text == "" {
			continue
		}
		fold := q.isGroup() && one.Round <= q.Rounds
		for _, c := range s.contents(s.o.Lang.Of(in.Chat), q, one, fold, keyboard(one.Answer.Entry)) {
			if c.Silent = fold; len(rows) == 0 {
				c.ReplyTo = q.ReplyTo
			}
			m := message.Compose(in, c)
			m.Key = adviceKey(one.Answer.Entry, id, len(rows))
			rows = append(rows, m)
		}
	}
	return rows
}

// contents returns the messages of one answer. The last message has the buttons. If fold is true, the answer is
// collapsed until the user expands it.
func (s *Screen) contents(p lang.Printer, q question, one orchestrator.GroupStep, fold bool,
	buttons tgapi.Keyboard) (all []message.Content) {
	parts := render.Split(s.quote(p, q, one, fold), render.FullMessage)
	most := s.o.Most()
	cut := most > 0 && len(parts) > most
	if cut {
		end := &parts[len(parts)-1]
		end.Text = render.Concat(render.Styled(render.Italic, p.Text("card.file-follows")), render.Plain("\n\n"),
			end.Text)
		parts = slices.Delete(parts, most-1, len(parts)-1)
	}
	for _, part := range parts {
		all = append(all, message.Content{Text: part.Text})
	}
	all[len(all)-1].Keyboard = buttons
	if cut || one.Answer.Whole != "" {
		all = append(all, message.Content{Files: []message.File{{Name: "answer.md", Content: one.Answer.All()}}})
	}
	return all
}

// quote returns an answer as a block quote below the name of its model.
func (s *Screen) quote(p lang.Printer, q question, one orchestrator.GroupStep, fold bool) render.Text {
	head := p.Text("consult.says", s.name(p, one.Answer.Model))
	if q.isGroup() && !fold {
		head = p.Text("consult.concludes", s.name(p, one.Answer.Model))
	}
	foot := []string{p.Elapsed(one.Answer.Duration)}
	if !side.ReadsFiles(one.Answer.Model.Agent) {
		foot = append(foot, p.Text("consult.no-files"))
	}
	if one.Answer.CostUSD > 0 {
		foot = append(foot, p.Cost(one.Answer.CostUSD))
	}
	if one.Answer.LeftOut > 0 {
		foot = append(foot, p.Text("consult.left-out", one.Answer.LeftOut))
	}
	if one.Answer.Whole != "" {
		foot = append(foot, p.Text("consult.shortened"))
	}
	quoted := render.Markdown("> " + strings.ReplaceAll(one.Answer.Text, "\n", "\n> "))
	if fold {
		for i := range quoted.Entities {
			if quoted.Entities[i].Kind == render.Blockquote {
				quoted.Entities[i].Kind = render.Expandable
			}
		}
	}
	return render.Concat(render.Styled(render.Bold, head), render.Plain("\n"), quoted,
		render.Plain("\n"), render.Styled(render.Italic, strings.Join(foot, " · ")))
}
