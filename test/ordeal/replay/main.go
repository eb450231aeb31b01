// Command replay writes an overlay for `go test -overlay` that makes tests with testing/synctest deterministic. Go's
// runtime makes some random choices: the case of a select if several cases are ready, the order of a map, and the order
// of timers with the same time. With the overlay, code in a synctest bubble uses a separate sequence of random numbers,
// which is the same in each run. The order of goroutines in a bubble no longer depends on elapsed time or on goroutines
// outside of the bubble. The overlay works only with GOMAXPROCS=1.
//
// The command changes a copy of the source of the installed Go. If it does not find the code that it must change, it
// fails.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// change replaces a text in a file of Go's library.
type change struct{ file, before, after string }

// inBubble returns Go code that is inserted at the beginning of a function of Go's runtime. In a synctest bubble, the
// code returns the value of the expression result, which may use the variable b for the bubble. Outside of bubbles, the
// code does nothing. If the function runs on the scheduler's goroutine g0, which usually belongs to no bubble, b is the
// bubble of the goroutine that the thread runs (m.curg).
func inBubble(result string) string {
	return `	b := getg().bubble
	if gp := getg().m.curg; b == nil && gp != nil {
		b = gp.bubble
	}
	if b != nil {
		return ` + result + `
	}
`
}

func changes() []change { return slices.Concat(chances(), turns(), orders()) }

// chances returns changes to the source of Go's runtime that make its random numbers reproducible. In each synctest
// bubble, every purpose, such as select or timers, has its own sequence of numbers. With a shared sequence, an
// additional number for one purpose would change the numbers for all other purposes. The changes also fix the order of
// maps.
func chances() []change {
	return []change{
		{"runtime/rand.go", "	mp := getg().m\n	c := &mp.chacha8\n",
			inBubble("b.chance(0)") + "	mp := getg().m\n	c := &mp.chacha8\n"},
		{"runtime/rand.go", "	mp.cheaprand = rand()\n", "	mp.cheaprand = bootstrapRand()\n"},
		{"runtime/select.go", "cheaprandn(uint32(norder + 1))", "uint32(uint64(chosen(1)) * uint64(norder+1) >> 32)"},
		{"runtime/time.go", "			t.rand = cheaprand()\n", "			t.rand = chosen(3)\n"},
		{"runtime/rand.go", "maps_rand() uint64 {\n	return rand()\n",
			"maps_rand() uint64 {\n	return 0x5bd1e9955bd1e995\n"},
		{"runtime/alg.go", "		key[i] = bootstrapRand()\n", "		key[i] = 0x9e3779b97f4a7c15 + uint64(i)\n"},
		{"runtime/rand.go", "// mrandinit initializes", `// numbers is what package math/rand calls.
//
//go:linkname numbers
func numbers() uint64 {
` + inBubble("b.chance(2)") + `	return rand()
}

// chosen orders the cases of a select, and timers of one moment.
func chosen(of int) uint32 {
` + inBubble("uint32(b.chance(of))") + `	return cheaprand()
}

// mrandinit initializes`},
		{"math/rand/v2/rand.go", "//go:linkname runtime_rand runtime.rand\n",
			"//go:linkname runtime_rand runtime.numbers\n"},
		{"math/rand/rand.go", "//go:linkname runtime_rand runtime.rand\n",
			"//go:linkname runtime_rand runtime.numbers\n"},
		{"runtime/synctest.go", "	active  int // other sources of activity\n}\n",
			`	active  int // other sources of activity
	chances [4]uint64
}

// bubblesRun counts bubbles that run.
var bubblesRun atomic.Int32

// chance returns the next number of one of the bubble's own sequences.
//
//go:nosplit
func (b *synctestBubble) chance(of int) uint64 {
	b.chances[of] += 0x9e3779b97f4a7c15
	z := b.chances[of]
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
`},
	}
}

// turns returns changes to the source of Go's scheduler and locks. With the changes, the goroutines of a synctest
// bubble run in the same order in each process. The order then no longer depends on:
//   - the time for which a goroutine has run, or has waited for a lock
//   - the number of goroutines that the scheduler has run since the start of the process
//   - goroutines outside of the bubble
func turns() []change {
	return []change{
		{"runtime/synctest.go", "	gp.bubble = bubble\n	defer func() {\n",
			"	gp.bubble = bubble\n	bubblesRun.Add(1)\n	defer func() {\n		bubblesRun.Add(-1)\n"},
		{"runtime/proc.go", "func retake(now int64) uint32 {\n",
			"func retake(now int64) uint32 {\n	if bubblesRun.Load() > 0 {\n		return 0\n	}\n"},
		{"runtime/proc.go", "	if pp.schedtick%61 == 0 && ", "	if pp.schedtick%61 == 0 && bubblesRun.Load() == 0 && "},
		{"runtime/proc.go", "func ready(gp *g, traceskip int, next bool) {\n",
			`func ready(gp *g, traceskip int, next bool) {
	if gp.bubble == nil && bubblesRun.Load() > 0 {
		next = false
	}
`},
		{"internal/sync/mutex.go", "starving || runtime_nanotime()-waitStartTime > starvationThresholdNs", "true"},
	}
}

// orders returns changes to the source of package context. With the changes, a context cancels its children in the
// order in which they were added. Without the changes, the order depends on the addresses of the children in memory.
func orders() []change {
	return []change{
		{"context/context.go", "	children map[canceler]struct{} //", "	born     int\n	children map[canceler]int //"},
		{"context/context.go", "p.children = make(map[canceler]struct{})", "p.children = make(map[canceler]int)"},
		{"context/context.go", "p.children[child] = struct{}{}", "p.born++\n			p.children[child] = p.born"},
		{"context/context.go", "	for child := range c.children {\n", `	for len(c.children) > 0 {
		var child canceler
		for other, born := range c.children {
			if child == nil || born < c.children[child] {
				child = other
			}
		}
		delete(c.children, child)
`},
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
		source := filepath.Join(strings.TrimSpace(string(root)), "src", c.file)
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
		overlay.Replace[source] = filepath.Join(dir, strings.ReplaceAll(c.file, "/", "_"))
		if err := os.WriteFile(overlay.Replace[source], []byte(strings.Replace(string(text), c.before, c.after, 1)),
			0o600); err != nil {
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
