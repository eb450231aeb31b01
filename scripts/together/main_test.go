package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestCommandsRunSideBySide(t *testing.T) {
	fifo := t.TempDir() + "/fifo"
	var out bytes.Buffer
	err := run(t.Context(), split([]string{
		"mkfifo", fifo,
	}), &out)
	if err != nil {
		t.Fatal(err)
	}
	// Each command opens one end of a FIFO, which blocks until the other end is open.
	err = run(t.Context(), split([]string{"sh", "-c", "echo from one to the other >" + fifo, "--", "cat", fifo}), &out)
	if err != nil || out.String() != "from one to the other\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestLinesAreWhole(t *testing.T) {
	var out bytes.Buffer
	command := []string{"sh", "-c", "for i in $(seq 200); do printf half; printf 'other\\n'; done"}
	if err := run(t.Context(), [][]string{command, command, command}, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 600 || slices.ContainsFunc(lines, func(l string) bool { return l != "halfother" }) {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
}

func TestAFailureIsTold(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), split([]string{"true", "--", "false", "--", "echo", "still"}), &out); err == nil ||
		out.String() != "still\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
