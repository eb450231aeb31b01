package card

import (
	"strings"
	"time"

	"ductor/bot/render"
)

// bypassLine says of the turn that it runs in bypass, and for how long it may.
func (d *document) bypassLine(now time.Time) string {
	return render.BypassLeft(d.lang, d.turn.bypass, now)
}

// liveLines is the end of a running card: what it waits for, and that it is in bypass.
func (d *document) liveLines(now time.Time) render.Text {
	line := d.wait.text(d.lang, d.turn.agent)
	bypass := d.bypassLine(now)
	switch {
	case bypass == "":
		return line
	case line.Text == "":
		return render.Styled(render.Italic, bypass)
	}
	return render.Concat(line, render.Styled(render.Italic, " · "+bypass))
}

func joinFooter(parts ...string) string {
	var all []string
	for _, part := range parts {
		if part != "" {
			all = append(all, part)
		}
	}
	return strings.Join(all, " · ")
}
