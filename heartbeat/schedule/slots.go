package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// slots gives the reader of a slot of a form.
func slots(name string) func(*sentence) error {
	return map[string]func(*sentence) error{
		"times":    (*sentence).readTimes,
		"span":     (*sentence).readSpan,
		"weekdays": (*sentence).readWeekdays,
		"plurals":  (*sentence).readPlurals,
		"weekday":  (*sentence).readNext,
		"dates":    (*sentence).readDates,
		"date":     (*sentence).readDate,
	}[name]
}

// timeOfDay is a time of day of a sentence.
type timeOfDay struct{ hour, minute int }

func (t timeOfDay) String() string { return fmt.Sprintf("%02d:%02d", t.hour, t.minute) }

// timesMost limits the times of day of one sentence.
const timesMost = 6

// readTimes reads "at 8:30", "at 9 and 17" or "at 7 pm".
func (s *sentence) readTimes() error {
	if !s.eat("at") && s.pos == len(s.words) {
		return missing("say at what time")
	}
	for s.pos < len(s.words) && len(s.times) < timesMost {
		word := s.next()
		if w := s.peek(); w == "am" || w == "pm" || w == "a.m." || w == "p.m." {
			word += strings.ReplaceAll(s.next(), ".", "")
		}
		s.eat("o'clock", "oclock", "h")
		t, ok := readTime(word)
		if !ok {
			return unclear("%q is no time of day", word)
		}
		if !slices.Contains(s.times, t) {
			s.times = append(s.times, t)
		}
		if !s.eat("and", "&") {
			break
		}
		s.eat("at")
	}
	if len(s.times) == 0 {
		return missing("say at what time")
	}
	return nil
}

// readTime reads "8", "8:30", "08.30", "8am", "8:30pm", "noon" and "midnight".
func readTime(word string) (timeOfDay, bool) {
	switch word {
	case "noon", "midday":
		return timeOfDay{12, 0}, true
	case "midnight":
		return timeOfDay{0, 0}, true
	}
	digits, half := word, 0
	if text, ok := strings.CutSuffix(word, "am"); ok {
		digits, half = text, 1
	} else if text, ok := strings.CutSuffix(word, "pm"); ok {
		digits, half = text, 2
	}
	hours, minutes, parted := strings.Cut(strings.Replace(digits, ".", ":", 1), ":")
	hour, ok := number(hours, 2)
	if !ok || parted && len(minutes) != 2 {
		return timeOfDay{}, false
	}
	minute := 0
	if parted {
		if minute, ok = number(minutes, 2); !ok {
			return timeOfDay{}, false
		}
	}
	if half > 0 {
		if hour < 1 || hour > 12 {
			return timeOfDay{}, false
		}
		hour = hour%12 + 12*(half-1)
	}
	return timeOfDay{hour, minute}, hour < 24 && minute < 60
}

// number reads decimal digits, at most so many.
func number(text string, most int) (int, bool) {
	if text == "" || len(text) > most || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// weekday is the number of the name of a day, from 0 for sunday; -1 for another word.
func weekday(word string) int {
	for i, name := range []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"} {
		short := map[int][]string{2: {"tues"}, 3: {"weds"}, 4: {"thu", "thur", "thurs"}}[i]
		if word == name || word == name+"s" || word == name[:3] || slices.Contains(short, word) {
			return i
		}
	}
	return -1
}

// dayOfMonth reads "1st", "15th" or "15.".
func dayOfMonth(word string) (int, bool) {
	for _, end := range []string{"st", "nd", "rd", "th", "."} {
		if digits, ok := strings.CutSuffix(word, end); ok {
			n, ok := number(digits, 2)
			return n, ok && n >= 1 && n <= 31
		}
	}
	return 0, false
}

// readWeekdays reads "monday and friday".
func (s *sentence) readWeekdays() error {
	var days []string
	for weekday(s.peek()) >= 0 {
		days = append(days, strconv.Itoa(weekday(s.next())))
		for s.eat("and", "&", "on") {
		}
	}
	if len(days) == 0 {
		return missing("say on which day of the week")
	}
	slices.Sort(days)
	s.weekdays = strings.Join(slices.Compact(days), ",")
	return nil
}

// readPlurals reads "mondays and fridays". A single day such as "friday" may mean one day or every week.
func (s *sentence) readPlurals() error {
	w := s.peek()
	short := s.pos > 0 && (w == "tues" || w == "thurs")
	if weekday(w) >= 0 && (short || !strings.HasSuffix(w, "s")) {
		s.next()
		return missing("%q could mean once or always: say \"next %s\" or \"every %s\"", "on "+w, w, w)
	}
	return s.readWeekdays()
}

// readNext reads "friday": the next one after today.
func (s *sentence) readNext() error {
	day := weekday(s.peek())
	if day < 0 {
		return missing("say the day, such as \"next friday at 9\"")
	}
	s.next()
	s.day = s.now.AddDate(0, 0, (day-int(s.now.Weekday())+6)%7+1)
	return nil
}

// readDate reads "2026-12-24".
func (s *sentence) readDate() (err error) {
	if s.day, err = time.Parse(time.DateOnly, s.peek()); err != nil {
		return s.unknown()
	}
	s.next()
	return nil
}

// readDates reads "the 1st and the 15th of every month".
func (s *sentence) readDates() error {
	var days []string
	for {
		s.eat("the")
		n, ok := dayOfMonth(s.peek())
		if !ok {
			break
		}
		s.next()
		days = append(days, strconv.Itoa(n))
		for s.eat("and", "&") {
		}
	}
	if len(days) == 0 {
		return missing("say on which day of the month, such as \"on the 1st\"")
	}
	if s.eat("of") && !(s.eat("every", "each", "the") && s.eat("month")) {
		return unclear("only days of every month are understood")
	}
	s.dates = strings.Join(days, ",")
	return nil
}

// readSpan reads "2 hours", "an hour" or "90m".
func (s *sentence) readSpan() error {
	if d, err := time.ParseDuration(s.peek()); err == nil && d > 0 {
		s.next()
		s.span = d
		return nil
	}
	word := s.peek()
	n, err := strconv.Atoi(word)
	if i := slices.Index(numbers(), word); i >= 0 {
		n, err = i, nil
	}
	if word == "a" || word == "an" {
		n, err = 1, nil
	}
	if err != nil || n <= 0 || n > 100_000 {
		return unclear("%q is no number", word)
	}
	s.next()
	unit := strings.TrimSuffix(s.peek(), "s")
	d, ok := map[string]time.Duration{"second": time.Second, "sec": time.Second, "minute": time.Minute, "min": time.Minute,
		"hour": time.Hour, "hr": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour}[unit]
	if !ok {
		return unclear("%q is no unit of time", unit)
	}
	s.next()
	if time.Duration(n) > mostInterval/d {
		return fmt.Errorf("%d %ss is longer than a year", n, unit)
	}
	s.span = time.Duration(n) * d
	return nil
}

// numbers are the numbers that users write as words, at their positions.
func numbers() []string {
	return []string{"", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}
}

// FormatInterval writes an interval without empty units: 2h, not 2h0m0s.
func FormatInterval(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
