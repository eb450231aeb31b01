package heartbeat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// phrase reads the words of a sentence, one after the other.
type phrase struct {
	words []string  // in lower case
	now   time.Time // naive
}

func (p *phrase) peek() string {
	if len(p.words) == 0 {
		return ""
	}
	return strings.TrimRight(p.words[0], ",")
}

func (p *phrase) next() string {
	w := p.peek()
	if len(p.words) > 0 {
		p.words = p.words[1:]
	}
	return w
}

// eat passes over a word if it is one of those.
func (p *phrase) eat(words ...string) bool {
	if len(p.words) > 0 && slices.Contains(words, p.peek()) {
		p.next()
		return true
	}
	return false
}

// read gives the schedule line of the whole sentence.
func (p *phrase) read() (string, error) {
	switch w := p.peek(); {
	case p.eat("every", "each"):
		return p.every()
	case p.eat("daily"):
		return p.atDays("*", "*")
	case p.eat("hourly"):
		return p.ended("every 1h")
	case p.eat("weekly"):
		return p.weekly()
	case p.eat("monthly"):
		return p.monthDays()
	case p.eat("in"):
		return p.in()
	case p.eat("today"):
		return p.onceOn(p.now)
	case p.eat("tomorrow"):
		return p.onceOn(p.now.AddDate(0, 0, 1))
	case p.eat("next"):
		return p.nextDay()
	case p.eat("on"):
		return p.on()
	case p.eat("weekdays", "weekends"):
		return p.atDays("*", dayGroups(w))
	case weekday(w) >= 0 && strings.HasSuffix(w, "s"):
		return p.weekDays()
	}
	return "", unclear("I do not know when %q is", strings.Join(p.words, " "))
}

// every reads what follows "every".
func (p *phrase) every() (string, error) {
	w := p.peek()
	switch {
	case p.eat("day", "morning", "evening", "night"):
		if w != "day" && len(p.words) == 0 {
			return "", missing("say at what time in the %s", w)
		}
		return p.atDays("*", "*")
	case p.eat("weekday", "workday", "weekend"):
		return p.atDays("*", dayGroups(w+"s"))
	case p.eat("week"):
		return p.weekly()
	case p.eat("month"):
		return p.monthDays()
	case p.eat("minute"):
		return p.ended("every 1m")
	case p.eat("hour"):
		return p.ended("every 1h")
	case p.eat("half") && (p.eat("hour") || p.eat("an") && p.eat("hour")):
		return p.ended("every 30m")
	case weekday(w) >= 0:
		return p.weekDays()
	}
	d, err := p.span()
	if err != nil {
		return "", err
	}
	return p.ended("every " + spanText(d))
}

// span reads "2 hours", "an hour" or "90m".
func (p *phrase) span() (time.Duration, error) {
	if d, err := time.ParseDuration(p.peek()); err == nil && d > 0 {
		p.next()
		return d, nil
	}
	word := p.next()
	n, err := strconv.Atoi(word)
	if i := slices.Index(numbers(), word); i >= 0 {
		n, err = i, nil
	}
	if word == "a" || word == "an" {
		n, err = 1, nil
	}
	if err != nil || n <= 0 || n > 100_000 {
		return 0, unclear("%q is no number", word)
	}
	unit := strings.TrimSuffix(p.next(), "s")
	d, ok := map[string]time.Duration{"second": time.Second, "sec": time.Second, "minute": time.Minute, "min": time.Minute,
		"hour": time.Hour, "hr": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour}[unit]
	if !ok {
		return 0, unclear("%q is no unit of time", unit)
	}
	if time.Duration(n) > mostInterval/d {
		return 0, fmt.Errorf("%d %ss is longer than a year", n, unit)
	}
	return time.Duration(n) * d, nil
}

// numbers are the numbers that people write as words, at their places.
func numbers() []string {
	return []string{"", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}
}

// spanText writes an interval as people do: 2h, not 2h0m0s.
func spanText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (p *phrase) ended(line string) (string, error) {
	if len(p.words) > 0 {
		return "", unclear("I do not know what %q means there", strings.Join(p.words, " "))
	}
	return line, nil
}

func (p *phrase) weekly() (string, error) {
	p.eat("on")
	if weekday(p.peek()) < 0 {
		return "", missing("say on which day of the week")
	}
	return p.weekDays()
}

// weekDays reads "mondays and fridays at 7".
func (p *phrase) weekDays() (string, error) {
	var days []string
	for weekday(p.peek()) >= 0 {
		days = append(days, strconv.Itoa(weekday(p.next())))
		for p.eat("and", "&", "on") {
		}
	}
	slices.Sort(days)
	return p.atDays("*", strings.Join(slices.Compact(days), ","))
}

// monthDays reads "on the 1st and the 15th at 9", after the month.
func (p *phrase) monthDays() (string, error) {
	p.eat("on")
	var days []string
	for {
		p.eat("the")
		n, ok := dayOfMonth(p.peek())
		if !ok {
			break
		}
		p.next()
		days = append(days, strconv.Itoa(n))
		for p.eat("and", "&") {
		}
	}
	if len(days) == 0 {
		return "", missing("say on which day of the month, such as \"on the 1st\"")
	}
	if p.eat("of") && !(p.eat("every", "each", "the") && p.eat("month")) {
		return "", unclear("only days of every month are understood")
	}
	return p.atDays(strings.Join(days, ","), "*")
}

// on reads what follows "on".
func (p *phrase) on() (string, error) {
	w := p.peek()
	switch {
	case p.eat("weekdays", "weekends", "workdays"):
		return p.atDays("*", dayGroups(w))
	case weekday(w) >= 0 && strings.HasSuffix(w, "s") && w != "tues" && w != "thurs":
		return p.weekDays()
	case weekday(w) >= 0:
		return "", missing("%q could mean once or always: say \"next %s\" or \"every %s\"", "on "+w, w, w)
	}
	if day, err := time.Parse("2006-01-02", w); err == nil {
		p.next()
		return p.onceOn(day)
	}
	return p.monthDays()
}

// in reads "20 minutes": once, that long from now.
func (p *phrase) in() (string, error) {
	d, err := p.span()
	if err != nil {
		return "", err
	}
	return p.ended("at " + p.now.Add(d).Format("2006-01-02 15:04:05"))
}

func (p *phrase) nextDay() (string, error) {
	day := weekday(p.next())
	if day < 0 {
		return "", missing("say the day, such as \"next friday at 9\"")
	}
	ahead := (day - int(p.now.Weekday()) + 7) % 7
	if ahead == 0 {
		ahead = 7
	}
	return p.onceOn(p.now.AddDate(0, 0, ahead))
}

func (p *phrase) onceOn(day time.Time) (string, error) {
	times, err := p.times()
	if err != nil {
		return "", err
	}
	if len(times) != 1 {
		return "", unclear("once is one time of day")
	}
	return p.ended("at " + day.Format("2006-01-02 ") + times[0].String())
}

// atDays reads the times of day, and makes the cron line.
func (p *phrase) atDays(dom, dow string) (string, error) {
	times, err := p.times()
	if err != nil {
		return "", err
	}
	var hours []string
	for _, t := range times {
		if t.minute != times[0].minute {
			return "", unclear("times of one schedule share their minute: make two of it")
		}
		hours = append(hours, strconv.Itoa(t.hour))
	}
	return p.ended(fmt.Sprintf("%d %s %s * %s", times[0].minute, strings.Join(hours, ","), dom, dow))
}
