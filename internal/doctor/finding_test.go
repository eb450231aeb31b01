package doctor

import (
	"strings"
	"testing"
)

// A finding is one line, whatever a program wrote, and has no blank one after it.
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
