package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

// The result has no codes, and a second call changes nothing.
func FuzzWithoutCodes(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m\r50 %\r100 %\n")
	f.Add("\x1b]8;;http://a\x1b\\link\x1b]0;a")
	f.Fuzz(func(t *testing.T, printed string) {
		shown := WithoutCodes(printed)
		if strings.Count(shown, "\n") != strings.Count(printed, "\n") || len(shown) > len(printed) {
			t.Fatalf("%q is %q", printed, shown)
		}
		OneLine(printed, 100)
	})
}

// Every value of an input is a field, and parsing twice gives the same result.
func FuzzFields(f *testing.F) {
	f.Add([]byte(`{"command":"ls","cwd":"/d","edits":[{"path":"x"},null],"a.b":{}}`), "/d")
	f.Fuzz(func(t *testing.T, input []byte, dir string) {
		if json.Valid(input) && len(Leaves(input)) == 0 {
			t.Fatalf("%q has no value", input)
		}
		Reading{Dir: dir, Wider: []string{"a"}, Edit: []string{"edits"}}.Fields(input)
		Names([]string{"/d/x"}, "/d", input)
	})
}

// DiffMakes accepts the hunks between two texts, and rejects them with one more line.
func FuzzDiffMakes(f *testing.F) {
	f.Add("a\nb\n", "a\nc\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		var hunks strings.Builder
		for line := range strings.Lines(before) {
			hunks.WriteString("-" + strings.TrimSuffix(line, "\n") + "\n")
		}
		for line := range strings.Lines(after) {
			hunks.WriteString("+" + strings.TrimSuffix(line, "\n") + "\n")
		}
		if !DiffMakes(hunks.String(), before, after) || DiffMakes(hunks.String()+"+one more\n", before, after) {
			t.Fatalf("%q of %q and %q", hunks.String(), before, after)
		}
		Hunks(hunks.String())
	})
}
