package approval

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/internal/secrets"
)

// A change that writes a whole file shows which lines of the existing file it removes, or that it replaces the file.
func TestAWholeFileIsComparedWithTheFileThatExists(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".worktrees") // the directory of a turn may be hidden
	long := strings.Repeat("key: value\n", currentBytes)
	for name, content := range map[string]string{
		"config.yaml": "key1: 1\nkey2: 2\n", "empty": "", "long": long, "binary": "\xff\xfe\n", ".env": "A=1\n",
		"token": "password: hunter2\n", "../passwords.txt": "a\n",
	} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const write = "@@ -0,0 +1,1 @@\n+key1: 5\n"
	for _, tc := range []struct {
		file           string
		reported, kind cli.ChangeKind
		diff           string
	}{
		{"config.yaml", cli.FileReplaced, cli.FileReplaced, ""}, // another file is moved there
		{"empty", cli.FileReplaced, cli.FileReplaced, ""},
		{"new.yaml", cli.FileReplaced, cli.FileAdded, ""},
		{"config.yaml", cli.FileAdded, cli.FileUpdated, "@@ -1,2 +1 @@\n-key1: 1\n-key2: 2\n+key1: 5\n"},
		{"config.yaml", cli.FileUpdated, cli.FileUpdated, write}, // lines that an edit inserts
		{"new.yaml", cli.FileAdded, cli.FileAdded, write},
		{"new.yaml", cli.FileUpdated, cli.FileAdded, write},
		{"empty", cli.FileAdded, cli.FileUpdated, write},
		{"long", cli.FileAdded, cli.FileReplaced, write},
		{"long", cli.FileUpdated, cli.FileUpdated, write},
		{"binary", cli.FileAdded, cli.FileReplaced, write},
		{".env", cli.FileAdded, cli.FileReplaced, write},
		{".new", cli.FileAdded, cli.FileAdded, write},
		{"token", cli.FileAdded, cli.FileReplaced, write},
		{"../passwords.txt", cli.FileAdded, cli.FileReplaced, write}, // the chat may be a group
	} {
		f := currentFiles{files: machine{}, dir: dir, room: currentBytes, known: secrets.NewSet("hunter2")}
		reported := cli.FileChanged{Kind: tc.reported, Diff: write}
		if tc.diff == "" {
			reported.Diff = ""
		}
		got := f.compare(t.Context(), filepath.Join(dir, tc.file), reported)
		if got.Kind != tc.kind || got.Diff != tc.diff {
			t.Errorf("%s, reported as %q: %q %q", tc.file, tc.reported, got.Kind, got.Diff)
		}
	}
}
