package render

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ductor/lang"
)

func TestDiffText(t *testing.T) {
	for name, tc := range map[string]struct{ diff, want string }{
		"a new file":             {"@@ -0,0 +1,2 @@\n+one\n+two\n", "+one\n+two\n"},
		"the middle of a file":   {"@@ -10,2 +10,2 @@ func main() {\n keep\n-old\n+new\n", "… line 10, func main() {\n keep\n-old\n+new\n"},
		"two stretches":          {"@@ -1 +1 @@\n-a\n+b\n@@ -40 +40 @@\n-c\n+d\n", "-a\n+b\n… line 40\n-c\n+d\n"},
		"no line break":          {"@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", "-a\n… without a line break at the end\n+a\n"},
		"headings":               {"diff --git a/x.go b/x.go\nindex 1..2 100644\n--- a/x.go\n+++ b/x.go\n@@ -1 +1 @@\n-a\n+b\n", "-a\n+b\n"},
		"another file":           {"--- a/x.go\n+++ b/secret\n@@ -1 +1 @@\n-a\n+b\n", "+++ b/secret\n-a\n+b\n"},
		"another mode":           {"diff --git a/x.go b/x.go\nold mode 100644\nnew mode 100755\n@@ -1 +1 @@\n-a\n+b\n", "old mode 100644\nnew mode 100755\n-a\n+b\n"},
		"lines that look so":     {"@@ -1,2 +1,2 @@\n--- a/x.go\n+++ b/x.go\n \n", "--- a/x.go\n+++ b/x.go\n \n"},
		"more lines than it had": {"@@ -1 +1 @@\n-a\n+b\n+c\n", "-a\n+b\n+c\n"},
		"an agent's own form":    {"-a\n+b\n", "-a\n+b\n"},
		"no numbers":             {"@@ … @@\n+a\n@@ x\n", "@@ … @@\n+a\n@@ x\n"},
	} {
		if got := DiffText(lang.Printer{}, "x.go", tc.diff); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Each line that a diff adds or removes is shown unchanged, whatever surrounds it.
func TestLawDiffTextHidesNoLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.SampledFrom([]string{"+a", "-b", " c", "--- a/x.go", "+++ b/x.go", "--- y", "@@ -1 +1 @@", "@@ -3,2 +3,2 @@ f", "@@ x", `\ No newline at end of file`, "", "new mode 1", "index 1..2"})).Draw(t, "lines")
		diff := strings.Join(lines, "\n")
		shown := "\n" + DiffText(lang.Printer{}, "x.go", diff)
		for _, line := range lines {
			for _, mark := range []string{"+a", "-b", "--- y", "new mode 1"} {
				if line == mark && strings.Count(shown, "\n"+mark) < strings.Count("\n"+diff, "\n"+mark) {
					t.Fatalf("%q is missing in %q of %q", mark, shown, diff)
				}
			}
		}
	})
}
