package card

import (
	"slices"
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// FooterField is a piece of information in the footer, the last line below an answer.
type FooterField string

// The fields of a footer.
const (
	FooterModel  FooterField = "model"
	FooterTime   FooterField = "time"
	FooterCost   FooterField = "cost"
	FooterTokens FooterField = "tokens"
)

func compactLine(p lang.Printer, ev cli.CompactBoundary) render.Text {
	line := p.Text("card.compacted")
	if ev.PreTokens > 0 {
		line = p.Text("card.compacted-from", p.Tokens(int64(ev.PreTokens)))
	}
	return render.Styled(render.Italic, line)
}

func handedOverLine(p lang.Printer, ev cli.HandedOver) render.Text {
	to := render.AgentName(p, ev.To)
	if ev.Model != "" {
		to = render.ShortLine(string(ev.Model), render.NameLimit)
	}
	line := p.Text("card.handed-over", ev.Turns, to, p.Tokens(int64(ev.Tokens)))
	if ev.Shortened {
		line += p.Text("card.handed-shortened")
	}
	if ev.LeftOut > 0 {
		line += p.Text("card.handed-left-out", ev.LeftOut)
	}
	return render.Styled(render.Italic, line)
}

func warningLine(s cli.Status) render.Text {
	return render.Plain("⚠️ " + render.ShortLine(s.Detail, 300))
}

func substitutedLine(p lang.Printer, ev cli.Substituted) *segment {
	by, why := render.AgentName(p, ev.By), render.ShortLine(ev.Why.Sentence(p), 300)
	return &segment{
		kind: noteSegment, note: render.Styled(render.Italic, p.Text("card.substituted", by, why)),
		noteIfFailed: render.Styled(render.Italic, p.Text("card.substituted-in-vain", by, why)),
	}
}

func limitLine(p lang.Printer, ev cli.RateLimited) render.Text {
	line := p.Text("card.limit")
	if !ev.ResetAt.IsZero() {
		line = p.Text("card.limit-until", p.Weekday(ev.ResetAt.Local()))
	}
	return render.Styled(render.Italic, line)
}

// finish adds the outcome of the turn to the document: failures, denied tools and the footer.
func (d *document) finish(o orchestrator.Outcome, footer []FooterField) {
	d.settleText(o.Shown())
	if o.Short != "" {
		d.addNote(render.Styled(render.Italic, d.lang.Text("card.file-follows")))
	}
	d.wait, d.running = waitLine{}, 0
	for _, ref := range d.tools { // the turn has ended, so no tool may appear to be running
		if !ref.line.ended() {
			ref.line.state, ref.line.result = toolFailed, d.lang.Text("card.tool-did-not-end")
		}
	}
	for _, s := range d.segments {
		if s.kind == planSegment {
			s.plan.folded = true
		}
		if s.noteIfFailed.Text != "" && o.State == orchestrator.TurnFailed {
			s.note = s.noteIfFailed
		}
	}
	d.addDenials(o.Denials)
	switch {
	case o.State == orchestrator.TurnAborted:
		d.addNote(render.Plain(d.lang.Text("card.aborted")))
	case o.Failure != "":
		d.addNote(render.Plain("⚠️ " + render.ShortLine(o.Failure, 900)))
		if raw := strings.TrimSpace(o.Recovery.Raw); raw != "" {
			d.addNote(render.Styled(render.Pre, render.ShortenPlain(raw, 600)))
		}
		if d.turn.then != "" && o.State == orchestrator.TurnFailed {
			d.addNote(render.Plain("🔁 " + render.ShortLine(d.turn.then, 200)))
		}
	case o.State == orchestrator.TurnInterrupted:
		d.addNote(render.Plain(d.lang.Text("card.interrupted")))
	case render.IsBlank(o.Text):
		d.addNote(render.Styled(render.Italic, d.lang.Text("card.no-answer")))
		d.turn.noAnswer = d.last()
	}
	d.addFooter(o, footer)
}

// amend replaces the footer. If the answer in o is longer than the document's answer, amend also appends the missing
// text, and returns the length of the appended text in bytes.
func (d *document) amend(o orchestrator.Outcome, fields []FooterField) (more int) {
	d.drop(d.turn.footer)
	if text, longer := strings.CutPrefix(o.Shown(), d.text()); longer && text != "" {
		d.drop(d.turn.noAnswer)
		d.appendText(text)
		more = len(text)
	}
	d.addFooter(o, fields)
	return more
}

func (d *document) withdraw(bytes int) {
	d.drop(d.turn.footer)
	d.retract(bytes)
	if d.turn.noAnswer != nil && d.answer == 0 {
		d.push(d.turn.noAnswer)
	}
}

// drop removes s from the document if s is the last segment.
func (d *document) drop(s *segment) {
	if s != nil && d.last() == s {
		d.segments = d.segments[:len(d.segments)-1]
	}
}

func (d *document) addFooter(o orchestrator.Outcome, fields []FooterField) {
	line := joinFooter(d.turn.place, footerLine(d.lang, o, fields, d.turn.where))
	if line == "" {
		return
	}
	if o.Changed.Ignored && o.Changed.NoUndo == "" {
		line += "\n" + d.lang.Text("changes.receipt-ignored")
	}
	d.turn.footer = d.push(&segment{kind: noteSegment, note: render.Styled(render.Italic, line)})
}

// maxDenials is the maximum number of denied tools that are listed individually. Further denied tools are only counted.
const maxDenials = 8

func (d *document) addDenials(denials []cli.Denial) {
	var lines []render.Text
	seen := make(map[cli.Denial]bool)
	for _, denial := range denials {
		if seen[denial] {
			continue
		}
		seen[denial] = true
		switch marked, explained := d.markDenied(denial); {
		case !marked:
			lines = append(lines, denialLine(d.lang, denial))
		case !explained: // the tool's line has no room for the reason
			reason := render.ShortLine(denial.Reason, 120)
			lines = append(lines, render.Plain("⛔ "+toolName(d.lang, denial.Tool)+": "+reason))
		}
	}
	rest := len(lines) - maxDenials
	if rest > 0 {
		lines = append(lines[:maxDenials:maxDenials], render.Plain(d.lang.Text("card.more-denied", rest)))
	}
	for _, line := range lines {
		d.addNote(line)
	}
}

// markDenied changes the lines of a failed tool so that they show the denial. The lines must not become longer, because
// their message may be full. found reports whether the document has a line of the tool. explained reports whether
// all these lines contain denial.Reason.
func (d *document) markDenied(denial cli.Denial) (found, explained bool) {
	name, title := toolName(d.lang, denial.Tool), render.ShortLine(denial.Title, titleMax)
	reason := render.OneLine(denial.Reason)
	explained = true
	for _, s := range d.segments {
		if t := s.tool; t != nil && !t.hidden && t.failed() && t.folded == nil && t.name == name && t.title == title {
			t.state, found = toolDenied, true
			room, denied := render.Len(t.result), d.lang.Text("card.tool-denied")
			switch whole := d.lang.Text("card.tool-denied-because", reason); {
			case reason != "" && render.Len(whole) <= room:
				t.result = whole
				continue
			case room >= render.Len(denied):
				t.result = denied
			}
			explained = reason == ""
		}
	}
	return found, explained
}

func denialLine(p lang.Printer, denial cli.Denial) render.Text {
	tool, title := toolName(p, denial.Tool), render.ShortLine(denial.Title, titleMax)
	line := p.Text("card.was-denied", tool)
	if title != "" {
		line = p.Text("card.title-was-denied", tool, render.Slot)
	}
	if reason := render.ShortLine(denial.Reason, 120); reason != "" {
		line = p.Text("common.because", line, reason)
	}
	return render.Filled(line, render.Styled(render.Code, title))
}

// footerLine returns a line such as "opus · 12 s · $0.04 · 12k tokens". It omits fields whose values are unknown.
func footerLine(p lang.Printer, o orchestrator.Outcome, fields []FooterField,
	where func(orchestrator.ConversationID) string) string {
	var parts []string
	add := func(s string, known bool) {
		if known {
			parts = append(parts, s)
		}
	}
	if len(fields) > 0 {
		add(p.Text("card.second-attempt"), o.Fallback)
	}
	if c := o.Changed; c.Files > 0 {
		files := p.Text("changes.files", c.Files, c.Added, c.Removed)
		if c.Added+c.Removed == 0 { // all changed files are empty or binary
			files = p.Text("changes.only-files", c.Files)
		}
		add(files, true)
		fields = withReceipt(fields)
	}
	for _, f := range slices.Compact(slices.Clone(fields)) {
		switch f {
		case FooterModel:
			name := string(o.Model)
			if name == "" && o.Agent != "" {
				name = render.AgentName(p, o.Agent)
			}
			add(render.ShortLine(name, 60), name != "")
		case FooterTime:
			add(p.Elapsed(o.Duration), o.Duration > 0)
		case FooterCost:
			add(p.Cost(o.CostUSD), o.CostUSD > 0)
		case FooterTokens:
			add(p.Tokens(o.Usage.Total()), o.Usage.Total() > 0)
		}
	}
	if len(fields) > 0 {
		near := o.Limits.Near(time.Now()).Text(p, time.Now())
		add(near, near != "")
	}
	if percent, known := o.Fill.Percent(); len(fields) > 0 && known && percent > nearlyFull {
		parts = append(parts, p.Text("card.context", percent))
	}
	switch why, ok := noUndo(o.Changed.NoUndo); {
	case o.Changed.NoUndo == orchestrator.NoUndoShared:
		add(p.Text("changes.no-undo-shared", where(o.Changed.With)), true)
	case ok:
		add(p.Text(why), true)
	}
	return strings.Join(parts, " · ")
}

// nearlyFull is the percentage of the context window above which the footer shows how full the window is.
const nearlyFull = 60

// withReceipt adds the time and the cost to the fields of a footer, for a turn that changed files.
func withReceipt(fields []FooterField) []FooterField {
	fields = slices.Clone(fields)
	for _, f := range []FooterField{FooterTime, FooterCost} {
		if !slices.Contains(fields, f) {
			fields = append(fields, f)
		}
	}
	return fields
}

func noUndo(why orchestrator.NoUndo) (key lang.Key, ok bool) {
	key, ok = map[orchestrator.NoUndo]lang.Key{
		orchestrator.NoUndoLate:  "changes.no-undo-late",
		orchestrator.NoUndoLarge: "changes.no-undo-large", orchestrator.NoUndoFailed: "changes.no-undo-failed",
	}[why]
	return key, ok
}

// bypassLine returns a text with the remaining time of bypass mode. It returns "" if the agent is not in bypass mode.
func (d *document) bypassLine(now time.Time) string {
	return render.BypassLeft(d.lang, d.turn.bypass, now)
}

// liveLines returns the last lines of the card while the turn runs. The lines show why the turn is waiting, how long
// bypass mode lasts, and which usage limits are almost reached.
func (d *document) liveLines(now time.Time) render.Text {
	line := d.wait.text(d.lang, d.turn.agent)
	more := joinFooter(d.bypassLine(now), d.turn.limits.Near(now).Text(d.lang, now))
	switch {
	case more == "":
		return line
	case line.Text == "":
		return render.Styled(render.Italic, more)
	}
	return render.Concat(line, render.Styled(render.Italic, " · "+more))
}

func joinFooter(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " · ")
}
