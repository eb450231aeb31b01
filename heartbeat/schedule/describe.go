package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"ductor/lang"
)

// Describe returns a schedule in words, in the language of p. For a schedule with a single time, it converts the time
// to the time zone loc, because the schedule may contain another offset from UTC. It quotes a schedule that it cannot
// put into words. ParseSentence can parse most English descriptions.
func Describe(p lang.Printer, schedule string, loc *time.Location) string {
	line := strings.TrimSpace(schedule)
	word, rest, _ := strings.Cut(line, " ")
	switch strings.ToLower(word) {
	case "every", "@every":
		if d, err := time.ParseDuration(strings.TrimSpace(rest)); err == nil {
			return spanWords(p, d)
		}
	case "at":
		if plan, err := parseAt(strings.TrimSpace(rest), loc); err == nil {
			once := plan.Next(time.Time{}).In(loc)
			return p.Text("schedule.once", strings.TrimSuffix(once.Format(p.Text("schedule.moment")), ":00"))
		}
	}
	if said := cronWords(p, line); said != "" {
		return said
	}
	return p.Text("schedule.line", line)
}

// spanWords describes an interval: "every hour", "every 2 hours", "every 90 minutes".
func spanWords(p lang.Printer, d time.Duration) string {
	switch {
	case d <= 0 || d%time.Second != 0:
		return p.Text("schedule.interval", FormatInterval(d))
	case d%time.Hour == 0:
		return p.Text("schedule.hours", int(d/time.Hour))
	case d%time.Minute == 0:
		return p.Text("schedule.minutes", int(d/time.Minute))
	}
	return p.Text("schedule.seconds", int(d/time.Second))
}

// cronWords describes a cron line, or returns "" if it cannot.
func cronWords(p lang.Printer, line string) string {
	if known, ok := map[string]string{"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *",
		"@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *"}[strings.ToLower(line)]; ok {
		line = known
	}
	fields := strings.Fields(line)
	if len(fields) == 6 && fields[0] == "0" {
		fields = fields[1:]
	}
	if len(fields) != 5 || fields[3] != "*" {
		return ""
	}
	minute, hour, dates, weekdays := fields[0], fields[1], fields[2], fields[4]
	every, ofClock := strings.CutPrefix(minute, "*/")
	n, err := strconv.Atoi(every)
	hourly := hour == "*" && dates == "*" && weekdays == "*"
	switch {
	case err != nil || n < 0 || n > 59:
		return ""
	case hourly && minute == "0":
		return p.Text("schedule.hours", 1)
	case hourly && ofClock && n > 1 && 60%n == 0:
		return p.Text("schedule.clock-minutes", n)
	case hourly && !ofClock:
		return p.Text("schedule.minute", n)
	case ofClock:
		return ""
	}
	days := daysWords(p, dates, weekdays)
	times := listWords(p, hour, 0, 23, func(h int) string { return fmt.Sprintf("%d:%02d", h, n) })
	if days == "" || times == "" || strings.Count(hour, ",") >= 6 { // no description is short enough
		return ""
	}
	return p.Text("schedule.at", days, times)
}

func daysWords(p lang.Printer, dates, weekdays string) string {
	switch {
	case dates == "*" && weekdays == "*":
		return p.Text("schedule.every-day")
	case dates == "*" && weekdays == workdays:
		return p.Text("schedule.workdays")
	case dates == "*" && weekdays == weekend:
		return p.Text("schedule.weekends")
	case dates == "*":
		if words := listWords(p, weekdays, 0, 6, func(n int) string { return p.Text(weekdayTexts[n]) }); words != "" {
			return p.Text("schedule.on-days", words)
		}
	case weekdays == "*":
		if words := listWords(p, dates, 1, 31, func(n int) string { return ordinal(p, n) }); words != "" {
			return p.Text("schedule.on-dates", words)
		}
	}
	return ""
}

// weekdayTexts contains the names of the weekdays in the order of cron.
var weekdayTexts = [...]lang.Key{"schedule.sunday", "schedule.monday", "schedule.tuesday", "schedule.wednesday",
	"schedule.thursday", "schedule.friday", "schedule.saturday"}

// listWords describes a list of numbers. It calls describe for each number. It returns "" if the list is invalid, or if
// a number is lower than lowest or higher than highest.
func listWords(p lang.Printer, list string, lowest, highest int, describe func(int) string) (words string) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		switch {
		case err != nil || n < lowest || n > highest:
			return ""
		case words == "":
			words = describe(n)
		default:
			words = p.Text("schedule.and", words, describe(n))
		}
	}
	return words
}

// ordinal returns a day of the month as a text, such as "1st".
func ordinal(p lang.Printer, n int) string {
	switch n {
	case 1, 21, 31:
		return p.Text("schedule.st", n)
	case 2, 22:
		return p.Text("schedule.nd", n)
	case 3, 23:
		return p.Text("schedule.rd", n)
	}
	return p.Text("schedule.th", n)
}
