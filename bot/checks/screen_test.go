package checks

import (
	"strings"
	"testing"

	"ductor/lang"
)

// TestAReport tests that a report begins with failures, and fits into a message even with many problems.
func TestAReport(t *testing.T) {
	var p lang.Printer
	one := Report{Failures: []Problem{{"disk", "it is full", "free space"}},
		Warnings: []Problem{{"agent codex", "not found", "install it"}}, Passed: 1}
	if got, want := reportText(p, one), "❌ disk: it is full\nFix: free space\n\n⚠️ agent codex: not found\nFix: "+
		"install it\n\n✅ 1 check passed."; got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
	long := Problem{"agent", strings.Repeat("text ", 200), strings.Repeat("fix ", 200)}
	many := Report{Failures: []Problem{long, long, long, long}, Warnings: []Problem{long, long, long, long}, Passed: 7}
	got := reportText(p, many)
	if len(got) > 4000 || !strings.HasSuffix(got,
		"3 more problems: run `ductor doctor` on the machine.\n\n✅ 7 checks passed.") {
		t.Errorf("%d bytes:\n%s", len(got), got)
	}
	if got := reportText(p, Report{Passed: 12}); got != "✅ 12 checks passed." {
		t.Errorf("all is well: %q", got)
	}
}
