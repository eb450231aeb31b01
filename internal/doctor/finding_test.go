package doctor

import (
	"errors"
	"strings"
	"testing"
)

// A finding is one line, even if a program's error has several or blank ones.
func TestAFindingIsOneLine(t *testing.T) {
	d := &doctor{}
	d.ok("a", "")
	d.warn("b", "one\n\n two", "mend\nit")
	d.fail("c", "\n", "mend it")
	var out strings.Builder
	if err := d.found.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	if want := "ok   a\nwarn b: one two; fix: mend it\nFAIL c; fix: mend it\n"; out.String() != want || d.found.Failed() != 1 {
		t.Errorf("%d failed:\n%s", d.found.Failed(), out.String())
	}
}

func TestEachMistakeOfAConfigurationIsAFinding(t *testing.T) {
	found := Unreadable("config.toml", errors.New("config.toml:3:1: telegram.tokn: no such key\nconfig.toml:9:1: agents.defalt: no such key"))
	if len(found) != 2 || found.Failed() != 2 {
		t.Fatalf("two mistakes are\n%s", found)
	}
	for i, key := range []string{"telegram.tokn", "agents.defalt"} {
		if f := found[i]; !strings.Contains(f.Text, key) || strings.Count(f.line(), "config.toml:") != 1 || f.Fix == "" {
			t.Errorf("the finding of %s is %q", key, f.line())
		}
	}
}
