package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A form is one kind of sentence. In its pattern "a|b" is one of two words, "[a]" a word that may be left out, and "{a}" a
// slot, whose reader slots gives. line makes the schedule line of a sentence that matches.
type form struct {
	pattern  string
	weekdays string // of forms that name them without a slot
	line     func(s *sentence) (string, error)
}

// Days of the week as cron writes them.
const (
	workdays = "1-5"
	weekend  = "0,6"
)

// forms are the sentences that ParseSentence reads.
func forms() []form {
	return []form{
		{"daily {times}", "*", cronLine},
		{"every|each day|morning|evening|night {times}", "*", cronLine},
		{"every|each weekday|workday {times}", workdays, cronLine},
		{"every|each weekend {times}", weekend, cronLine},
		{"weekdays {times}", workdays, cronLine},
		{"on weekdays|workdays {times}", workdays, cronLine},
		{"[on] weekends {times}", weekend, cronLine},

		{"hourly", "", interval(time.Hour)},
		{"every|each minute", "", interval(time.Minute)},
		{"every|each hour", "", interval(time.Hour)},
		{"every|each half [an] hour", "", interval(30 * time.Minute)},
		{"every|each {span}", "", func(s *sentence) (string, error) { return interval(s.span)(s) }},

		{"every|each {weekdays} {times}", "", cronLine},
		{"every|each week [on] {weekdays} {times}", "", cronLine},
		{"weekly [on] {weekdays} {times}", "", cronLine},
		{"[on] {plurals} {times}", "", cronLine},
		{"every|each month [on] {dates} {times}", "*", cronLine},
		{"monthly [on] {dates} {times}", "*", cronLine},
		{"on {dates} {times}", "*", cronLine},

		{"in {span}", "", func(s *sentence) (string, error) { return "at " + s.now.Add(s.span).Format(time.DateTime), nil }},
		{"today {times}", "", func(s *sentence) (string, error) { return s.once(s.now) }},
		{"tomorrow {times}", "", func(s *sentence) (string, error) { return s.once(s.now.AddDate(0, 0, 1)) }},
		{"next {weekday} {times}", "", func(s *sentence) (string, error) { return s.once(s.day) }},
		{"on {date} {times}", "", func(s *sentence) (string, error) { return s.once(s.day) }},
	}
}

func interval(d time.Duration) func(*sentence) (string, error) {
	return func(*sentence) (string, error) { return "every " + FormatInterval(d), nil }
}

// cronLine makes a cron line of times of day, days of the week and days of the month.
func cronLine(s *sentence) (string, error) {
	var hours []string
	for _, t := range s.times {
		if t.minute != s.times[0].minute {
			return "", unclear("times of one schedule share their minute: make two of it")
		}
		hours = append(hours, strconv.Itoa(t.hour))
	}
	return fmt.Sprintf("%d %s %s * %s", s.times[0].minute, strings.Join(hours, ","), s.dates, s.weekdays), nil
}

// once makes the line of a single moment.
func (s *sentence) once(day time.Time) (string, error) {
	if len(s.times) != 1 {
		return "", unclear("once is one time of day")
	}
	return "at " + day.Format("2006-01-02 ") + s.times[0].String(), nil
}

// sentence is a sentence and what the slots read of it.
type sentence struct {
	words []string // in lower case
	pos   int      // of the next word
	now   time.Time

	weekdays string // as cron writes them
	dates    string // days of the month, as cron writes them
	times    []timeOfDay
	span     time.Duration
	day      time.Time
}

// read gives the schedule line of the first form that matches. If none does, the error is that of the form that matched the
// most words.
func (s sentence) read() (string, error) {
	most, why := 0, unclear("I do not know when %q is", strings.Join(s.words, " "))
	for _, f := range forms() {
		try := s
		line, err := try.match(f)
		if err == nil {
			return line, nil
		}
		if try.pos > most {
			most, why = try.pos, err
		}
	}
	return "", why
}

// match reads a sentence as a form.
func (s *sentence) match(f form) (string, error) {
	s.dates, s.weekdays = "*", f.weekdays
	for part := range strings.FieldsSeq(f.pattern) {
		if slot, ok := strings.CutPrefix(part, "{"); ok {
			if err := slots(strings.TrimSuffix(slot, "}"))(s); err != nil {
				return "", err
			}
			continue
		}
		word, optional := strings.CutPrefix(part, "[")
		if !s.eat(strings.Split(strings.TrimSuffix(word, "]"), "|")...) && !optional {
			return "", s.unknown()
		}
	}
	if s.pos < len(s.words) {
		return "", s.unknown()
	}
	return f.line(s)
}

// unknown is the error for the next words.
func (s *sentence) unknown() error {
	return unclear("I do not know what %q means there", strings.Join(s.words[s.pos:], " "))
}

func (s *sentence) peek() string {
	if s.pos == len(s.words) {
		return ""
	}
	return strings.TrimRight(s.words[s.pos], ",")
}

func (s *sentence) next() string {
	w := s.peek()
	s.pos = min(s.pos+1, len(s.words))
	return w
}

// eat passes over the next word if it is one of those.
func (s *sentence) eat(words ...string) bool {
	if s.pos == len(s.words) || !slices.Contains(words, s.peek()) {
		return false
	}
	s.pos++
	return true
}
