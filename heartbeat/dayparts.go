package heartbeat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// timeOfDay is one that a person wrote.
type timeOfDay struct{ hour, minute int }

func (t timeOfDay) String() string { return fmt.Sprintf("%02d:%02d", t.hour, t.minute) }

// timesMost bounds the times of day of one sentence.
const timesMost = 6

// times reads "at 8:30", "at 9 and 17" or "at 7 pm".
func (p *phrase) times() ([]timeOfDay, error) {
	if !p.eat("at") && len(p.words) == 0 {
		return nil, missing("say at what time")
	}
	var times []timeOfDay
	for len(p.words) > 0 && len(times) < timesMost {
		word := p.next()
		if w := p.peek(); w == "am" || w == "pm" || w == "a.m." || w == "p.m." {
			word += strings.ReplaceAll(p.next(), ".", "")
		}
		p.eat("o'clock", "oclock", "h")
		t, ok := readTime(word)
		if !ok {
			return nil, unclear("%q is no time of day", word)
		}
		if !slices.Contains(times, t) {
			times = append(times, t)
		}
		if !p.eat("and", "&") {
			break
		}
		p.eat("at")
	}
	if len(times) == 0 {
		return nil, missing("say at what time")
	}
	return times, nil
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

// number reads plain digits, at most so many.
func number(text string, most int) (int, bool) {
	if text == "" || len(text) > most || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// weekday is the number of a day's name, -1 for what is none. Sunday is 0.
func weekday(word string) int {
	for i, name := range []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"} {
		short := map[int][]string{2: {"tues"}, 3: {"weds"}, 4: {"thu", "thur", "thurs"}}[i]
		if word == name || word == name+"s" || word == name[:3] || slices.Contains(short, word) {
			return i
		}
	}
	return -1
}

// dayGroups are the days of the week of "weekdays" and "weekends", as cron writes them.
func dayGroups(word string) string {
	if word == "weekends" {
		return "0,6"
	}
	return "1-5"
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
