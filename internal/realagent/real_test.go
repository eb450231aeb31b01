package realagent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/png"
	"os/exec"
	"strings"
	"testing"
	"time"

	"ductor/internal/realagent"
)

// run is one one-shot run of a CLI.
type run struct {
	events []map[string]any
	stderr string
	code   int
}

func start(t *testing.T, c realagent.CLI, prompt string, args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, c.Path, args...)
	var out, stderr bytes.Buffer
	cmd.Dir, cmd.Env = c.Work, c.Environ()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(prompt), &out, &stderr
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &out, &stderr
}

func runCLI(t *testing.T, c realagent.CLI, prompt string, args ...string) run {
	t.Helper()
	cmd, out, stderr := start(t, c, prompt, args...)
	_ = cmd.Wait() // the exit code is looked at below
	r := run{stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
	for line := range strings.Lines(out.String()) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("no JSON: %q", line)
		}
		r.events = append(r.events, e)
	}
	return r
}

// find gives the events of a type.
func (r run) find(kind string) []map[string]any {
	var all []map[string]any
	for _, e := range r.events {
		if e["type"] == kind {
			all = append(all, e)
		}
	}
	return all
}

func (r run) last(t *testing.T, kind string) map[string]any {
	t.Helper()
	all := r.find(kind)
	if len(all) == 0 {
		t.Fatalf("no %s event; exit %d, stderr %q, events %v", kind, r.code, r.stderr, r.events)
	}
	return all[len(all)-1]
}

// tinyPNG is a picture of one pixel.
func tinyPNG(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
