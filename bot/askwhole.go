package bot

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/orchestrator"
)

// askWholeMax is how many messages a full text may take.
const askWholeMax = 16

// askWhole is all there is to decide on, in as many messages as it takes up to a bound.
func askWhole(a orchestrator.Ask) []render.Text {
	var lines []render.Text
	if a.Approval != nil {
		lines = append(wholeApproval(a.Approval), wholeRules(a)...)
	}
	for _, q := range a.Questions {
		lines = append(lines, wholeQuestion(q)...)
	}
	var out []render.Text
	for _, p := range render.Split(joinLines(lines), hardLimit) {
		if len(out) == askWholeMax {
			return append(out, render.Plain("… The rest is longer than a chat can show."))
		}
		out = append(out, p.Text)
	}
	return out
}

func wholeApproval(ask *cli.ApprovalAsked) []render.Text {
	lines := []render.Text{render.Styled(render.Bold, oneLine(revealed(ask.Tool)))}
	block := func(language, text string) {
		if shown, _ := folded(revealed(strings.Trim(text, "\n"))); strings.TrimSpace(shown) != "" {
			lines = append(lines, render.CodeBlock(language, shown))
		}
	}
	block("", cmp.Or(ask.Detail, ask.Title))
	for _, ch := range ask.Changes {
		lines = append(lines, render.Plain(changeIcon(ch.Kind)+" "+oneLine(revealed(ch.Path))))
		block("diff", ch.Diff)
	}
	if fields := wholeFields(ask.Fields); fields != "" {
		block("", fields)
	}
	if reason, _ := folded(revealed(ask.Reason)); strings.TrimSpace(reason) != "" {
		lines = append(lines, render.Plain("It says:"), render.CodeBlock("", reason))
	}
	return lines
}

// wholeFields has a line for each field. Further lines of a value are indented, so that they are no fields.
func wholeFields(fields []cli.Field) string {
	var b strings.Builder
	for _, f := range fields {
		b.WriteString(oneLine(revealed(f.Name)) + ": " + strings.ReplaceAll(cmp.Or(f.Value, "(empty)"), "\n", "\n    ") + "\n")
	}
	return b.String()
}

// wholeRules are the rules that the card cannot show whole.
func wholeRules(a orchestrator.Ask) (lines []render.Text) {
	for _, rule := range []string{a.SessionRule, a.Rule} {
		if _, cut := shownRule(rule); cut {
			shown, _ := folded(revealed(rule))
			lines = append(lines, render.Plain("A rule for this would be:"), render.CodeBlock("", shown))
		}
	}
	return lines
}

func wholeQuestion(q cli.Question) []render.Text {
	text, _ := folded(revealed(q.Text))
	lines := []render.Text{render.Styled(render.Bold, oneLine(revealed(q.Header))), render.Plain(text)}
	for _, o := range q.Options {
		lines = append(lines, render.Plain("• "+oneLine(revealed(o.Label))+": "+oneLine(revealed(o.Description))))
	}
	return lines
}

// wholeTooLong says whether the full text is longer than askWhole gives.
func wholeTooLong(a orchestrator.Ask) bool {
	ask := a.Approval
	texts := []string{ask.Detail, ask.Title, ask.Reason}
	for _, ch := range ask.Changes {
		texts = append(texts, ch.Path, ch.Diff)
	}
	for _, f := range ask.Fields {
		texts = append(texts, f.Name, f.Value)
	}
	bytes := len(a.SessionRule) + len(a.Rule)
	for _, text := range texts {
		bytes += len(text)
	}
	switch {
	case bytes < hardLimit: // a message or two, also where much of it is written out
		return false
	case bytes > askWholeMax*hardLimit*utf8.UTFMax:
		return true
	}
	return len(askWhole(a)) > askWholeMax
}
