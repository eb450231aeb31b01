package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Describe puts a schedule in words. ParseSentence reads most descriptions of the lines it makes; a line without words
// is shown as it is.
func Describe(schedule string) string {
	line := strings.TrimSpace(schedule)
	word, rest, _ := strings.Cut(line, " ")
	switch strings.ToLower(word) {
	case "every", "@every":
		if d, err := time.ParseDuration(strings.TrimSpace(rest)); err == nil {
			return "every " + spanWords(d)
		}
	case "at":
		if plan, err := parseAt(strings.TrimSpace(rest), time.UTC); err == nil {
			return "once, on " + strings.TrimSuffix(plan.Next(time.Time{}).Format("Mon 2 Jan 2006 at 15:04:05"), ":00")
		}
	}
	if said := cronWords(line); said != "" {
		return said
	}
	return "by the cron line " + line
}

// spanWords writes an interval: "hour", "2 hours", "90 minutes".
func spanWords(d time.Duration) string {
	for _, unit := range units {
		if n := d / unit.of; unit.of <= time.Hour && n > 0 && d%unit.of == 0 {
			if n == 1 {
				return unit.name
			}
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return FormatInterval(d)
}

// cronWords says a cron line; empty for one that has no words.
func cronWords(line string) string {
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
		return "every hour"
	case hourly && ofClock && n > 1 && 60%n == 0:
		return fmt.Sprintf("every %d minutes of the clock", n)
	case hourly && !ofClock:
		return fmt.Sprintf("every hour at minute %d", n)
	case ofClock:
		return ""
	}
	days := daysWords(dates, weekdays)
	times := listed(hour, 0, 23, func(h int) string { return fmt.Sprintf("%d:%02d", h, n) })
	if days == "" || times == "" || strings.Count(hour, ",") >= 6 { // which no sentence says
		return ""
	}
	return days + " at " + times
}

func daysWords(dates, weekdays string) string {
	before, words := "", ""
	switch {
	case dates == "*" && weekdays == "*":
		return "every day"
	case dates == "*" && weekdays == workdays:
		return "every weekday"
	case dates == "*" && weekdays == weekend:
		return "on weekends"
	case dates == "*":
		before = "on "
		words = listed(weekdays, 0, 6, func(n int) string { return strings.ToLower(time.Weekday(n).String()) + "s" })
	case weekdays == "*":
		before = "on the "
		words = listed(dates, 1, 31, func(n int) string { return strconv.Itoa(n) + ordinal(n) })
	}
	if words == "" {
		return ""
	}
	return before + words
}

// listed says a list of numbers within bounds; empty if it is none.
func listed(list string, least, most int, say func(int) string) string {
	var words []string
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return ""
		}
		words = append(words, say(n))
	}
	return strings.Join(words, " and ")
}

func ordinal(n int) string {
	if end, ok := map[int]string{1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}[n]; ok {
		return end
	}
	return "th"
}
