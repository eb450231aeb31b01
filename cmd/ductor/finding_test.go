package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Programs get every check of doctor, also of a configuration that cannot be read, and a fix for each that is not ok.
func TestTheDoctorForPrograms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte("[telegram\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, _ := runDuctor(t, "doctor", "--json", "-c", path)
	var got []map[string]string
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code == exitOK || len(got) != 1 {
		t.Fatalf("exit %d, %v: %s", code, err, stdout)
	}
	f := got[0]
	if f["name"] != "configuration" || f["state"] != "failed" || !strings.Contains(f["text"], path) || f["fix"] == "" || len(f) != 4 {
		t.Errorf("it says %v", f)
	}
}

// A finding is one line, whatever a program wrote, and has no blank one after it.
func TestAFindingIsOneLine(t *testing.T) {
	var d doctor
	d.ok("a", "")
	d.warn("b", "one\n\n two", "mend\nit")
	d.fail("c", "\n", "mend it")
	var out strings.Builder
	if err := d.found.writeText(&out); err != nil {
		t.Fatal(err)
	}
	if want := "ok   a\nwarn b: one two; fix: mend it\nFAIL c; fix: mend it\n"; out.String() != want || d.found.failed() != 1 {
		t.Errorf("%d failed:\n%s", d.found.failed(), out.String())
	}
}
