// Command replay writes an overlay for `go test -overlay` with which a bubble of synctest runs the same way each time: what the
// runtime of Go decides by chance (which ready case of a select, the order of a map and of timers of one moment) it decides by a
// sequence of the bubble's own, and no goroutine loses its turn because it took long. It needs GOMAXPROCS=1.
//
// It changes the source of the runtime of the installed Go in a copy, and fails where that is not as it knows it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// change is a piece of a file of the runtime, and what takes its place.
type change struct{ file, before, after string }

func changes() []change {
	const own = `	if gp := mp.curg; gp != nil && gp.bubble != nil {
		return %s(gp.bubble.chance())
	}
`
	return []change{
		{"rand.go", "	mp := getg().m\n	c := &mp.chacha8\n", "	mp := getg().m\n" + fmt.Sprintf(own, "uint64") + "	c := &mp.chacha8\n"},
		{"rand.go", "	mp := getg().m\n	// Implement wyrand", "	mp := getg().m\n" + fmt.Sprintf(own, "uint32") + "	// Implement wyrand"},
		{"synctest.go", "	active  int // other sources of activity\n}\n", `	active  int // other sources of activity
	chances uint64
}

// bubblesRun counts bubbles that run.
var bubblesRun atomic.Int32

// chance is the next of the bubble's own sequence of numbers.
//
//go:nosplit
func (b *synctestBubble) chance() uint64 {
	b.chances += 0x9e3779b97f4a7c15
	z := b.chances
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
`},
		{"synctest.go", "	gp.bubble = bubble\n	defer func() {\n", "	gp.bubble = bubble\n	bubblesRun.Add(1)\n	defer func() {\n		bubblesRun.Add(-1)\n"},
		{"proc.go", "func retake(now int64) uint32 {\n", "func retake(now int64) uint32 {\n	if bubblesRun.Load() > 0 {\n		return 0\n	}\n"},
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: replay DIRECTORY")
		os.Exit(2)
	}
	path, err := write(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}

// write writes the changed files and the overlay into a directory, and returns the path of the overlay.
func write(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return "", err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find the source of Go: %w", err)
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for _, c := range changes() {
		source := filepath.Join(strings.TrimSpace(string(root)), "src", "runtime", c.file)
		target, changed := overlay.Replace[source]
		if !changed {
			target = source
		}
		text, err := os.ReadFile(target)
		if err != nil {
			return "", err
		}
		if strings.Count(string(text), c.before) != 1 {
			return "", fmt.Errorf("%s is not as it was in Go 1.26: it has no %q", source, c.before)
		}
		overlay.Replace[source] = filepath.Join(dir, c.file)
		if err := os.WriteFile(overlay.Replace[source], []byte(strings.Replace(string(text), c.before, c.after, 1)), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}
