package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"ductor/lang"
)

// NameLimit is how much of a name is shown, in UTF-16 units.
const NameLimit = 28

// ChangeSign is the one sign of a change of a file.
func ChangeSign[K ~string](kind K) string {
	switch kind {
	case "add":
		return "➕"
	case "delete":
		return "➖"
	}
	return "✎"
}

// DiffCount is " +3 −1": how many lines a diff adds and removes. Empty for none.
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

// DiffText is a unified diff of the file path as users read it: lines that begin with +, - or a space, and between them words that say
// where a stretch begins. A heading stays if it names another file or says more than the name. A text without stretches is no unified
// diff, and stays as it is.
func DiffText(p lang.Printer, path, diff string) string {
	if !strings.HasPrefix(diff, "@@ ") && !strings.Contains(diff, "\n@@ ") {
		return diff
	}
	var out strings.Builder
	var left stretch
	begun := false
	for line := range strings.Lines(diff) {
		bare := strings.TrimRight(line, "\r\n")
		switch {
		case left.takes(line):
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

// stretch is what a line "@@ -1,3 +4,5 @@ func main()" announces: how many lines follow of the old and of the new file.
type stretch struct {
	old, now int
	first    int
	what     string
}

// begin reads such a line; false if it is none.
func (s *stretch) begin(line string) bool {
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
	*s = stretch{old: oldLines, now: nowLines, first: first, what: strings.TrimSpace(what)}
	return true
}

// lineRange reads "-1,3", or "-1" for one line.
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

// takes says whether a line belongs to the stretch, and counts it. A line without a sign is an empty one that lost its space.
func (s *stretch) takes(line string) bool {
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

// where says in words where a stretch begins. Empty for the beginning of a file.
func (s *stretch) where(p lang.Printer) string {
	switch {
	case s.what != "":
		return p.Text("common.diff-line-in", s.first, s.what)
	case s.first > 1:
		return p.Text("common.diff-line", s.first)
	}
	return ""
}

// headingOf says whether a line before a stretch says nothing but the name of the file.
func headingOf(line, path string) bool {
	is := func(name string) bool {
		_, bare, _ := strings.Cut(name, "/") // without a/ and b/
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

// ReadSpan reads a duration that a user wrote: "45m", "2 hours".
func ReadSpan(text string) (time.Duration, error) {
	plain := strings.NewReplacer(" ", "", "minutes", "m", "minute", "m", "mins", "m", "min", "m", "hours", "h", "hour", "h", "seconds", "s")
	return time.ParseDuration(plain.Replace(strings.ToLower(text)))
}

// AgentName is the name of an agent as texts use it: "Claude", or "the agent" for none.
func AgentName[Agent ~string](p lang.Printer, a Agent) string {
	if a == "" {
		return p.Text("common.the-agent")
	}
	return strings.ToUpper(string(a[:1])) + ShortLine(string(a[1:]), NameLimit)
}

// Marked is the label of a choice; a tick marks the current one.
func Marked(text string, current bool) string {
	if current {
		return "✓ " + text
	}
	return text
}

// ChoiceText says which agent answers, with which model and effort.
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

// ModelText names an agent and, where one is chosen, its model: "Claude", "Claude · opus".
func ModelText[Agent, Model ~string](p lang.Printer, agent Agent, model Model) string {
	if model == "" {
		return AgentName(p, agent)
	}
	return ChoiceText(p, agent, model, "")
}

// Place says where agents run: in the sandbox of a name, or on this machine.
func Place(p lang.Printer, sandbox string) string {
	if sandbox == "" {
		return p.Text("common.on-machine")
	}
	return p.Text("common.in-sandbox", sandbox)
}

// BypassLeft says how long a bypass lasts: "bypass, 12 min left". Empty where there is none any more.
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

// WithBypassLeft is a mode, and how long it lasts where that is a bypass which ends.
func WithBypassLeft[Mode ~string](p lang.Printer, mode Mode, until, now time.Time) string {
	if line := BypassLeft(p, until, now); line != "" && mode == "bypass" {
		return line
	}
	return string(mode)
}
