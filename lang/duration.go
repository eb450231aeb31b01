package lang

import (
	"strings"
	"time"
)

// Elapsed is how long something took: "<0.1 s", "0.4 s", "12 s", "3 min 5 s" or "2 h 10 min".
func (p Printer) Elapsed(d time.Duration) string {
	switch {
	case d < 100*time.Millisecond:
		return p.Text("time.instant")
	case d < 10*time.Second:
		return p.Text("time.short", d.Seconds())
	case d < time.Minute:
		return p.Text("time.seconds", int(d.Seconds()))
	case d < time.Hour:
		return p.Text("time.minutes-seconds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return p.Text("time.hours-minutes", int(d.Hours()), int(d.Minutes())%60)
}

// Rounded is a duration in its largest units: "40 s", "12 min", "3 h 5 min", "4 days".
func (p Printer) Rounded(d time.Duration) string {
	switch {
	case d < time.Minute:
		return p.Text("time.seconds", int(max(d, 0).Seconds()))
	case d < time.Hour:
		return p.Text("time.minutes", int(d.Minutes()))
	case d < 48*time.Hour:
		return p.Text("time.hours-minutes", int(d.Hours()), int(d.Minutes())%60)
	}
	return p.Text("time.days", int(d.Hours()/24))
}

// Span is a duration that a user chose, in all its units: "15 min", "2 h", "1 h 30 min".
func (p Printer) Span(d time.Duration) string {
	var parts []string
	if n := d / time.Hour; n > 0 {
		parts = append(parts, p.Text("time.hours", int(n)))
	}
	if n := d % time.Hour / time.Minute; n > 0 {
		parts = append(parts, p.Text("time.minutes", int(n)))
	}
	if n := d % time.Minute / time.Second; n > 0 {
		parts = append(parts, p.Text("time.seconds", int(n)))
	}
	return strings.Join(parts, " ")
}
