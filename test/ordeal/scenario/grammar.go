package scenario

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Quoted is a text that is written in quotes.
type Quoted string

// form defines the text of a value, both for printing and for parsing. A pattern contains words and the following
// parts: {Field} is the value of a field, {Field=word} is a word that means true, and [ … ] is a part that is omitted
// if all its fields are zero.
type form struct {
	pattern string
	of      any
}

func steps() []form {
	return []form{
		{"{By} says [ in {In} ] [ to {ReplyTo} ] {Token} : {Acts}", Say{}},
		{"{By} sends [ in {In} ] {Count} {Media} with {Token} : {Acts}", Send{}},
		{"{By} edits {Old} into {Token} : {Acts}", Edit{}},
		{"{By} replies to {To} {Text}", Reply{}},
		{"{By} presses {Old=old} button {N} [ in {In} ]", PressAny{}},
		{"{By} presses {Old=old} {Button} of {Of}", Press{}},
		{"{By} types {Text} [ in {In} ]", Type{}},
		{"{By} schedules {Token} [ after {After} ] [ every {Every} ] [ in {In} ] : {Acts}", Schedule{}},
		{"webhook delivers {Token} : {Acts}", Deliver{}},
		{"webhook repeats {Token}", Redeliver{}},
		{"terminal {Does} {Token}", Terminal{}},
		{"wait {For}", Wait{}},
		{"settle", Settle{}},
		{"heal", Heal{}},
		{"telegram {Fault} [ for {For} ] [ at {Method} ] [ after {Skip} ] [ times {Times} ]", Telegram{}},
		{"updates {How} {N}", Updates{}},
		{"disk {Fault} [ for {For} ] [ after {Skip} ] [ times {Times} ]", Disk{}},
		{"clock jumps {By}", Clock{}},
		{"suspend {For}", Suspend{}},
		{"kill {What} [ of {Of} ]", Kill{}},
		{"in {In} {What}", Happen{}},
		{"{How} [ at {Point} {N} ] [ for {Down} ]", Stop{}},
	}
}

func acts() []form {
	return []form{
		{"text {Words} [ every {Every} ]", Text{}},
		{"think {Words}", Think{}},
		{"run [ for {For} ]", Run{}},
		{"ask", Ask{}},
		{"write {File}", Write{}},
		{"question {Text}", Question{}},
		{"sleep {For}", Sleep{}},
		{"background {For}", Background{}},
		{"fail {Status} [ times {Times} ]", Fail{}},
		{"break {How}", Break{}},
		{"leak", Leak{}},
		{"cost {Cents}", Cost{}},
		{"compact", Compact{}},
	}
}

// dialect prints and parses values of several types, each of which has a form.
type dialect struct{ forms []compiled }

type compiled struct {
	parts []part
	of    reflect.Type
}

// part is a part of a form: a word, a field, or an optional part.
type part struct {
	word  string
	field []int // index of the field in the struct
	inner []part
}

// grammar contains the forms of the lines of a scenario, and actGrammar the forms of the acts in a prompt.
var (
	grammar    = compile(append(headers(), steps()...))
	actGrammar = compile(acts())
)

func compile(forms []form) dialect {
	var l dialect
	for _, f := range forms {
		t := reflect.TypeOf(f.of)
		parts, rest := compileParts(t, strings.Fields(f.pattern))
		if len(rest) > 0 {
			panic("scenario: unbalanced form " + f.pattern)
		}
		l.forms = append(l.forms, compiled{parts, t})
	}
	return l
}

func compileParts(t reflect.Type, words []string) (parts []part, rest []string) {
	for len(words) > 0 {
		w := words[0]
		words = words[1:]
		switch {
		case w == "[":
			var inner []part
			inner, words = compileParts(t, words)
			parts = append(parts, part{inner: inner})
		case w == "]":
			return parts, words
		case strings.HasPrefix(w, "{"):
			name, word, _ := strings.Cut(strings.Trim(w, "{}"), "=")
			f, ok := t.FieldByName(name)
			if !ok {
				panic("scenario: no field " + name + " in " + t.String())
			}
			parts = append(parts, part{word: word, field: f.Index})
		default:
			parts = append(parts, part{word: w})
		}
	}
	return parts, nil
}

// print returns a value as text. It panics if there is no form for its type.
func (l dialect) print(v any) string {
	value := reflect.ValueOf(v)
	for _, f := range l.forms {
		if f.of == value.Type() {
			var b strings.Builder
			for _, w := range printParts(f.parts, value) {
				if b.Len() > 0 && w != ":" && w != ";" {
					b.WriteByte(' ')
				}
				b.WriteString(w)
			}
			return b.String()
		}
	}
	panic(fmt.Sprintf("scenario: %T has no form", v))
}

func printParts(parts []part, v reflect.Value) (words []string) {
	for _, p := range parts {
		switch {
		case p.inner != nil:
			if !allZero(p.inner, v) {
				words = append(words, printParts(p.inner, v)...)
			}
		case p.field == nil:
			words = append(words, p.word)
		case p.word != "":
			if v.FieldByIndex(p.field).Bool() {
				words = append(words, p.word)
			}
		default:
			words = append(words, printField(v.FieldByIndex(p.field).Interface())...)
		}
	}
	return words
}

func allZero(parts []part, v reflect.Value) bool {
	return !slices.ContainsFunc(parts, func(p part) bool { return p.field != nil && !v.FieldByIndex(p.field).IsZero() })
}

func printField(v any) []string {
	switch v := v.(type) {
	case Quoted:
		return []string{strconv.Quote(string(v))}
	case time.Duration:
		return []string{short(v)}
	case []string:
		return v
	case []Act:
		var words []string
		for i, a := range v {
			if i > 0 {
				words = append(words, ";")
			}
			words = append(words, actGrammar.print(a))
		}
		return words
	}
	return []string{fmt.Sprint(v)}
}

// short formats a duration without parts that are zero, for example "1m" instead of "1m0s".
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

var (
	tokenPattern = regexp.MustCompile(`^(?:"(?:[^"\\]|\\.)*"|[:;]|[\w./+µ-]+)`)
	barePattern  = regexp.MustCompile(`^[\w./+µ-]+$`)
)

func tokenize(line string) ([]string, error) {
	var words []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		w := tokenPattern.FindString(line)
		if w == "" {
			return nil, fmt.Errorf("cannot read %q", line)
		}
		words = append(words, w)
		line = line[len(w):]
	}
	return words, nil
}

func (l dialect) parse(line string) (any, error) {
	words, err := tokenize(line)
	if err != nil {
		return nil, err
	}
	return l.parseWords(words)
}

// parseWords tries all forms. If no form matches, it returns the error of the form that matched the most words.
func (l dialect) parseWords(words []string) (any, error) {
	best, failure := -1, error(nil)
	for _, f := range l.forms {
		v := reflect.New(f.of).Elem()
		rest, err := parseParts(f.parts, v, words)
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("%q is too much", strings.Join(rest, " "))
		}
		if err == nil {
			return v.Interface(), nil
		}
		if read := len(words) - len(rest); read >= best {
			best, failure = read, err
		}
	}
	return nil, fmt.Errorf("%q: %w", strings.Join(words, " "), failure)
}

func parseParts(parts []part, v reflect.Value, words []string) ([]string, error) {
	for _, p := range parts {
		switch {
		case p.inner != nil:
			if len(words) == 0 || words[0] != p.inner[0].word {
				continue
			}
			rest, err := parseParts(p.inner, v, words)
			if err != nil {
				return rest, err
			}
			if allZero(p.inner, v) { // print would omit this part, and print a different text
				return words, fmt.Errorf("%q is nothing", strings.Join(words[:len(words)-len(rest)], " "))
			}
			words = rest
		case p.field == nil:
			if len(words) == 0 || words[0] != p.word {
				return words, fmt.Errorf("want %q", p.word)
			}
			words = words[1:]
		case p.word != "":
			if len(words) > 0 && words[0] == p.word {
				v.FieldByIndex(p.field).SetBool(true)
				words = words[1:]
			}
		default:
			rest, err := parseField(v.FieldByIndex(p.field), words)
			if err != nil {
				return words, err
			}
			words = rest
		}
	}
	return words, nil
}

// parseField parses a field from the first words and returns the rest. A field that is a list takes all words.
func parseField(field reflect.Value, words []string) (rest []string, err error) {
	switch field.Interface().(type) {
	case []string:
		if slices.ContainsFunc(words, func(w string) bool { return !isBare(w) }) {
			return words, fmt.Errorf("want words")
		}
		if len(words) > 0 {
			field.Set(reflect.ValueOf(slices.Clone(words)))
		}
		return nil, nil
	case []Act:
		list, err := parseActs(words)
		if err == nil && len(list) > 0 {
			field.Set(reflect.ValueOf(list))
		}
		return nil, err
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("the line ends too early")
	}
	return words[1:], setField(field, words[0])
}

func parseActs(words []string) (list []Act, err error) {
	for len(words) > 0 {
		end := slices.Index(words, ";")
		if end < 0 {
			end = len(words)
		}
		act, err := actGrammar.parseWords(words[:end])
		if err != nil {
			return nil, err
		}
		list = append(list, act.(Act))
		if end+1 == len(words) {
			return nil, fmt.Errorf("an act is missing behind the last %q", ";")
		}
		words = words[min(end+1, len(words)):]
	}
	return list, nil
}

func setField(field reflect.Value, word string) error {
	switch v := field.Interface().(type) {
	case Quoted:
		text, err := strconv.Unquote(word)
		if err != nil || !strings.HasPrefix(word, `"`) {
			return fmt.Errorf("%s is no text between quotes", word)
		}
		field.SetString(text)
		return nil
	case time.Duration:
		d, err := time.ParseDuration(word)
		if err != nil {
			return fmt.Errorf("%s is no duration", word)
		}
		field.SetInt(int64(d))
		return nil
	case int:
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 {
			return fmt.Errorf("%s is no number", word)
		}
		field.SetInt(int64(n))
		return nil
	case uint64:
		n, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return fmt.Errorf("%s is no number", word)
		}
		field.SetUint(n)
		return nil
	case interface{ values() []string }:
		if all := v.values(); !slices.Contains(all, word) {
			return fmt.Errorf("%s is none of %s", word, strings.Join(all, ", "))
		}
	}
	if !isBare(word) {
		return fmt.Errorf("%s is no name", word)
	}
	field.SetString(word)
	return nil
}

// isBare reports whether a word needs no quotes.
func isBare(word string) bool { return barePattern.MatchString(word) }
