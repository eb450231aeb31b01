package card

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// FooterField is a thing the line below an answer can say.
type FooterField string

// The footer fields.
const (
	FooterModel  FooterField = "model"
	FooterTime   FooterField = "time"
	FooterCost   FooterField = "cost"
	FooterTokens FooterField = "tokens"
)

func compactLine(ev cli.CompactBoundary) render.Text {
	line := "🗜 conversation compacted"
	if ev.PreTokens > 0 {
		line += ", it had " + shortCount(int64(ev.PreTokens)) + " tokens"
	}
	return render.Styled(render.Italic, line)
}

func handedOverLine(ev cli.HandedOver) render.Text {
	line := "🤝 handed " + render.Count(ev.Turns, "turn", "turns") + " to " + render.ShortenPlain(render.OneLine(ev.To), render.NameLimit) +
		", " + shortCount(int64(ev.Tokens)) + " tokens"
	return render.Styled(render.Italic, line)
}

func limitLine(ev cli.RateLimited) render.Text {
	line := "⏳ the usage limit is near or reached"
	if !ev.ResetAt.IsZero() {
		line += "; it resets " + ev.ResetAt.Local().Format("Mon 15:04")
	}
	return render.Styled(render.Italic, line)
}

// finish adds what the outcome says below the answer.
func (d *document) finish(o orchestrator.Outcome, footer []FooterField) {
	d.settleText(o.Text)
	d.wait, d.running = waitLine{}, 0
	for _, ref := range d.tools { // a tool that never ended must not look as if it still ran
		if !ref.line.ended() {
			ref.line.state, ref.line.result = toolFailed, "did not end"
		}
	}
	d.addDenials(o.Denials)
	switch {
	case o.State == orchestrator.TurnAborted:
		d.addNote(render.Plain("⏹ Aborted."))
	case o.Failure != "":
		d.addNote(render.Plain("⚠️ " + render.ShortenPlain(render.OneLine(o.Failure), 900)))
		if d.turn.then != "" && o.State == orchestrator.TurnFailed {
			d.addNote(render.Plain("🔁 " + render.ShortenPlain(render.OneLine(d.turn.then), 200)))
		}
	case o.State == orchestrator.TurnInterrupted:
		d.addNote(render.Plain("⚠️ Interrupted by a restart."))
	case strings.TrimSpace(o.Text) == "":
		d.addNote(render.Styled(render.Italic, "The agent ended without a text answer."))
	}
	if line := joinFooter(d.bypassLine(time.Now()), footerLine(o, footer)); line != "" {
		d.push(&segment{kind: noteSegment, note: render.Styled(render.Italic, line)})
	}
}

// maxDenials is how many denied tools are listed one by one.
const maxDenials = 8

func (d *document) addDenials(denials []cli.Denial) {
	var lines []render.Text
	seen := make(map[cli.Denial]bool)
	for _, denial := range denials {
		if seen[denial] {
			continue
		}
		seen[denial] = true
		switch marked, told := d.markDenied(denial); {
		case !marked:
			lines = append(lines, denialLine(denial))
		case !told: // the line has no room for the reason
			lines = append(lines, render.Plain("⛔ "+render.ShortenPlain(render.OneLine(denial.Tool), render.NameLimit)+": "+render.ShortenPlain(render.OneLine(denial.Reason), 120)))
		}
	}
	rest := len(lines) - maxDenials
	if rest > 0 {
		lines = append(lines[:maxDenials:maxDenials], render.Plain(fmt.Sprintf("⛔ and %d more", rest)))
	}
	for _, line := range lines {
		d.addNote(line)
	}
}

// markDenied makes the line of a tool say that it was denied, if it has one; once is enough. The
// line must not grow, since the message that it is in may be full; told is false when that leaves no room for
// the reason.
func (d *document) markDenied(denial cli.Denial) (found, told bool) {
	name, title := render.ShortenPlain(render.OneLine(denial.Tool), render.NameLimit), render.ShortenPlain(render.OneLine(denial.Title), titleMax)
	reason := render.OneLine(denial.Reason)
	told = true
	for _, s := range d.segments {
		if t := s.tool; t != nil && !t.hidden && t.failed() && t.folded == nil && t.name == name && t.title == title {
			t.state, found = toolDenied, true
			room := render.Len(t.result)
			switch whole := "denied: " + reason; {
			case reason != "" && render.Len(whole) <= room:
				t.result = whole
				continue
			case room >= len("denied"):
				t.result = "denied"
			}
			told = reason == ""
		}
	}
	return found, told
}

func denialLine(denial cli.Denial) render.Text {
	parts := []render.Text{render.Plain("⛔ " + render.ShortenPlain(render.OneLine(denial.Tool), render.NameLimit))}
	if title := render.ShortenPlain(render.OneLine(denial.Title), titleMax); title != "" {
		parts = append(parts, render.Plain(" "), render.Styled(render.Code, title))
	}
	end := " was denied"
	if reason := render.ShortenPlain(render.OneLine(denial.Reason), 120); reason != "" {
		end += ": " + reason
	}
	return render.Concat(append(parts, render.Plain(end))...)
}

// footerLine is "opus · 12 s · $0.04 · 12k tokens", of what is known and wanted.
func footerLine(o orchestrator.Outcome, fields []FooterField) string {
	var parts []string
	add := func(s string, known bool) {
		if known {
			parts = append(parts, s)
		}
	}
	if len(fields) > 0 {
		add("second attempt", o.Fallback)
	}
	for _, f := range slices.Compact(slices.Clone(fields)) {
		switch f {
		case FooterModel:
			name := string(o.Model)
			if name == "" {
				name = string(o.Agent)
			}
			add(render.ShortenPlain(render.OneLine(name), 60), name != "")
		case FooterTime:
			add((lang.Printer{}).Elapsed(o.Duration), o.Duration > 0)
		case FooterCost:
			add(fmt.Sprintf("$%.4f", o.CostUSD), o.CostUSD > 0)
		case FooterTokens:
			add(shortCount(o.Usage.Total())+" tokens", o.Usage.Total() > 0)
		}
	}
	return strings.Join(parts, " · ")
}

// shortCount is "950", "12.3k" or "1.2M".
func shortCount(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}
