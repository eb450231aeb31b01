package config

import (
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"

	"ductor/bot/card"
)

// A bound that cannot be parsed would be 0.
func TestBoundsOfTagsCanBeParsed(t *testing.T) {
	for key, s := range everySetting() {
		least, most, isRange := strings.Cut(s.tag.Get("check"), "..")
		if !isRange {
			continue
		}
		for _, bound := range []string{strings.TrimPrefix(least, "0|"), most} {
			_, err := strconv.ParseFloat(bound, 64)
			if s.value.Type() == reflect.TypeFor[time.Duration]() {
				_, err = time.ParseDuration(bound)
			}
			if err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
	}
}

// A default that cannot be read would be a problem of every file.
func TestDefaultsOfTagsCanBeRead(t *testing.T) {
	var d decoder
	for _, s := range everySetting() {
		if s.value.Kind() == reflect.Struct {
			d.setDefaults(reflect.New(s.value.Type()).Elem())
		}
	}
	if err := d.found.asError(""); err != nil {
		t.Error(err)
	}
}

// TestANewSettingIsAField follows docs/contributing.md: a package adds a field to its settings, and nothing else reads,
// checks or reloads it.
func TestANewSettingIsAField(t *testing.T) {
	type table struct {
		card.Look
		Added time.Duration `toml:"added" default:"5s" check:"1s..1m" applies:"at once"`
	}
	type settings struct {
		Stream table `toml:"stream" applies:"after a restart"`
	}
	read := func(text string) (s settings, problems problems) {
		values := map[string]any{}
		if err := toml.Unmarshal([]byte(text), &values); err != nil {
			t.Fatal(err)
		}
		var d decoder
		d.setDefaults(reflect.ValueOf(&s).Elem())
		d.table(nil, values, &s)
		visit(setting{value: reflect.ValueOf(s)}, d.found.check)
		return s, d.found
	}
	before, _ := read("")
	after, found := read("[stream]\nadded = \"9s\"\nmax_messages = 7")
	if before.Stream.Added != 5*time.Second || after.Stream.Added != 9*time.Second || len(found) > 0 {
		t.Errorf("by default it is %v, from a file %v, %v", before.Stream.Added, after.Stream.Added, found)
	}
	for text, want := range map[string]string{
		`added = "2m"`: "stream.added: 2m0s is out of bounds; it may be 1s to 1m",
		`added = 9`:    "stream.added: should be a duration in quotes, such as \"90s\" or \"1h30m\", not a number",
		`adde = "9s"`:  "stream.adde: there is no such key; did you mean \"added\"?",
	} {
		if _, found := read("[stream]\n" + text); len(found) != 1 || found.asError("").Error() != want {
			t.Errorf("%s: %v, want %s", text, found, want)
		}
	}
	var changes []Changed
	merge(setting{value: reflect.ValueOf(&before).Elem()}, reflect.ValueOf(after), &changes)
	if before.Stream.Added != after.Stream.Added || before.Stream.MaxMessages == 7 || len(changes) != 2 {
		t.Errorf("a reload changes %+v", changes)
	}
	if list := contributing(t, "- A new setting"); !strings.Contains(list, "`TestANewSettingIsAField`") {
		t.Errorf("docs/contributing.md does not name this test: %s", list)
	}
}

// contributing returns an item of docs/contributing.md. The files that it names exist.
func contributing(t *testing.T, item string) string {
	page, err := os.ReadFile("../../docs/contributing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "\n"+item)
	list, _, _ = strings.Cut(list, "\n- ")
	files := regexp.MustCompile("`([a-z_/.]+\\.(?:go|md|example))`").FindAllStringSubmatch(list, -1)
	if len(files) < 5 {
		t.Errorf("%s names only the files %q", item, files)
	}
	for _, file := range files {
		if _, err := os.Stat("../../" + file[1]); err != nil {
			t.Error(err)
		}
	}
	return list
}
