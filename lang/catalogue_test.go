package lang

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/pelletier/go-toml/v2"
)

// pluralForms lists the forms of a text with a number in each language.
var pluralForms = map[Language][]string{"en": {"one", "other"}, "de": {"one", "other"}, "zh": {"other"}}

// sameAsEnglish lists texts that are the same in English and another language, since they consist of names, symbols
// or common words. A text without letters needs no entry.
var sameAsEnglish = []string{
	"card.plan", "changes.commit", "changes.diff", "changes.since-commit", "cron.name", "cron.prompt",
	"cron.sandbox", "project.worktrees", "quantity.bytes", "quantity.hours", "quantity.hours-minutes",
	"quantity.kilobytes",
	"quantity.megabytes", "quantity.minutes", "quantity.minutes-seconds", "quantity.seconds", "quantity.short",
	"status.memory", "tool.web", "usage.warning",
}

var letters = regexp.MustCompile(`\pL`)

// TestCatalogueIsWholeInEachLanguage tests that each language has every text, with the same placeholders and all its
// plural forms.
func TestCatalogueIsWholeInEachLanguage(t *testing.T) {
	english := catalogueOf(t, Languages()[0])
	for _, l := range Languages() {
		texts := catalogueOf(t, l)
		for _, key := range slices.Sorted(maps.Keys(english)) {
			file, name, _ := strings.Cut(key, ".")
			forms, ok := texts[key]
			if !ok {
				t.Errorf("%s is missing in %s: write its translation as %q into lang/%s/%s.toml", key, l.Name(), name,
					l, file)
				continue
			}
			checkForms(t, l, key, english[key], forms)
			_ = l.Printer().Text(Key(key)) // panics if the text is invalid
		}
		for key := range texts {
			if english[key] == nil {
				t.Errorf("lang/%s has %s, and lang/en does not: remove it", l, key)
			}
		}
	}
}

func checkForms(t *testing.T, l Language, key string, english, forms map[string]string) {
	t.Helper()
	want := []string{"other"}
	if len(english) > 1 {
		want = pluralForms[l]
	}
	if got := slices.Sorted(maps.Keys(forms)); !slices.Equal(got, want) {
		t.Errorf("%s has the plural forms %q in %s, which needs %q", key, got, l.Name(), want)
	}
	for form, text := range forms {
		if got, want := places(text), places(english["other"]); form == "other" && !maps.Equal(got, want) {
			t.Errorf("%s has the places %v in %s, and %v in English: each must come with the same verb", key, got,
				l.Name(), want)
		}
		if l != Languages()[0] && text == english[form] && letters.MatchString(place.ReplaceAllString(text, "")) &&
			!slices.Contains(sameAsEnglish, key) {
			t.Errorf("%s is English in lang/%s: %q. If it must be, add it to sameAsEnglish", key, l, text)
		}
	}
}

// catalogueOf returns the forms of each text of a language. A text without a number has only the form "other".
func catalogueOf(t *testing.T, l Language) map[string]map[string]string {
	t.Helper()
	entries, err := files.ReadDir(string(l))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]map[string]string{}
	for _, e := range entries {
		data, err := files.ReadFile(path.Join(string(l), e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		var screen map[string]any
		if err := toml.Unmarshal(data, &screen); err != nil {
			t.Fatalf("lang/%s/%s: %v", l, e.Name(), err)
		}
		for name, value := range screen {
			forms := map[string]string{"other": fmt.Sprint(value)}
			if table, ok := value.(map[string]any); ok {
				forms = map[string]string{}
				for form, text := range table {
					forms[form] = fmt.Sprint(text)
				}
			}
			texts[strings.TrimSuffix(e.Name(), ".toml")+"."+name] = forms
		}
	}
	return texts
}

var place = regexp.MustCompile(`%(?:\[(\d+)\])?[.\d]*([a-z])`)

// places returns the verb of each placeholder of a text, by its number.
func places(text string) map[string]string {
	found := map[string]string{}
	for _, m := range place.FindAllStringSubmatch(strings.ReplaceAll(text, "%%", ""), -1) {
		found[cmp.Or(m[1], "1")] = m[2]
	}
	return found
}

// TestAnswersToPressesFit tests that a translation fits into the 200 characters of an answer to a press if its
// English text does. It skips /help and texts of messages.
func TestAnswersToPressesFit(t *testing.T) {
	english := catalogueOf(t, Languages()[0])
	for _, l := range Languages() {
		for key, forms := range catalogueOf(t, l) {
			if key == "bot.help" || strings.HasPrefix(key, "updates.") {
				continue
			}
			if n := units(forms["other"]); n > 200 && units(english[key]["other"]) <= 200 {
				t.Errorf("%s has %d characters in %s, and %d in English: shorten it to 200", key, n, l.Name(),
					units(english[key]["other"]))
			}
		}
	}
}

// units counts characters as Telegram does, in UTF-16.
func units(s string) int { return len(utf16.Encode([]rune(s))) }

// TestMenuLinesAreShort tests the lines of the command menu, which phones truncate.
func TestMenuLinesAreShort(t *testing.T) {
	for _, l := range Languages() {
		for key, forms := range catalogueOf(t, l) {
			if strings.HasPrefix(key, "bot.menu-") && len([]rune(forms["other"])) > 100 {
				t.Errorf("%s is too long in %s for a line of the command menu", key, l.Name())
			}
		}
	}
}

func TestMatch(t *testing.T) {
	for tag, want := range map[string]Language{"de": "de", "de-AT": "de", "zh-hans": "zh", "zh-TW": "zh", "en-GB": "en",
		"": "en", "fr": "en", "no tag": "en"} {
		if got := Match(tag); got != want {
			t.Errorf("%q is matched with %q, not %q", tag, got, want)
		}
	}
}

// TestNoButtonIsNamedLikeBack tests that no button is named like "‹ Back" or "Cancel" with another symbol. These two
// stand beside many buttons.
func TestNoButtonIsNamedLikeBack(t *testing.T) {
	words := func(text string) string { return strings.ToLower(strings.Join(letters.FindAllString(text, -1), "")) }
	for _, l := range Languages() {
		texts := catalogueOf(t, l)
		for _, leaves := range []string{"common.back", "common.cancel"} {
			for key, forms := range texts {
				text, leave := forms["other"], texts[leaves]["other"]
				if text != leave && words(text) == words(leave) {
					t.Errorf("%s is %q in %s, and %s is %q", key, text, l.Name(), leaves, leave)
				}
			}
		}
	}
}
