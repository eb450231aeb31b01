package sub

import (
	"path/filepath"
	"testing"
)

// The error about a missing folder was "is a directory".
func TestArchiveName(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing")
	for arg, folder := range map[string]string{dir: dir, dir + "/": dir, missing + "/": missing, missing: dir} {
		if got := archiveName([]string{arg}); filepath.Dir(got) != folder {
			t.Errorf("%s: %s", arg, got)
		}
	}
}
