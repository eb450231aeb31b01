package schedule

import (
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"

	"ductor/lang"
)

// Spec is a schedule that a user wrote, converted to a line for Parse.
type Spec struct {
	Line string
	Zone string // the time zone in the user's text; may be empty
}

// Split returns the line without CRON_TZ, and the time zone. The zone comes from CRON_TZ, or else from Zone.
func (s Spec) Split() (line, zone string) {
	if line, zone, ok := cutZone(s.Line); ok {
		return line, zone
	}
	return s.Line, s.Zone
}

// ErrUnclear means that ParseSentence does not understand a text, or that the text is ambiguous. The *lang.Error around
// it contains examples.
var ErrUnclear = errors.New("unclear")

// examples lists sentences that ParseSentence understands.
const examples = `"every weekday at 8:30", "every 2 hours", "on mondays and fridays at 7", ` +
	`"daily at 07:00 Europe/Paris", "on the 1st at 9:00", "tomorrow at 9", "in 20 minutes"`

// unknownError returns an ErrUnclear about a text that looks like no schedule at all.
func unknownError(text string) error {
	return &lang.Error{
		Explain: func(p lang.Printer) string { return p.Text("job.unknown-time", text, examples) }, Kind: ErrUnclear,
	}
}

// hint is an ErrUnclear that names the missing part of a schedule.
type hint struct{ error }

func (h hint) Unwrap() error { return h.error }

// wrongTime is an ErrUnclear that quotes a time of day that does not exist, such as 25:00.
type wrongTime struct{ error }

func (w wrongTime) Unwrap() error { return w.error }

func noTimeOfDay(word string) error {
	return unclearError(func(p lang.Printer) string { return p.Text("job.no-time-of-day", word) })
}

// unclearError returns an ErrUnclear. explain returns a sentence about the mistake.
func unclearError(explain func(p lang.Printer) string) error {
	return &lang.Error{
		Explain: func(p lang.Printer) string { return p.Text("job.unclear", explain(p), examples) }, Kind: ErrUnclear,
	}
}

// Limits of the text for ParseSentence.
const (
	sentenceWords = 16
	sentenceBytes = 200
)

// ParseSentence parses a schedule in words, or in the syntax of Parse. now and loc determine the meaning of "tomorrow"
// and "in 20 minutes". ParseSentence understands few sentences and never guesses.
func ParseSentence(text string, now time.Time, loc *time.Location) (Spec, error) {
	words := strings.Fields(text)
	if len(words) > sentenceWords || len(text) > sentenceBytes {
		return Spec{}, unclearError(func(p lang.Printer) string { return p.Text("job.long-schedule") })
	}
	zone := ""
	if n := len(words); n > 0 && namesZone(words[n-1]) {
		zone = words[n-1]
		found, err := Zone(zone)
		if err != nil {
			return Spec{}, unclearError(func(p lang.Printer) string { return p.Text("job.no-zone", zone) })
		}
		loc, words = found, words[:n-1]
	}
	line := strings.Join(words, " ")
	if first, rest, cut := strings.Cut(line, " "); cut &&
		(strings.EqualFold(first, "every") || strings.EqualFold(first, "at")) {
		line = strings.ToLower(first) + " " + rest
	}
	plan, err := Parse(line, loc, now)
	if err != nil && !cronLike().MatchString(line) {
		if line, err = readSentence(normalize(words), now.In(loc)); err == nil {
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

// cronLike matches texts that are meant as cron lines.
var cronLike = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:@|CRON_TZ=|TZ=|[0-9*/,?-]+(?: [0-9*/,?-]+){4,5}$)`)
})

// normalize joins words, in lower case and without trailing commas.
func normalize(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, strings.ToLower(strings.TrimRight(w, ",")))
	}
	return strings.Join(out, " ")
}

// ParseRequest splits a user's text into a schedule and the prompt that follows it. The schedule is the longest valid
// one at the beginning of the text. A line break, or a colon and a space, may separate the two.
func ParseRequest(text string, now time.Time, loc *time.Location) (Spec, string, error) {
	text = strings.TrimSpace(text)
	if head, rest, ok := strings.Cut(text, "\n"); ok {
		if said, err := ParseSentence(strings.TrimSuffix(strings.TrimSpace(head), ":"), now, loc); err == nil {
			return said, strings.TrimSpace(rest), nil
		}
	}
	ends := wordEnds(text, sentenceWords)
	why := unknownError(beginning(text, ends))
	for i := len(ends) - 1; i >= 0; i-- {
		said, err := ParseSentence(strings.TrimRight(text[:ends[i]], ":,"), now, loc)
		if err == nil {
			return said, strings.TrimSpace(text[ends[i]:]), nil
		}
		if more := explanation(err); more > explanation(why) || more == namedMistake {
			why = err
		}
	}
	return Spec{}, "", why
}

// Values that explanation returns. An error with a higher value helps the user more.
const (
	noExplanation = iota
	missingPart   // the error tells what is missing in the schedule
	namedMistake  // the error tells what is wrong in an otherwise complete schedule
)

func explanation(err error) int {
	helps, wrong := hint{}, wrongTime{}
	switch {
	case !errors.Is(err, ErrUnclear), errors.As(err, &wrong):
		return namedMistake
	case errors.As(err, &helps):
		return missingPart
	}
	return noExplanation
}

// beginningWords is the maximum number of words of a text that an error quotes.
const beginningWords = 6

// beginning returns the first words of a text. ends are the offsets at which its words end.
func beginning(text string, ends []int) string {
	if len(ends) <= beginningWords {
		return text
	}
	return text[:ends[beginningWords-1]] + "…"
}

// namesZone reports whether a word looks like the name of a time zone, and not like a part of a cron line.
func namesZone(word string) bool {
	return word == "UTC" || strings.Contains(word, "/") && (word[0] >= 'A' && word[0] <= 'Z')
}

// wordEnds returns the offsets at which the words of a text end, for at most the first limit words.
func wordEnds(text string, limit int) (ends []int) {
	end := 0
	for word := range strings.FieldsSeq(text) {
		if len(ends) == limit {
			break
		}
		end += strings.Index(text[end:], word) + len(word)
		ends = append(ends, end)
	}
	return ends
}
