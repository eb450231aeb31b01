package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPatchesApply applies all patches in the order of their numbers, as build does: a patch may need an earlier one.
func TestPatchesApply(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	t.Chdir("../../..")
	all, err := filepath.Glob(filepath.Join(patches, "*.patch"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no patches in %s: %v", patches, err)
	}
	h, replace := &hunt{dir: t.TempDir()}, map[string]string{}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.apply(string(text), replace); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	// git silently skips files that seem to be outside of its repository.
	for from, to := range replace {
		before, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(to)
		if err != nil || bytes.Equal(before, after) {
			t.Errorf("no patch changed %s: %v", from, err)
		}
	}
}
