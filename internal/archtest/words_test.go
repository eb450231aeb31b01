package archtest

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// privateWords are words that only this project uses. Production code contains none, in names, comments or texts.
var privateWords = wordSet(`brood newborn strays undertaker exhume errand errander ender bury buried raze razed doomed tainted
	spoiled farewell forsake busier quieter calm sheaf discreet hushed asker unasked heal teller reckoned`)

// privateNames are private as parts of identifiers; sentences may use them.
var privateNames = wordSet(`nest stray parting lapse sheet manner worn sow letter letters nap pulse standing seat native natives
	ground site hub hubs stranger strangers plant mail beat`)

// riddles are phrases that hide who does something. Comments, texts and docs say who acts.
var riddles = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b(earlier|later|next|this|other) ductor\b`),
	regexp.MustCompile(`(?i)\b(who|what) \w+s \b(is|are|was)\b`),
	regexp.MustCompile(`(?i)\bgone? on with\b`),
	regexp.MustCompile(`(?i)\bby (itself|themselves)\b`),
	regexp.MustCompile(`(?i)\bnobody\b`),
	regexp.MustCompile(`(?i)\blets? go of\b`),
	regexp.MustCompile(`(?i)\bis told of\b`),
	regexp.MustCompile(`(?i)\bmeanwhile\b`),
}

var (
	letterRun        = regexp.MustCompile(`[A-Za-z]+`)
	commentOrString  = regexp.MustCompile(`//.*|"(?:\\.|[^"\\])*"`)
	commentOrMessage = regexp.MustCompile(`//[^\n]*|"(?:\\.|[^"\\\n])* (?:\\.|[^"\\\n])*"`) // a message contains a space
)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// countPrivateWords counts the private words of Go code: each once per line.
func countPrivateWords(code string) (n int) {
	code = strings.NewReplacer("GitHub", "Github", "unicode.IsLetter", "unicode.L").Replace(code)
	for line := range strings.Lines(code) {
		hits := map[string]bool{}
		collect(hits, line, privateWords)
		collect(hits, commentOrString.ReplaceAllString(line, ""), privateNames)
		n += len(hits)
	}
	return n
}

// collect adds the words of text that are in words to hits.
func collect(hits map[string]bool, text string, words map[string]bool) {
	for _, run := range letterRun.FindAllString(text, -1) {
		for _, w := range splitCamelCase(run) {
			if w = strings.ToLower(w); words[w] {
				hits[w] = true
			}
		}
	}
}

// splitCamelCase cuts "newHTTPServer" into "new", "HTTP" and "Server".
func splitCamelCase(letters string) (words []string) {
	upper := func(i int) bool { return unicode.IsUpper(rune(letters[i])) }
	start := 0
	for i := 1; i < len(letters); i++ {
		begins := upper(i) && (!upper(i-1) || i+1 < len(letters) && !upper(i+1))
		if begins {
			words = append(words, letters[start:i])
			start = i
		}
	}
	return append(words, letters[start:])
}

// countRiddles counts the riddling phrases of a page, or of the comments and messages of Go code.
func countRiddles(s sourceFile) (n int) {
	text := s.text
	if !s.isDoc() {
		text = strings.Join(commentOrMessage.FindAllString(text, -1), "\n")
	}
	for _, r := range riddles {
		n += len(r.FindAllString(text, -1))
	}
	return n
}

func TestCountPrivateWords(t *testing.T) {
	for _, c := range []struct {
		code string
		want int
	}{
		{"func (h *hub) seat() {} // hub", 2},
		{"type httpHub struct{} // a letter for the native speaker", 1},
		{`s := "the site of the letter"`, 0},
		{"var siteOfHUBAndNap int", 3},
		{"hub(hub, hub)", 1},
		{"// an errand is spoiled", 2},
		{`fmt.Println("unasked")`, 1},
		{"github := GitHub()", 0},
		{"unicode.IsLetter(letter)", 1},
		{"subHub\nsubhub\nhubs", 2},
	} {
		if n := countPrivateWords(c.code); n != c.want {
			t.Errorf("%q: %d private words, want %d", c.code, n, c.want)
		}
	}
}

func TestCountRiddles(t *testing.T) {
	for _, c := range []struct {
		path, text string
		want       int
	}{
		{"bot/x.go", "// Nobody is here, and nobody comes by itself.", 3},
		{"bot/x.go", "nobody := 1", 0},
		{"bot/x.go", `f("for nobody")`, 1},
		{"docs/x.md", "Meanwhile the next ductor goes on with it; what reads is lost.", 3},
		{"docs/x.md", "It lets go of what went on with it.", 1},
	} {
		if n := countRiddles(sourceFile{path: c.path, text: c.text}); n != c.want {
			t.Errorf("%s %q: %d riddling phrases, want %d", c.path, c.text, n, c.want)
		}
	}
}
