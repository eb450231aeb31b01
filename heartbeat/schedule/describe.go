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
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := d / unit.of; d%unit.of == 0 && n == 1 {
			return unit.name
		} else if d%unit.of == 0 && n > 0 {
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
	minute, hour, dom, dow := fields[0], fields[1], fields[2], fields[4]
	if hour == "*" && dom == "*" && dow == "*" {
		return minutesWords(minute)
	}
	times := timesWords(minute, hour)
	days := daysWords(dom, dow)
	if times == "" || days == "" {
		return ""
	}
	return days + " at " + times
}

// minutesWords says what comes in every hour.
func minutesWords(minute string) string {
	if minute == "0" {
		return "every hour"
	}
	if n, ok := number(strings.TrimPrefix(minute, "*/"), 2); ok && strings.HasPrefix(minute, "*/") && n > 1 && 60%n == 0 {
		return fmt.Sprintf("every %d minutes of the clock", n)
	}
	if n, ok := number(minute, 2); ok && n < 60 {
		return fmt.Sprintf("every hour at minute %d", n)
	}
	return ""
}

func timesWords(minute, hours string) string {
	m, ok := number(minute, 2)
	if !ok || m > 59 {
		return ""
	}
	var times []string
	for _, text := range strings.Split(hours, ",") {
		h, ok := number(text, 2)
		if !ok || h > 23 || len(times) == timesMost {
			return ""
		}
		times = append(times, fmt.Sprintf("%d:%02d", h, m))
	}
	return andList(times)
}

func daysWords(dom, dow string) string {
	switch {
	case dom == "*" && dow == "*":
		return "every day"
	case dom == "*" && dow == workdays:
		return "every weekday"
	case dom == "*" && dow == weekend:
		return "on weekends"
	case dom == "*":
		return listed(dow, 6, "on ", func(n int) string { return strings.ToLower(time.Weekday(n).String()) + "s" })
	case dow == "*":
		return listed(dom, 31, "on the ", func(n int) string { return strconv.Itoa(n) + ordinal(n) })
	}
	return ""
}

// listed says a list of numbers up to most; empty if it is none.
func listed(list string, most int, before string, say func(int) string) string {
	var words []string
	for _, text := range strings.Split(list, ",") {
		n, ok := number(text, 2)
		if !ok || n > most || n == 0 && most == 31 {
			return ""
		}
		words = append(words, say(n))
	}
	return before + andList(words)
}

func ordinal(n int) string {
	switch {
	case n%10 == 1 && n != 11:
		return "st"
	case n%10 == 2 && n != 12:
		return "nd"
	case n%10 == 3 && n != 13:
		return "rd"
	}
	return "th"
}

func andList(words []string) string { return strings.Join(words, " and ") }
