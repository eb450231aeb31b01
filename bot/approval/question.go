package approval

import (
	"slices"
	"strings"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
)

// Maximum lengths of the parts of a question in UTF-16 units, and the maximum number of buttons for options.
const (
	questionMax       = 900
	optionsMax        = 16
	optionLabelMax    = 48
	optionDescription = 60
	answerMax         = 120
	answersShown      = 3
)

func (a view) drawQuestion(d draft) (render.Text, tgapi.Keyboard) {
	lines := []render.Text{render.Plain(a.headline(d.Question))}
	for i := max(d.Question-answersShown, 0); i < d.Question; i++ {
		q := a.Questions[i]
		lines = append(lines, givenAnswer(a.lang, q, d.answer(i, q)))
	}
	q := a.Questions[d.Question]
	if head := short(q.Header, optionLabelMax); head != "" {
		lines = append(lines, render.Styled(render.Bold, head))
	}
	text, _ := middle(a.lang, render.Revealed(strings.TrimSpace(q.Text)), questionMax)
	lines = append(lines, render.Plain(text))
	lines = append(lines, a.optionLines(q)...)
	if words := d.Words[d.Question]; words != "" {
		lines = append(lines, render.Plain(a.lang.Text("approval.own-words", shownAnswer(a.lang, q, []string{words}))))
	}
	if hint := a.wordsHint(q, d); hint != "" {
		lines = append(lines, render.Styled(render.Italic, hint))
	}
	if !a.Expires.IsZero() {
		lines = append(lines, render.Styled(render.Italic, a.lang.Text("approval.closes-at", clock(a.Expires))))
	}
	return fitting(lines), a.questionButtons(d)
}

func (a view) headline(question int) string {
	agent := render.AgentName(a.lang, a.Agent)
	if len(a.Questions) < 2 {
		return a.lang.Text("approval.asks", agent)
	}
	return a.lang.Text("approval.asks-one-of", agent, question+1, len(a.Questions))
}

// fitting joins lines to one text, and shortens this text so that it fits into a message.
func fitting(lines []render.Text) render.Text {
	return render.AsMessage(render.Shorten(separated(lines), render.MessageLimit))
}

func answerAt(answers [][]string, i int) []string {
	if i < len(answers) {
		return answers[i]
	}
	return nil
}

func givenAnswer(p lang.Printer, q cli.Question, answer []string) render.Text {
	given := render.Styled(render.Bold, shownAnswer(p, q, answer))
	return render.Concat(render.Plain(short(q.Text, answerMax)), render.Plain("\n→ "), given)
}

// shownAnswer returns an answer as text. Secrets are replaced by dots.
func shownAnswer(p lang.Printer, q cli.Question, answer []string) string {
	if q.Secret {
		return "•••"
	}
	return short(p.List(answer...), answerMax)
}

func (a view) optionLines(q cli.Question) []render.Text {
	var lines []render.Text
	for i, o := range q.Options {
		if i == optionsMax {
			return append(lines, render.Plain(a.lang.Text("approval.more-options", len(q.Options)-i)))
		}
		if about := short(o.Description, optionDescription); about != "" {
			lines = append(lines, render.Concat(render.Plain("• "),
				render.Styled(render.Bold, a.optionLabel(o)), render.Plain(": "+about)))
		}
	}
	return lines
}

func (a view) optionLabel(o cli.Option) string {
	if label := short(o.Label, optionLabelMax); label != "" {
		return label
	}
	return a.lang.Text("approval.no-name")
}

// wordsHint explains how to type an answer. It returns "" if users may only choose an option.
func (a view) wordsHint(q cli.Question, d draft) string {
	p, until, waits := a.lang, clock(d.Until), d.View == opWords
	switch {
	case waits && q.Secret:
		return a.textWanted(p.Text("approval.reply-with-secret-until", until),
			p.Text("approval.send-secret-until", until), p.Text("approval.secret"))
	case waits:
		return a.textWanted(p.Text("approval.reply-with-answer-until", until),
			p.Text("approval.send-answer-until", until))
	case q.Secret:
		return p.Text("approval.reply-with-secret") + " " + p.Text("approval.secret")
	case len(q.Options) == 0:
		return p.Text("approval.reply-with-answer")
	case q.Free:
		return p.Text("approval.or-reply")
	}
	return ""
}

func (a view) questionButtons(d draft) tgapi.Keyboard {
	q := a.Questions[d.Question]
	questionButton := func(text lang.Key, op operation) button { return button{a.lang.Text(text), op, d.Question, 0} }
	var rows [][]button
	for i, o := range q.Options[:min(len(q.Options), optionsMax)] {
		label := render.Marked(a.optionLabel(o), slices.Contains(d.Picks[d.Question], i))
		rows = append(rows, []button{{label, opOption, d.Question, i}})
	}
	if len(d.answer(d.Question, q)) > 0 {
		rows = append(rows, []button{questionButton(a.nextLabel(d), opNext)})
	}
	var last []button
	if d.Question > 0 || d.View == opWords {
		last = append(last, questionButton("common.back", opBack))
	}
	if d.View != opWords && takesWords(q) {
		last = append(last, questionButton("approval.own-words-button", opWords))
	}
	last = append(last, questionButton("approval.no-answer-button", opDeny))
	if a.questionCut(q) {
		last = append(last, questionButton("common.full-text", opFullText))
	}
	return a.keyboard(append(rows, last)...)
}

func (a view) questionCut(q cli.Question) bool {
	_, cut := middle(a.lang, render.Revealed(strings.TrimSpace(q.Text)), questionMax)
	_, header := inLine(q.Header, optionLabelMax)
	return cut || !header || len(q.Options) > optionsMax || slices.ContainsFunc(q.Options, func(o cli.Option) bool {
		_, label := inLine(o.Label, optionLabelMax)
		_, about := inLine(o.Description, optionDescription)
		return !label || !about
	})
}

func takesWords(q cli.Question) bool { return q.Free || len(q.Options) == 0 }

func (a view) nextLabel(d draft) lang.Key {
	if d.Question+1 < len(a.Questions) {
		return "approval.next"
	}
	return "approval.send"
}
