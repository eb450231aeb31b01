package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"ductor/lang"
)

// NameLimit is the maximum length of a name that is shown, in UTF-16 units.
const NameLimit = 28

// ChangeSign returns a symbol for the way in which a file was changed.
func ChangeSign[K ~string](kind K) string {
	switch kind {
	case "add":
		return "➕"
	case "delete":
		return "➖"
	}
	return "✎"
}

// DiffCount returns the number of added and removed lines in a diff, for example " +3 −1". It returns "" if the diff
// has no such lines.
func DiffCount(diff string) string {
	added, removed := 0, 0
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		case line[0] == '+':
			added++
		case line[0] == '-':
			removed++
		}
	}
	if added+removed == 0 {
		return ""
	}
	return fmt.Sprintf(" +%d −%d", added, removed)
}

// DiffText makes the unified diff of a file readable for users. It replaces the line before each hunk by the position
// of the hunk in words. It removes headings that contain only the path of the file. DiffText returns diff unchanged if
// it is not a unified diff.
func DiffText(p lang.Printer, path, diff string) string {
	if !strings.HasPrefix(diff, "@@ ") && !strings.Contains(diff, "\n@@ ") {
		return diff
	}
	var out strings.Builder
	var left hunk
	begun := false
	for line := range strings.Lines(diff) {
		bare := strings.TrimRight(line, "\r\n")
		switch {
		case left.consume(line):
			out.WriteString(line)
		case strings.HasPrefix(line, `\`):
			out.WriteString("… " + p.Text("common.diff-no-end") + "\n")
		case left.begin(bare):
			begun = true
			if where := left.where(p); where != "" {
				out.WriteString("… " + where + "\n")
			}
		case begun || !headingOf(bare, path):
			out.WriteString(line)
		}
	}
	return out.String()
}

// hunk is parsed from a line such as "@@ -1,3 +4,5 @@ func main()". The fields old and now are the numbers of lines
// that were not consumed yet, in the old and in the new file.
type hunk struct {
	old, now int
	first    int
	what     string
}

// begin parses the line before a hunk. It returns false for any other line.
func (s *hunk) begin(line string) bool {
	ranges, what, ok := strings.Cut(strings.TrimPrefix(line, "@@ "), " @@")
	old, now, two := strings.Cut(ranges, " ")
	if !ok || !two || !strings.HasPrefix(line, "@@ ") {
		return false
	}
	_, oldLines, okOld := lineRange(old, "-")
	first, nowLines, okNow := lineRange(now, "+")
	if !okOld || !okNow {
		return false
	}
	*s = hunk{old: oldLines, now: nowLines, first: first, what: strings.TrimSpace(what)}
	return true
}

// lineRange parses "-1,3" into the first line and the number of lines. "-1" means one line.
func lineRange(text, sign string) (first, lines int, ok bool) {
	text, signed := strings.CutPrefix(text, sign)
	from, count, counted := strings.Cut(text, ",")
	first, err := strconv.Atoi(from)
	lines, countErr := 1, error(nil)
	if counted {
		lines, countErr = strconv.Atoi(count)
	}
	return first, lines, signed && err == nil && countErr == nil
}

// consume reports whether line is the next line of the hunk, and counts it. An empty line counts as an unchanged empty
// line without its leading space.
func (s *hunk) consume(line string) bool {
	switch {
	case line[0] == '+' && s.now > 0:
		s.now--
	case line[0] == '-' && s.old > 0:
		s.old--
	case (line[0] == ' ' || line[0] == '\n') && s.old > 0 && s.now > 0:
		s.old, s.now = s.old-1, s.now-1
	default:
		return false
	}
	return true
}

// where describes the position of a hunk in words. It returns "" for the start of the file.
func (s *hunk) where(p lang.Printer) string {
	switch {
	case s.what != "":
		return p.Text("common.diff-line-in", s.first, s.what)
	case s.first > 1:
		return p.Text("common.diff-line", s.first)
	}
	return ""
}

// headingOf reports whether a line before the first hunk contains only the name of the file.
func headingOf(line, path string) bool {
	is := func(name string) bool {
		_, bare, _ := strings.Cut(name, "/") // name without a/ or b/
		return name == "/dev/null" || name == path || bare == path
	}
	for _, mark := range []string{"--- ", "+++ "} {
		if name, ok := strings.CutPrefix(line, mark); ok {
			name, _, _ = strings.Cut(name, "\t")
			return is(name)
		}
	}
	if both, ok := strings.CutPrefix(line, "diff --git "); ok {
		return both == "a/"+path+" b/"+path
	}
	return strings.HasPrefix(line, "index ") && strings.Contains(line, "..")
}

// ReadSpan parses a duration as users write it, such as "45m" or "2 hours".
func ReadSpan(text string) (time.Duration, error) {
	plain := strings.NewReplacer(" ", "", "minutes", "m", "minute", "m", "mins", "m", "min", "m",
		"hours", "h", "hour", "h", "seconds", "s")
	return time.ParseDuration(plain.Replace(strings.ToLower(text)))
}

// AgentName returns the name of an agent as users know it, such as "Claude". It returns "the agent" if a is empty.
func AgentName[Agent ~string](p lang.Printer, a Agent) string {
	if a == "" {
		return p.Text("common.the-agent")
	}
	return strings.ToUpper(string(a[:1])) + ShortLine(string(a[1:]), NameLimit)
}

// Marked returns the text of a choice, with a check mark if it is the current choice.
func Marked(text string, current bool) string {
	if current {
		return "✓ " + text
	}
	return text
}

// ChoiceText returns a text such as "Claude · opus · high" for an agent, its model and its effort.
func ChoiceText[Agent, Model, Effort ~string](p lang.Printer, agent Agent, model Model, effort Effort) string {
	if agent == "" {
		return p.Text("common.no-agent")
	}
	parts := []string{AgentName(p, agent), string(model)}
	if model == "" {
		parts[1] = p.Text("common.default-model")
	}
	if effort != "" {
		parts = append(parts, string(effort))
	}
	return strings.Join(parts, " · ")
}

// ModelText returns a text such as "Claude · opus" for an agent and its model. It omits an empty model.
func ModelText[Agent, Model ~string](p lang.Printer, agent Agent, model Model) string {
	if model == "" {
		return AgentName(p, agent)
	}
	return ChoiceText(p, agent, model, "")
}

// Place returns a text about the place where agents run: the given sandbox, or this machine if the name is empty.
func Place(p lang.Printer, sandbox string) string {
	if sandbox == "" {
		return p.Text("common.on-machine")
	}
	return p.Text("common.in-sandbox", sandbox)
}

// BypassLeft returns a text such as "bypass, 12 min left". In bypass mode, agents need no approvals until the given
// time. BypassLeft returns "" if this time has passed.
func BypassLeft(p lang.Printer, until, now time.Time) string {
	left := until.Sub(now)
	switch {
	case until.IsZero() || left <= 0:
		return ""
	case left < time.Minute:
		return p.Text("common.bypass-ends")
	}
	return p.Text("common.bypass-left", p.Span(left.Truncate(time.Minute)))
}

// WithBypassLeft returns the name of a permission mode. In bypass mode, it adds the remaining time, if the mode has an
// end.
func WithBypassLeft[Mode ~string](p lang.Printer, mode Mode, until, now time.Time) string {
	if line := BypassLeft(p, until, now); line != "" && mode == "bypass" {
		return line
	}
	return string(mode)
}
