package schedule

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ductor/lang"
)

// parts replaces placeholders in forms and hints by regular expressions. Placeholders are in capital letters.
var parts = strings.NewReplacer(
	"EVERY", `(?:every|each)`,
	"AND", `(?:and|&)`,
	"TIMES", `(?:at )?(?P<times>CLOCK(?: AND(?: at)? CLOCK){0,5})`,
	"CLOCK", `(?:\d\d?(?:[:.]\d\d)?(?: ?[ap]\.?m\.?)?|noon|midday|midnight)(?: (?:o'clock|oclock|h))?`,
	"PLURALS", `(?:on (?P<days>(?:NAMEs|weds)MORE)|(?P<weekdays>(?:NAMEs|tues|weds|thurs)MORE))`,
	"DAYS", `(?P<days>DAYMORE)`,
	"MORE", `(?:(?: AND| on)* DAY)*(?: AND| on)*`,
	"DAY", `(?:NAMEs?|sun|mon|tues?|weds?|thu|thurs?|fri|sat)`,
	"NAME", `(?:sun|mon|tues|wednes|thurs|fri|satur)day`,
	"DATES", `(?:the )?(?P<dates>DATE(?:(?: AND| the)* DATE)*(?: AND| the)*)(?: of (?:EVERY|the) month)?`,
	"DATE", `(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th|\.)`,
	"SPAN", `(?:(?P<duration>(?:[\d.]+[hms])+)|(?P<number>NUMBER) `+
		`(?P<unit>second|sec|minute|min|hour|hr|day|week)s?|(?P<half>half(?: an)? hour))`,
	"NUMBER", `(?:\d{1,6}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)`,
)

func pattern(text string) *regexp.Regexp {
	for more := parts.Replace(text); more != text; more = parts.Replace(text) {
		text = more
	}
	return regexp.MustCompile("^(?:" + text + ")(?P<rest>(?: .*)?)$")
}

// form is a kind of sentence that ParseSentence understands, such as "every Monday at 9:00".
type form struct {
	pattern  *regexp.Regexp                 // matches the sentences of this kind
	timed    bool                           // the sentences end with times of day
	weekdays string                         // weekdays in cron's notation; empty if the sentence names them
	convert  func(sentence) (string, error) // converts a matching sentence to a line for Parse
}

// Days of the week in cron's notation.
const (
	workdays = "1-5"
	weekend  = "0,6"
)

// forms returns all kinds of sentences. It compiles them when it is first called, because that takes 3 ms and a
// megabyte, and most processes never need them.
var forms = sync.OnceValue(func() []form {
	return []form{
		timed(`daily|EVERY (?:day|morning|evening|night)`, "*", cronLine),
		timed(`EVERY (?:weekday|workday)|(?:on )?weekdays|on workdays`, workdays, cronLine),
		timed(`(?:EVERY weekend|(?:on )?weekends)`, weekend, cronLine),
		timed(`(?:EVERY(?: week(?: on)?)?|weekly(?: on)?) DAYS`, "", cronLine),
		timed(`PLURALS`, "", cronLine),
		timed(`(?:(?:EVERY month|monthly)(?: on)?|on) DATES`, "*", cronLine),
		timed(`today|(?P<tomorrow>tomorrow)|next (?P<next>DAY)|on (?P<date>\d{4}-\d\d-\d\d)`, "", once),
		{pattern(`hourly|EVERY (?:(?P<one>minute|hour)|SPAN)`), false, "", interval},
		{pattern(`in SPAN`), false, "", afterInterval},
	}
})

func timed(text, weekdays string, convert func(sentence) (string, error)) form {
	return form{pattern(`(?:` + text + `)(?: TIMES)?`), true, weekdays, convert}
}

// hints returns patterns for sentences that start like a schedule but are incomplete. Each pattern has a text that
// names the missing part. The text quotes the word that the pattern captures.
var hints = sync.OnceValue(func() []incomplete {
	return []incomplete{
		{pattern(`(?:on )?(?P<word>DAY)`), func(p lang.Printer, word string) string {
			return p.Text("job.once-or-always", word)
		}},
		{pattern(`next`), func(p lang.Printer, _ string) string { return p.Text("job.no-day") }},
		{pattern(`weekly|EVERY week`), func(p lang.Printer, _ string) string { return p.Text("job.no-day-of-week") }},
		{pattern(`monthly|EVERY month`), func(p lang.Printer, _ string) string {
			return p.Text("job.no-day-of-month")
		}},
		{pattern(`(?:EVERY|in) NUMBER (?P<word>\S+?)s?`), func(p lang.Printer, word string) string {
			return p.Text("job.no-unit", word)
		}},
	}
})

// incomplete is a hint for sentences that match a pattern.
type incomplete struct {
	pattern *regexp.Regexp
	explain func(p lang.Printer, word string) string
}

// sentence is a user's description of a schedule, and the form that matches it.
type sentence struct {
	form  form
	now   time.Time         // in the time zone of the schedule
	found map[string]string // matched groups of the form's pattern, by name
}

// readSentence converts a sentence to a line for Parse. It uses the first form that matches the whole sentence. If no
// form matches the whole sentence, the error refers to the form that matches the longest beginning. If no form matches
// any beginning, the error is a hint.
func readSentence(text string, now time.Time) (string, error) {
	why, least := error(nil), len(text)
	for _, f := range forms() {
		found := match(f.pattern, text)
		if found == nil {
			continue
		}
		rest := strings.TrimSpace(found["rest"])
		if rest == "" && (found["times"] != "" || !f.timed) {
			return f.convert(sentence{f, now, found})
		}
		if len(rest) < least {
			why, least = restError(f, found, rest), len(rest)
		}
	}
	if why != nil {
		return "", why
	}
	for _, h := range hints() {
		if found := match(h.pattern, text); found != nil {
			return "", hint{unclearError(func(p lang.Printer) string { return h.explain(p, found["word"]) })}
		}
	}
	return "", unknownError(text)
}

// match returns the named groups of a match. It returns nil if the text does not match.
func match(p *regexp.Regexp, text string) map[string]string {
	groups := p.FindStringSubmatch(text)
	if groups == nil {
		return nil
	}
	found := map[string]string{}
	for i, name := range p.SubexpNames() {
		found[name] = groups[i]
	}
	return found
}

var wantsTime = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:at|and|&)(?: at)? (\S+)`) })

// restError returns the error for a sentence whose beginning matches the form f. rest contains the words that do not
// match.
func restError(f form, found map[string]string, rest string) error {
	word := wantsTime().FindStringSubmatch(rest)
	switch {
	case f.timed && (rest == "" || rest == "at"):
		return hint{unclearError(func(p lang.Printer) string { return p.Text("job.no-time") })}
	case f.timed && word != nil:
		return noTimeOfDay(word[1])
	case found["dates"] != "" && strings.HasPrefix(rest, "of "):
		return unclearError(func(p lang.Printer) string { return p.Text("job.monthly-only") })
	}
	return unclearError(func(p lang.Printer) string { return p.Text("job.unknown-words", rest) })
}

// cronLine returns a cron line for the times of day, days of the week and days of the month in a sentence.
func cronLine(s sentence) (string, error) {
	times, err := timesOf(s.found["times"])
	if err != nil {
		return "", err
	}
	var hours []int
	for _, t := range times {
		if t.minute != times[0].minute {
			return "", unclearError(func(p lang.Printer) string { return p.Text("job.different-minutes") })
		}
		hours = append(hours, t.hour)
	}
	var dates, days []int
	for _, date := range digits().FindAllString(s.found["dates"], -1) {
		n, _ := strconv.Atoi(date) // no error, because the pattern matches only numbers
		dates = append(dates, n)
	}
	for _, day := range dayName().FindAllString(s.found["days"]+s.found["weekdays"], -1) {
		days = append(days, weekday(day))
	}
	slices.Sort(dates)
	slices.Sort(days)
	return fmt.Sprintf("%d %s %s * %s", times[0].minute, cronList(hours), cronList(dates),
		cmp.Or(s.form.weekdays, cronList(days))), nil
}

func cronList(numbers []int) string {
	if len(numbers) == 0 {
		return "*"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(slices.Compact(numbers)), " ", ","), "[]")
}

// once converts a sentence with a single time to a line for Parse.
func once(s sentence) (string, error) {
	times, err := timesOf(s.found["times"])
	if err != nil {
		return "", err
	}
	if len(times) != 1 {
		return "", unclearError(func(p lang.Printer) string { return p.Text("job.one-time") })
	}
	day := wallTime(s.now, s.now.Location())
	switch next, date := s.found["next"], s.found["date"]; {
	case s.found["tomorrow"] != "":
		day = day.AddDate(0, 0, 1)
	case next != "": // "next friday" is never today
		day = day.AddDate(0, 0, (weekday(next)-int(day.Weekday())+6)%7+1)
	case date != "":
		if day, err = time.Parse(time.DateOnly, date); err != nil {
			return "", unclearError(func(p lang.Printer) string { return p.Text("job.no-date", date) })
		}
	}
	return fmt.Sprintf("at %s %02d:%02d", day.Format(time.DateOnly), times[0].hour, times[0].minute), nil
}

func interval(s sentence) (string, error) {
	d, err := spanOf(s.found)
	return "every " + FormatInterval(d), err
}

// afterInterval counts days and weeks by the calendar, and shorter units as elapsed time. The line for elapsed time
// contains the offset from UTC, because clocks can show the same time twice.
func afterInterval(s sentence) (string, error) {
	d, err := spanOf(s.found)
	if unit := s.found["unit"]; unit == "day" || unit == "week" {
		return "at " + wallTime(s.now, s.now.Location()).Add(d).Format(time.DateTime), err
	}
	return "at " + s.now.Add(d).Format(time.RFC3339), err
}

var (
	clock = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`noon|midday|midnight|(\d\d?)(?:[:.](\d\d))?(?: ?([ap])\.?m\.?)?`)
	})
	digits  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\d+`) })
	dayName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`sun|mon|tue|wed|thu|fri|sat`) })
)

// weekday returns the number of a weekday. Sunday is 0.
func weekday(name string) int { return strings.Index("sunmontuewedthufrisat", name[:3]) / 3 }

type timeOfDay struct{ hour, minute int }

// timesOf parses a list of times of day. It drops duplicates.
func timesOf(text string) (times []timeOfDay, err error) {
	for _, m := range clock().FindAllStringSubmatch(text, -1) {
		hour, _ := strconv.Atoi(m[1]) // 0 for a word such as noon
		minute, _ := strconv.Atoi("0" + m[2])
		if minute > 59 || hour > 23 || m[3] != "" && (hour < 1 || hour > 12) {
			return nil, wrongTime{noTimeOfDay(strings.TrimSpace(m[0]))}
		}
		if m[3] != "" {
			hour %= 12
		}
		if m[3] == "p" || m[0] == "noon" || m[0] == "midday" {
			hour += 12
		}
		if t := (timeOfDay{hour, minute}); !slices.Contains(times, t) {
			times = append(times, t)
		}
	}
	return times, nil
}

// units lists the units of time, the longest first.
var units = []struct {
	name string
	of   time.Duration
}{{"week", 7 * 24 * time.Hour}, {"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second",
	time.Second}}

// spanOf returns the duration in a sentence. found contains the groups of the match.
func spanOf(found map[string]string) (time.Duration, error) {
	if text := found["duration"]; text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, unclearError(func(p lang.Printer) string { return p.Text("job.no-interval", text) })
		}
		return d, nil
	}
	if found["half"] != "" {
		return 30 * time.Minute, nil
	}
	n, err := strconv.Atoi(found["number"])
	if words := strings.Fields("a one two three four five six seven eight nine ten eleven twelve"); err != nil {
		n = max(slices.Index(words, found["number"]), 1)
	}
	name := cmp.Or(found["one"]+found["unit"], "hour") // both groups are empty for "hourly"
	for _, unit := range units {
		if unit.name[0] != name[0] { // names may be abbreviated, so compare first letters
			continue
		}
		if time.Duration(n) > maxInterval/unit.of {
			return 0, &lang.Error{Explain: func(p lang.Printer) string { return p.Text("job.over-a-year") }}
		}
		return time.Duration(n) * unit.of, nil
	}
	return 0, unclearError(func(p lang.Printer) string { return p.Text("job.no-unit", name) })
}

// FormatInterval formats a duration without trailing zeros: 2h, not 2h0m0s.
func FormatInterval(d time.Duration) string {
	text := d.String()
	for _, empty := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, empty) {
			text = text[:len(text)-2]
		}
	}
	return text
}
