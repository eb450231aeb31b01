package telegram

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func ent(kind string, offset, length int) Entity {
	return Entity{Type: kind, Offset: offset, Length: length}
}

func TestNormaliseDoesWhatTelegramDoes(t *testing.T) {
	link := Entity{Type: "text_link", Offset: 0, Length: 4, URL: "https://go.dev/"}
	for _, c := range []struct {
		what     string
		text     string
		in       []Entity
		want     string
		entities []Entity
	}{
		{"trims both ends", " \n hi \n", nil, "hi", nil},
		{"moves entities along", "  bold", []Entity{ent("bold", 2, 4)}, "bold", []Entity{ent("bold", 0, 4)}},
		{"takes leading space out of an entity", "  bold", []Entity{ent("bold", 0, 6)}, "bold",
			[]Entity{ent("bold", 0, 4)}},
		{"cuts an entity at the end of the text", "bold  ", []Entity{ent("bold", 0, 6)}, "bold",
			[]Entity{ent("bold", 0, 4)}},
		{"keeps inner trailing space in an entity", "a b", []Entity{ent("bold", 0, 2)}, "a b",
			[]Entity{ent("bold", 0, 2)}},
		{"drops an entity of white space", "a   b", []Entity{ent("bold", 1, 3)}, "a   b", nil},
		{"drops an empty entity", "ab", []Entity{ent("bold", 1, 0)}, "ab", nil},
		{"makes control characters spaces", "a\tb\x00c", nil, "a b c", nil},
		{"removes carriage returns", "a\r\nb", []Entity{ent("bold", 3, 1)}, "a\nb", []Entity{ent("bold", 2, 1)}},
		{"removes direction marks", "a\u202eb", []Entity{ent("bold", 0, 3)}, "ab", []Entity{ent("bold", 0, 2)}},
		{"merges touching formats", "abcd", []Entity{ent("bold", 0, 2), ent("bold", 2, 2)}, "abcd",
			[]Entity{ent("bold", 0, 4)}},
		{"merges overlapping formats", "abcd", []Entity{ent("bold", 0, 3), ent("bold", 1, 3)}, "abcd",
			[]Entity{ent("bold", 0, 4)}},
		{"cuts a format where another begins within it", "abcd", []Entity{ent("italic", 1, 2), ent("bold", 0, 4)},
			"abcd", []Entity{ent("bold", 0, 1), ent("bold", 1, 3), ent("italic", 1, 2)}},
		{"cuts formats that cross", "abcd", []Entity{ent("bold", 0, 3), ent("italic", 2, 2)}, "abcd",
			[]Entity{ent("bold", 0, 2), ent("italic", 2, 2), ent("bold", 2, 1)}},
		{"allows no format in code", "abcd", []Entity{ent("code", 0, 4), ent("bold", 1, 2)}, "abcd",
			[]Entity{ent("code", 0, 4)}},
		{"cuts a format at code", "abcd", []Entity{ent("bold", 0, 4), ent("code", 1, 2)}, "abcd",
			[]Entity{ent("bold", 0, 1), ent("code", 1, 2), ent("bold", 3, 1)}},
		{"drops a link in code", "abcd", []Entity{ent("code", 0, 4), link}, "abcd", []Entity{ent("code", 0, 4)}},
		{"drops code that crosses a link", "abcdef", []Entity{link, ent("code", 2, 4)}, "abcdef", []Entity{link}},
		{"keeps code in a quote", "abcd", []Entity{ent("blockquote", 0, 4), ent("code", 1, 2)}, "abcd",
			[]Entity{ent("blockquote", 0, 4), ent("code", 1, 2)}},
		{"drops code that crosses the edge of a quote", "abcd", []Entity{ent("blockquote", 0, 2), ent("code", 1, 2)},
			"abcd", []Entity{ent("blockquote", 0, 2)}},
		{"keeps code around a quote out", "abcd", []Entity{ent("code", 0, 4), ent("blockquote", 1, 2)}, "abcd",
			[]Entity{ent("blockquote", 1, 2)}},
		{"does not nest quotes", "abcd", []Entity{ent("blockquote", 0, 4), ent("blockquote", 1, 2)}, "abcd",
			[]Entity{ent("blockquote", 0, 4)}},
		{"counts astral characters twice", "😀b", []Entity{ent("bold", 2, 1)}, "😀b", []Entity{ent("bold", 2, 1)}},
	} {
		got, err := normalise(c.text, c.in)
		if err != nil || got.text != c.want || !slices.Equal(got.entities, c.entities) {
			t.Errorf("%s: %q %v (%v), want %q %v", c.what, got.text, got.entities, err, c.want, c.entities)
		}
	}
}

func TestOnlyAHundredEntitiesAreKept(t *testing.T) {
	var in []Entity
	for i := range 120 {
		in = append(in, ent("code", 2*i, 1))
	}
	got, err := normalise(strings.Repeat("x ", 120), in)
	if err != nil || len(got.entities) != MaxEntities {
		t.Errorf("kept %d, %v", len(got.entities), err)
	}
}

func TestLinksAreWhatTelegramFollows(t *testing.T) {
	for raw, want := range map[string]string{
		"https://go.dev":        "https://go.dev/",
		"HTTPS://Go.Dev/Doc#a":  "https://go.dev/Doc#a",
		"go.dev/doc":            "http://go.dev/doc",
		"http://localhost:8080": "http://localhost:8080/",
		"tg://user?id=1":        "tg://user?id=1",
		"main.go":               "http://main.go/", // Telegram cannot know it is a file
		"docs/readme":           "",
		"./main.go":             "",
		"file:///etc/passwd":    "",
		"javascript:alert(1)":   "",
		"mailto:a@b":            "",
		"#anchor":               "",
		"a b.com":               "",
		"":                      "",
	} {
		got, ok := checkLink(raw)
		if got != want || ok != (want != "") {
			t.Errorf("%q became %q, %v, want %q", raw, got, ok, want)
		}
	}
}

func TestEntitiesOfPeopleAreFound(t *testing.T) {
	for text, want := range map[string]string{
		"/abort":                     "bot_command:/abort",
		"/abort@ductor_bot now":      "bot_command:/abort@ductor_bot",
		"see /new and /stop":         "bot_command:/new bot_command:/stop",
		"a/b /usr/bin 1/2":           "",
		"ask @ductor_bot.":           "mention:@ductor_bot",
		"mail me@example.com":        "",
		"read https://go.dev/x, ok?": "url:https://go.dev/x",
		"😀 /new":                     "bot_command:/new",
	} {
		var got []string
		for _, e := range findEntities(text) {
			got = append(got, e.Type+":"+Slice(text, e.Offset, e.Length))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
	}
}

// drawText draws words, white space, astral characters and characters that vanish.
func drawText(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "bc", " ", "\n", "😀", "é", "\r", "\t", "\u202e", "👨‍👩‍👧"}),
		0, 20).Draw(t, "parts")
	return strings.Join(parts, "")
}

// drawEntity draws an entity on character boundaries of a text.
func drawEntity(t *rapid.T, bounds []int) Entity {
	kinds := []string{"bold", "italic", "underline", "strikethrough", "spoiler", "code", "pre", "text_link",
		"blockquote", "expandable_blockquote"}
	from := rapid.IntRange(0, len(bounds)-1).Draw(t, "from")
	to := rapid.IntRange(from, len(bounds)-1).Draw(t, "to")
	return ent(rapid.SampledFrom(kinds).Draw(t, "kind"), bounds[from], bounds[to]-bounds[from])
}

func boundaries(text string) []int {
	bounds := []int{0}
	for _, r := range text {
		bounds = append(bounds, bounds[len(bounds)-1]+runeUnits(r))
	}
	return bounds
}

func TestAnyEntitiesBecomeLegalOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t)
		bounds := boundaries(text)
		var in []Entity
		for range rapid.IntRange(0, 8).Draw(t, "n") {
			in = append(in, drawEntity(t, bounds))
		}
		got, err := normalise(text, slices.Clone(in))
		if err != nil {
			t.Fatalf("%q %v refused: %v", text, in, err)
		}
		if got.text != strings.Trim(got.text, " \n") {
			t.Fatalf("%q is not trimmed", got.text)
		}
		checkLegal(t, got)
		checkFormats(t, text, in, got)
	})
}

// checkLegal checks the rules on which every client relies: entities lie on character boundaries, are sorted and
// nested, never lie in code, and never cover only white space.
func checkLegal(t *rapid.T, f formatted) {
	bounds := boundaries(f.text)
	for i, e := range f.entities {
		if !slices.Contains(bounds, e.Offset) || !slices.Contains(bounds, e.end()) || e.Length <= 0 {
			t.Fatalf("%v is not on the boundaries of %q", e, f.text)
		}
		if strings.Trim(Slice(f.text, e.Offset, e.Length), " \n") == "" {
			t.Fatalf("%v of %q holds nothing but white space", e, f.text)
		}
		for _, later := range f.entities[i+1:] {
			if later.Offset < e.Offset || (later.Offset == e.Offset && later.Length > e.Length) {
				t.Fatalf("%v comes before %v", e, later)
			}
			inside := later.end() <= e.end()
			if later.Offset < e.end() && (!inside || isPre(e.Type) || later.Type == e.Type) {
				t.Fatalf("%v and %v overlap in %q", e, later, f.text)
			}
		}
	}
}

// checkFormats holds that formatting is neither invented nor, outside of code, lost: the bold letters are the letters
// that were bold.
func checkFormats(t *rapid.T, text string, in []Entity, got formatted) {
	for _, kind := range []string{"bold", "italic", "spoiler"} {
		before := lettersUnder(text, in, kind)
		after := lettersUnder(got.text, got.entities, kind)
		code := lettersUnder(got.text, got.entities, "code") + lettersUnder(got.text, got.entities, "pre")
		if len(after) > len(before) || (code == "" && after != before) {
			t.Fatalf("%s was on %q, is on %q: %q %v -> %q %v", kind, before, after, text, in, got.text, got.entities)
		}
	}
}

func lettersUnder(text string, list []Entity, kind string) string {
	var b strings.Builder
	at := 0
	for _, r := range text {
		covered := slices.ContainsFunc(list, func(e Entity) bool {
			return e.Type == kind && e.Offset <= at && at < e.end()
		})
		if covered && !removed(r) && r > ' ' {
			b.WriteRune(r)
		}
		at += runeUnits(r)
	}
	return b.String()
}

func TestUnitsAndSliceAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		if Slice(text, 0, Units(text)) != strings.ToValidUTF8(text, "\ufffd") {
			t.Fatalf("%q is not whole", text)
		}
		bounds := boundaries(text)
		cut := rapid.SampledFrom(bounds).Draw(t, "cut")
		if Slice(text, 0, cut)+Slice(text, cut, Units(text)) != strings.ToValidUTF8(text, "\ufffd") {
			t.Fatalf("%q cut at %d does not join", text, cut)
		}
	})
}
