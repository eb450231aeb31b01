package lang

import (
	"strings"
	"time"
)

// List joins texts to a list in one line.
func (p Printer) List(parts ...string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts, p.Text("common.list-comma"))
}

// Elapsed formats how long something took: "<0.1 s", "0.4 s", "12 s", "3 min 5 s" or "2 h 10 min".
func (p Printer) Elapsed(d time.Duration) string {
	switch {
	case d < 100*time.Millisecond:
		return p.Text("quantity.instant")
	case d < 10*time.Second:
		return p.Text("quantity.short", d.Seconds())
	case d < time.Minute:
		return p.Text("quantity.seconds", int(d.Seconds()))
	case d < time.Hour:
		return p.Text("quantity.minutes-seconds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return p.Text("quantity.hours-minutes", int(d.Hours()), int(d.Minutes())%60)
}

// Rounded formats a duration with its largest units: "40 s", "12 min", "3 h 5 min", "4 days".
func (p Printer) Rounded(d time.Duration) string {
	switch {
	case d < time.Minute:
		return p.Text("quantity.seconds", int(max(d, 0).Seconds()))
	case d < time.Hour:
		return p.Text("quantity.minutes", int(d.Minutes()))
	case d < 48*time.Hour:
		return p.Text("quantity.hours-minutes", int(d.Hours()), int(d.Minutes())%60)
	}
	return p.Text("quantity.days", int(d.Hours()/24))
}

// Span formats a duration that a user has chosen, with all its units: "15 min", "2 h", "1 h 30 min".
func (p Printer) Span(d time.Duration) string {
	var parts []string
	if n := d / time.Hour; n > 0 {
		parts = append(parts, p.Text("quantity.hours", int(n)))
	}
	if n := d % time.Hour / time.Minute; n > 0 {
		parts = append(parts, p.Text("quantity.minutes", int(n)))
	}
	if n := d % time.Minute / time.Second; n > 0 {
		parts = append(parts, p.Text("quantity.seconds", int(n)))
	}
	return strings.Join(parts, " ")
}

// Size formats a number of bytes: "12 B", "3.5 kB" or "20.0 MB".
func (p Printer) Size(bytes int64) string {
	switch {
	case bytes < 1<<10:
		return p.Text("quantity.bytes", bytes)
	case bytes < 1<<20:
		return p.Text("quantity.kilobytes", float64(bytes)/(1<<10))
	}
	return p.Text("quantity.megabytes", float64(bytes)/(1<<20))
}

// Moment formats a day and a time: "Mon 2 Jan 15:04".
func (p Printer) Moment(t time.Time) string { return t.Format(p.Text("quantity.moment")) }

// Date formats a day: "Mon 2 Jan".
func (p Printer) Date(t time.Time) string { return t.Format(p.Text("quantity.date")) }

// Weekday formats a time within a week: "Mon 15:04".
func (p Printer) Weekday(t time.Time) string { return t.Format(p.Text("quantity.weekday")) }

// Clock formats a time within a week: "15:04" if it is at most 12 hours from now, and "Mon 15:04" otherwise.
func (p Printer) Clock(t, now time.Time) string {
	if t.Sub(now).Abs() > 12*time.Hour {
		return p.Weekday(t)
	}
	return t.Format(p.Text("quantity.clock"))
}

// Cost formats an amount of money: "$0.42", or "$0.0042" below one cent.
func (p Printer) Cost(usd float64) string {
	if usd < 0.01 {
		return p.Text("quantity.small-cost", usd)
	}
	return p.Text("quantity.cost", usd)
}

// Tokens formats a number of tokens: "950 tokens", "12.3k tokens" or "1.2M tokens".
func (p Printer) Tokens(n int64) string {
	switch {
	case n < 1000:
		return p.Text("quantity.tokens", n)
	case n < 1_000_000:
		return p.Text("quantity.kilotokens", float64(n)/1e3)
	}
	return p.Text("quantity.megatokens", float64(n)/1e6)
}
