package toolcall

import "testing"

func TestDiff(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{"", "", ""},
		{"a\n", "a\n", ""},
		{"", "one\n", "@@ -0,0 +1 @@\n+one\n"},
		{"one\n", "", "@@ -1 +0,0 @@\n-one\n"},
		{"a\nb\nc\n", "a\nB\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"},
		{"a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\n6\n7\n8\n", "@@ -6,4 +6,3 @@\n 6\n 7\n 8\n-9\n"},
		// A piece of a file, as Copilot sends it, does not end without a line break. A new file may.
		{"two", "2", "@@ -1 +1 @@\n-two\n+2\n"},
		{"two", "", "@@ -1 +0,0 @@\n-two\n"},
		{"", "x", "@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n"},
		{"two", "two\n", "@@ -1 +1 @@\n-two\n\\ No newline at end of file\n+two\n"},
	} {
		if got := (Edit{Before: c.before, After: c.after}).Diff(); got != c.want {
			t.Errorf("from %q to %q:\n%s\nwant\n%s", c.before, c.after, got, c.want)
		}
	}
}
