package bot

import (
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/cli"
)

// bypassLeft says how long a bypass lasts: "bypass, 12 min left". Empty where there is none any more.
func bypassLeft(until, now time.Time) string {
	left := until.Sub(now)
	switch {
	case until.IsZero() || left <= 0:
		return ""
	case left < time.Minute:
		return "bypass, less than a minute left"
	}
	return "bypass, " + spanOf(left.Truncate(time.Minute)) + " left"
}

// withBypassLeft is a mode, and how long it lasts where that is a bypass which ends.
func withBypassLeft(mode cli.PermissionMode, until, now time.Time) string {
	if line := bypassLeft(until, now); line != "" && mode == cli.Bypass {
		return line
	}
	return string(mode)
}

// bypassLine says of the turn that it runs in bypass, and for how long it may.
func (d *document) bypassLine(now time.Time) string { return bypassLeft(d.bypass, now) }

// liveLines is what a running card says at its end: what goes on, and that it is in bypass.
func (d *document) liveLines(now time.Time) render.Text {
	line := liveLine(d.status)
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
