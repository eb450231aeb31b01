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
