package approval

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/lang"
)

// fullTextMax is the maximum number of messages for the full text of a request.
const fullTextMax = 16

// fullText returns the complete request as several messages. There are at most fullTextMax messages. If they omit a
// part of the request, the last message mentions this.
func (a view) fullText() []render.Text {
	var lines []render.Text
	if a.Request != nil {
		lines = a.fullApproval()
	}
	for _, q := range a.Questions {
		lines = append(lines, fullQuestion(q)...)
	}
	var out []render.Text
	for _, p := range render.Split(joinLines(lines), render.MessageLimit) {
		if len(out) == fullTextMax {
			return append(out, render.Plain(a.lang.Text("approval.full-text-cut")))
		}
		out = append(out, p.Text)
	}
	return out
}

func (a view) fullApproval() []render.Text {
	req := a.Request
	tool := render.OneLine(render.Revealed(render.ToolName(a.lang, req.Tool)))
	lines := []render.Text{render.Styled(render.Bold, tool)}
	for _, l := range a.Links {
		line := linkLine(a.lang, l, render.OneLine(render.Revealed(l.Path)), render.OneLine(render.Revealed(l.Real)))
		lines = append(lines, render.Styled(render.Bold, line))
	}
	block := func(language, text string) {
		if shown, _ := folded(render.Revealed(strings.Trim(text, "\n"))); strings.TrimSpace(shown) != "" {
			lines = append(lines, render.CodeBlock(language, shown))
		}
	}
	block("", a.about())
	for _, ch := range req.Changes {
		path := cli.Relative(a.Dir, ch.Path)
		line := render.ChangeSign(ch.Kind) + " " + render.OneLine(render.Revealed(path))
		if ch.Kind == cli.FileReplaced {
			line += extent(a.lang, ch)
		}
		lines = append(lines, render.Plain(line))
		block("diff", render.DiffText(a.lang, path, ch.Diff))
	}
	block("", fullFields(a.lang, shownFields(req.Fields)))
	if reason, _ := folded(render.Revealed(req.Reason)); strings.TrimSpace(reason) != "" {
		lines = append(lines, render.Plain(a.lang.Text("approval.reason-follows")), render.CodeBlock("", reason))
	}
	return append(lines, a.fullRules()...)
}

// shownFields returns the fields that are relevant to users. Other fields only help the agent to identify the request.
func shownFields(all []cli.Field) []cli.Field {
	return slices.DeleteFunc(slices.Clone(all), func(f cli.Field) bool { return f.Weight == cli.LabelField })
}

// fullFields returns the fields, one per line. Further lines of a value are indented, so that they cannot be mistaken
// for other fields.
func fullFields(p lang.Printer, fields []cli.Field) string {
	var b strings.Builder
	for _, f := range fields {
		value := strings.ReplaceAll(cmp.Or(f.Value, p.Text("approval.empty")), "\n", "\n    ")
		b.WriteString(render.OneLine(render.Revealed(f.Name)) + ": " + value + "\n")
	}
	return b.String()
}

// fullRules returns the rules that the approval's message shows only in part.
func (a view) fullRules() (lines []render.Text) {
	for _, rule := range []string{a.SessionRule, a.Rule} {
		if _, cut := a.shownRule(rule); cut {
			shown, _ := folded(render.Revealed(render.Rule(a.lang, rule)))
			lines = append(lines, render.Plain(a.lang.Text("approval.rule-in-full")), render.CodeBlock("", shown))
		}
	}
	return lines
}

func fullQuestion(q cli.Question) []render.Text {
	text, _ := folded(render.Revealed(q.Text))
	lines := []render.Text{render.Styled(render.Bold, render.OneLine(render.Revealed(q.Header))), render.Plain(text)}
	for _, o := range q.Options {
		label, about := render.OneLine(render.Revealed(o.Label)), render.OneLine(render.Revealed(o.Description))
		lines = append(lines, render.Plain("• "+label+": "+about))
	}
	return lines
}

func (a view) fullTextTooLong() bool {
	req := a.Request
	texts := []string{req.Detail, req.Title, req.Reason}
	for _, ch := range req.Changes {
		texts = append(texts, ch.Path, ch.Diff)
	}
	for _, f := range shownFields(req.Fields) {
		texts = append(texts, f.Name, f.Value)
	}
	for _, l := range a.Links {
		texts = append(texts, l.Path, l.Real)
	}
	bytes := len(a.SessionRule) + len(a.Rule)
	for _, text := range texts {
		bytes += len(text)
	}
	switch {
	case bytes < render.MessageLimit: // fits into 16 messages, even if escapes make the text 6 times longer
		return false
	case bytes > fullTextMax*render.MessageLimit*utf8.UTFMax:
		return true
	}
	return len(a.fullText()) > fullTextMax
}
