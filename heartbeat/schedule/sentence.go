package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Spec is a schedule that a user wrote in words, in the form that Parse reads.
type Spec struct {
	Line string
	Zone string // the time zone that the user named; empty for none
}

// Split gives the line without a time zone that is a part of it, and the zone.
func (s Spec) Split() (line, zone string) {
	if line, zone, ok := cutZone(s.Line); ok {
		return line, zone
	}
	return s.Line, s.Zone
}

// ErrUnclear is a sentence that says no schedule, or could mean two. Its text has examples.
var ErrUnclear = errors.New(`say it like "every weekday at 8:30", "every 2 hours", "on mondays and fridays at 7", ` +
	`"daily at 07:00 Europe/Paris", "on the 1st at 9:00", "tomorrow at 9", "in 20 minutes", or as a cron line such as "30 8 * * 1-5"`)

// hint is an ErrUnclear that says what is missing of a schedule which was understood so far.
type hint struct{ error }

func (h hint) Unwrap() error { return h.error }

func missing(format string, args ...any) error { return hint{unclear(format, args...)} }

func unclear(format string, args ...any) error {
	return fmt.Errorf("%s; %w", fmt.Sprintf(format, args...), ErrUnclear)
}

// sentenceMost bounds a schedule that a user writes, in words and bytes.
const (
	sentenceWords = 16
	sentenceBytes = 200
)

// ParseSentence reads when something is to be done, in words or as a schedule. now and loc place "tomorrow" and
// "in 20 minutes". It understands few sentences and guesses at none.
func ParseSentence(text string, now time.Time, loc *time.Location) (Spec, error) {
	words := strings.Fields(text)
	if len(words) > sentenceWords || len(text) > sentenceBytes {
		return Spec{}, unclear("that is too long for a schedule")
	}
	zone := ""
	if n := len(words); n > 0 && namesZone(words[n-1]) {
		found, err := Zone(words[n-1])
		if err != nil {
			return Spec{}, unclear("%s", err)
		}
		zone, loc, words = words[n-1], found, words[:n-1]
	}
	line := strings.Join(words, " ")
	if first, rest, cut := strings.Cut(line, " "); cut && (strings.EqualFold(first, "every") || strings.EqualFold(first, "at")) {
		line = strings.ToLower(first) + " " + rest
	}
	plan, err := Parse(line, loc, now)
	if err != nil && !cronLike().MatchString(line) {
		if line, err = readSentence(normalised(words), wallTime(now, loc)); err == nil {
			plan, err = Parse(line, loc, now)
		}
	}
	if err == nil {
		err = Check(plan, now)
	}
	if err != nil {
		return Spec{}, err
	}
	return Spec{Line: line, Zone: zone}, nil
}

// cronLike is a line that its reader means as a cron line.
var cronLike = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:@|CRON_TZ=|TZ=|[0-9*/,?-]+(?: [0-9*/,?-]+){4,5}$)`)
})

// normalised gives words in lower case, without commas after them.
func normalised(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, strings.ToLower(strings.TrimRight(w, ",")))
	}
	return strings.Join(out, " ")
}

// ParseRequest splits what a user wrote into when and what: the schedule comes first, and what follows its
// longest reading is the prompt. A line break or a colon and a space after the schedule may part them.
func ParseRequest(text string, now time.Time, loc *time.Location) (Spec, string, error) {
	text = strings.TrimSpace(text)
	if head, rest, ok := strings.Cut(text, "\n"); ok {
		if said, err := ParseSentence(strings.TrimSuffix(strings.TrimSpace(head), ":"), now, loc); err == nil {
			return said, strings.TrimSpace(rest), nil
		}
	}
	ends := wordEnds(text, sentenceWords)
	why := ErrUnclear
	for i := len(ends) - 1; i >= 0; i-- {
		said, err := ParseSentence(strings.TrimRight(text[:ends[i]], ":,"), now, loc)
		if err == nil {
			return said, strings.TrimSpace(text[ends[i]:]), nil
		}
		if more := telling(err); more > telling(why) || more == tellsWrong {
			why = err
		}
	}
	return Spec{}, "", why
}

// How much the reason tells that a text is no schedule.
const (
	tellsNothing = iota
	tellsMissing // what is missing
	tellsWrong   // what is wrong with a schedule that is one
)

func telling(err error) int {
	helps := hint{}
	switch {
	case !errors.Is(err, ErrUnclear):
		return tellsWrong
	case errors.As(err, &helps):
		return tellsMissing
	}
	return tellsNothing
}

// namesZone says whether a word looks like the name of a time zone, and not like a part of a cron line.
func namesZone(word string) bool {
	return word == "UTC" || strings.Contains(word, "/") && (word[0] >= 'A' && word[0] <= 'Z')
}

// wordEnds gives where the first words of a text end.
func wordEnds(text string, most int) (ends []int) {
	end := 0
	for word := range strings.FieldsSeq(text) {
		if len(ends) == most {
			break
		}
		end += strings.Index(text[end:], word) + len(word)
		ends = append(ends, end)
	}
	return ends
}
