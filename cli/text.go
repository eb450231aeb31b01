package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// OneLine returns s as one line, without escape sequences. It replaces each sequence of white space by a space, and
// shortens the result to at most limit bytes.
func OneLine(s string, limit int) string {
	return Shorten(strings.Join(strings.Fields(WithoutCodes(s)), " "), limit)
}

// TextsOf returns those members of a JSON object that are strings.
func TextsOf(object json.RawMessage) map[string]string {
	var texts map[string]string
	_ = json.Unmarshal(object, &texts) // ignores other members
	return texts
}

// ShortLine returns s as one line of at most 300 bytes.
func ShortLine(s string) string { return OneLine(s, 300) }

// ContainsAny reports whether text contains any of parts.
func ContainsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// Words lists texts that indicate a kind of failure if a message contains one of them.
type Words struct {
	Kind FailureKind
	Any  []string
}

// KindOfWords returns the kind of the first row in table with a text that occurs in message. It returns UnknownFailure
// if there is no such row.
func KindOfWords(message string, table []Words) FailureKind {
	for _, row := range table {
		if ContainsAny(message, row.Any...) {
			return row.Kind
		}
	}
	return UnknownFailure
}

// contextFull matches messages of models and agents which mean that a session is longer than the model can read.
var contextFull = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)prompt is too long|context_length_exceeded|maximum context length|exceeds? (?:the |its |model )?context (?:window|limit|length)|` +
		`context exceeds (?:the )?model limit|greater than the context length|reduce the length of the messages|tokens in request more than max tokens|` +
		`ran out of room in the model's context|input token count.*exceeds the maximum|exceed the (?:remaining )?context window|input is too long`)
})

// SaysContextFull reports whether an error message means ContextFull.
func SaysContextFull(text string) bool { return contextFull().MatchString(text) }

// Patterns for messages about a reached limit or a missing log-in. They are for messages that contain no status and no
// error name.
var (
	limitWords = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:hit|reached|exceeded|exhausted) your (?:[\w-]+ ){0,3}` +
			`(?:limit|quota|allowance|capacity)\b|` +
			`\b(?:usage|session|weekly|daily|monthly|hour|opus|sonnet|rate|spend(?:ing)?) limit (?:is |was |has been )?(?:reached|exceeded|hit)\b|` +
			`\bout of (?:extra )?(?:usage|credits?|quota)\b|credit balance is too low|insufficient[ _](?:credits?|quota|balance|funds)|` +
			`(?m:^|[.:] |\b(?:your|current|api|usage|daily|monthly|request|token) )quota (?:is |was |has been )?(?:exceeded|exhausted|reached)|` +
			`resource_exhausted|too many requests`)
	})
	loginWords = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\btoken (?:has |is |was )?(?:been )?(?:expired|revoked)\b|authentication_error|(?:invalid|incorrect) (?:x-)?api[ -]key|api key not valid|` +
			`invalid (?:authentication|bearer) |\b401[ :,-]+(?:unauthorized|\{)|status(?: code)?:? 401\b|\bnot logged in\b|please (?:run /login|log in)|\bunauthenticated\b`)
	})
)

// Sharpened returns f with a more precise kind if its text indicates one. It changes only failures of the kinds
// UnknownFailure and Refused.
func Sharpened(f *Failure) *Failure {
	if f == nil || f.Kind != UnknownFailure && f.Kind != Refused {
		return f
	}
	kind := sharpKind(f.Reason + "\n" + f.Detail)
	if kind == "" || kind == f.Kind {
		return f
	}
	sharp := *f
	sharp.Kind = kind
	return &sharp
}

// sharpKind returns the kind that an error message clearly indicates, or "".
func sharpKind(text string) FailureKind {
	switch {
	case SaysContextFull(text):
		return ContextFull
	case limitWords().MatchString(text):
		return LimitReached
	case loginWords().MatchString(text):
		return NotLoggedIn
	}
	return ""
}

var innerMessage = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"message"\s*:\s*("(?:[^"\\]|\\.)*")`) })

// InnerMessage returns the value of "message" if an error text contains the JSON of a model's API. It returns other
// text unchanged.
func InnerMessage(text string) string {
	if m := innerMessage().FindStringSubmatch(text); m != nil {
		if inner, err := strconv.Unquote(m[1]); err == nil && inner != "" {
			return inner
		}
	}
	return text
}

// NumberIn returns the number in the first group of re's match in text. It returns nil if there is none.
func NumberIn(re *regexp.Regexp, text string) *int {
	m := re.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return nil
	}
	return &n
}

// ShortenCounted is like Shorten, but also tells users how much is missing.
func ShortenCounted(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return fmt.Sprintf("%s [%d bytes are left out]", Shorten(s, limit), len(s)-limit)
}

// Shorten cuts s to at most limit bytes at a character boundary, and ends it with an ellipsis.
func Shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit - len("…")
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:max(cut, 0)] + "…"
}

// Patterns that find the time at which a usage limit ends in an agent's message.
var (
	resetUnix = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)limit[^|\n]*\|(\d{10})\b`) })
	resetIn   = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(?:try again|retry|resets?|available)(?: again)? (?:in|after) ` +
			`((?:about )?\d[\w., ]*)`)
	})
	resetAt = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(?:try again|resets?|available again|until)(?: at| on)? ((?:[a-z]{3,9} \d{1,2}(?:st|nd|rd|th)?,? (?:\d{4},? )?(?:at )?)?\d{1,2}(?::\d\d)? ?[ap]m)\b(?: ?\((\w[\w+/-]*)\))?`)
	})
	resetDate = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(?:try again|resets?|resume|available|until)\b[^.\n]{0,60}?` +
			`\b(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))`)
	})
	resetUnit = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(\d+(?:\.\d+)?) ?(d|h|ms|m|s)[a-z]*`)
	})
	ordinal    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(\d)(?:st|nd|rd|th)\b`) })
	resetForms = []string{"Jan 2 2006 3:04PM", "Jan 2 2006 3PM", "January 2 2006 3:04PM", "Jan 2 3:04PM", "Jan 2 3PM",
		"3:04PM", "3PM"}
)

// farthestReset is longer than the window of any usage limit. ResetAt ignores times after it.
const farthestReset = 31 * 24 * time.Hour

// ResetAt finds the time in an agent's message at which a usage limit ends. It returns zero if the message contains no
// such time. A time is in the zone that the message names, such as (Asia/Tokyo), or else in local time.
func ResetAt(text string, now time.Time) time.Time {
	at := resetMoment(text, now)
	if at.Before(now) || at.Sub(now) > farthestReset {
		return time.Time{}
	}
	return at
}

func resetMoment(text string, now time.Time) time.Time {
	if m := resetUnix().FindStringSubmatch(text); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		return time.Unix(n, 0)
	}
	if m := resetIn().FindStringSubmatch(text); m != nil {
		if d := resetSpan(m[1]); d > 0 {
			return now.Add(d)
		}
	}
	if m := resetDate().FindStringSubmatch(text); m != nil {
		if at, err := time.Parse(time.RFC3339, strings.ToUpper(m[1])); err == nil {
			return at
		}
	}
	if m := resetAt().FindStringSubmatch(text); m != nil {
		zone := time.Local
		if named, err := time.LoadLocation(m[2]); err == nil && m[2] != "" {
			zone = named
		}
		return resetClock(m[1], now.In(zone))
	}
	return time.Time{}
}

// resetSpan parses a duration such as "2 hours 5 minutes", "1h2m" or "12.5s".
func resetSpan(s string) (d time.Duration) {
	units := map[string]time.Duration{"d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second,
		"ms": time.Millisecond}
	for _, m := range resetUnit().FindAllStringSubmatch(strings.ToLower(s), -1) {
		n, _ := strconv.ParseFloat(m[1], 64)
		d += time.Duration(n * float64(units[m[2]]))
	}
	return d
}

// resetClock parses a time such as "3:05 PM", "3pm" or "Feb 3rd, 2027 9:10 PM". If the day or the year is missing, it
// returns the next such time after now. Times are in now's zone.
func resetClock(s string, now time.Time) time.Time {
	s = strings.NewReplacer(",", "", " at ", " ").Replace(ordinal().ReplaceAllString(s, "$1"))
	for _, suffix := range []string{"am", "pm"} {
		if rest, ok := strings.CutSuffix(strings.ToLower(s), suffix); ok {
			s = strings.TrimSpace(s[:len(rest)]) + strings.ToUpper(suffix)
		}
	}
	for _, form := range resetForms {
		t, err := time.ParseInLocation(form, s, now.Location())
		switch {
		case err != nil:
			continue
		case t.Year() > 0:
			return t
		case strings.Contains(form, "Jan"):
			t = t.AddDate(now.Year(), 0, 0)
			if t.Before(now) {
				t = t.AddDate(1, 0, 0)
			}
			return t
		}
		t = time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), 0, 0, now.Location())
		if t.Before(now) {
			t = t.AddDate(0, 0, 1)
		}
		return t
	}
	return time.Time{}
}

// Tail returns the last bytes of s, at most limit, and the number of bytes before them. It cuts at a character
// boundary. The result is a copy, so that s can be freed.
func Tail(s string, limit int) (string, int) {
	from := max(len(s)-limit, 0)
	for from > 0 && from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return strings.Clone(s[from:]), from
}

// EndOfMessage is the last part of a message whose prompt may contain a mention; see HasMention.
const EndOfMessage = "[End of the message]"

// HasMention reports whether an agent might find a mention of a file in a prompt, such as "@/etc/passwd". Claude adds
// the content of a mentioned file to the prompt, in every permission mode and without an approval. Claude searches only
// the last part of a message for mentions, so EndOfMessage must follow a prompt with a mention.
func HasMention(prompt string) bool { return strings.Contains(prompt, "@") }
