package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"ductor/lang"
)

// NameLimit limits the shown length of a name, in UTF-16 units.
const NameLimit = 28

// ChangeSign returns the symbol for a kind of change to a file.
func ChangeSign[K ~string](kind K) string {
	switch kind {
	case "add":
		return "➕"
	case "delete":
		return "➖"
	}
	return "✎"
}

// DiffCount returns the number of added and removed lines of a diff, such as " +3 −1". It returns "" if there are
// none.
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

// DiffText returns the unified diff of the file path in a form for users. Lines start with +, - or a space. The
// position of each hunk is described in words. A heading stays only if it contains more than the file's name.
// DiffText returns a text without hunks unchanged, because it is not a unified diff.
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

// hunk is a parsed line such as "@@ -1,3 +4,5 @@ func main()", and counts the remaining lines of the hunk.
type hunk struct {
	old, now int
	first    int
	what     string
}

// begin parses the first line of a hunk. It returns false for any other line.
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

// lineRange parses "-1,3", or "-1" for one line.
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

// consume reports whether a line belongs to the hunk, and counts it. A line without a sign is an empty line whose
// space was lost.
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

// where describes the position of a hunk in words. It returns "" for the start of a file.
func (s *hunk) where(p lang.Printer) string {
	switch {
	case s.what != "":
		return p.Text("common.diff-line-in", s.first, s.what)
	case s.first > 1:
		return p.Text("common.diff-line", s.first)
	}
	return ""
}

// headingOf reports whether a line before a hunk contains only the name of the file.
func headingOf(line, path string) bool {
	is := func(name string) bool {
		_, bare, _ := strings.Cut(name, "/") // path without a/ and b/
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

// ReadSpan parses a duration in a user's words, such as "45m" or "2 hours".
func ReadSpan(text string) (time.Duration, error) {
	plain := strings.NewReplacer(" ", "", "minutes", "m", "minute", "m", "mins", "m", "min", "m",
		"hours", "h", "hour", "h", "seconds", "s")
	return time.ParseDuration(plain.Replace(strings.ToLower(text)))
}

// AgentName returns the name of an agent for users, such as "Claude". If a is empty, it returns "the agent".
func AgentName[Agent ~string](p lang.Printer, a Agent) string {
	if a == "" {
		return p.Text("common.the-agent")
	}
	return strings.ToUpper(string(a[:1])) + ShortLine(string(a[1:]), NameLimit)
}

// Marked returns the label of a choice, with a tick if the choice is the current one.
func Marked(text string, current bool) string {
	if current {
		return "✓ " + text
	}
	return text
}

// ChoiceText returns the agent with its model and effort.
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

// ModelText returns the agent with its chosen model, such as "Claude · opus", or the agent alone if no model is
// chosen.
func ModelText[Agent, Model ~string](p lang.Printer, agent Agent, model Model) string {
	if model == "" {
		return AgentName(p, agent)
	}
	return ChoiceText(p, agent, model, "")
}

// Place describes where agents run: in a named sandbox, or on this machine if the name is empty.
func Place(p lang.Printer, sandbox string) string {
	if sandbox == "" {
		return p.Text("common.on-machine")
	}
	return p.Text("common.in-sandbox", sandbox)
}

// BypassLeft describes how long a bypass lasts: "bypass, 12 min left". It returns "" if the bypass is over.
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

// WithBypassLeft returns the text for a mode. For a bypass with an end, the text includes the remaining time.
func WithBypassLeft[Mode ~string](p lang.Printer, mode Mode, until, now time.Time) string {
	if line := BypassLeft(p, until, now); line != "" && mode == "bypass" {
		return line
	}
	return string(mode)
}
