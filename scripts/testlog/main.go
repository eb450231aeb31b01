// Command testlog reads what `go test -json` prints and tells a person what matters of it: a line for each package,
// the output of what failed, what was skipped and why, and which tests took longest. It is not a judge: the exit
// code of go test says whether the tests passed.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	if err := tell(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testlog:", err)
		os.Exit(1)
	}
}

// event is one line of `go test -json`; see `go doc test2json` and, for the lines of builds, `go help buildjson`.
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64 // seconds
}

// name is a test of a package, or with an empty test the package itself.
type name struct{ pkg, test string }

type ended struct {
	name
	seconds float64
}

type teller struct {
	out     io.Writer
	said    map[name][]string // of those that have not passed
	failed  map[string][]name // by package, in order
	skipped []string
	slow    []ended
}

func tell(in io.Reader, out io.Writer) error {
	t := &teller{out: out, said: map[name][]string{}, failed: map[string][]name{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			t.line(line)
		}
		if err == io.EOF {
			t.sum()
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (t *teller) line(line []byte) {
	var ev event
	if json.Unmarshal(line, &ev) != nil {
		fmt.Fprintf(t.out, "%s", line) // whatever else go test has to say
		return
	}
	n := name{ev.Package, ev.Test}
	switch ev.Action {
	case "build-output":
		fmt.Fprint(t.out, ev.Output)
	case "output":
		t.said[n] = append(t.said[n], ev.Output)
	case "pass", "fail", "skip":
		t.end(n, ev)
	}
}

func (t *teller) end(n name, ev event) {
	if n.test == "" {
		t.endPackage(n, ev)
		return
	}
	if ev.Action == "fail" {
		t.failed[n.pkg] = append(t.failed[n.pkg], n)
		return
	}
	if ev.Action == "skip" {
		t.skipped = append(t.skipped, n.pkg+" "+n.test+": "+reason(t.said[n]))
	}
	delete(t.said, n)
	if !strings.Contains(n.test, "/") {
		t.slow = append(t.slow, ended{n, ev.Elapsed})
	}
}

func (t *teller) endPackage(n name, ev event) {
	if ev.Action == "fail" {
		t.failures(n.pkg)
		t.unfinished(n.pkg)
	}
	last := ""
	if own := t.said[n]; len(own) > 0 {
		last = own[len(own)-1]
		if ev.Action == "fail" {
			last = strings.Join(own, "")
		}
	}
	fmt.Fprint(t.out, last)
	delete(t.said, n)
}

func (t *teller) failures(pkg string) {
	for _, f := range t.failed[pkg] {
		fmt.Fprint(t.out, strings.Join(t.said[f], ""))
		delete(t.said, f)
	}
	delete(t.failed, pkg)
}

// unfinished tells what tests had said that the end of the package cut short: a panic, a race or a timeout.
func (t *teller) unfinished(pkg string) {
	var cut []name
	for n := range t.said {
		if n.pkg == pkg && n.test != "" {
			cut = append(cut, n)
		}
	}
	slices.SortFunc(cut, func(a, b name) int { return cmp.Compare(a.test, b.test) })
	for _, n := range cut {
		fmt.Fprint(t.out, strings.Join(t.said[n], ""))
		delete(t.said, n)
	}
}

// reason is the last line that a skipped test logged.
func reason(said []string) string {
	for _, line := range slices.Backward(said) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "===") {
			return line
		}
	}
	return "it says no reason"
}

const slowest = 12

func (t *teller) sum() {
	for _, pkg := range slices.Sorted(maps.Keys(t.failed)) { // a panic may end a program before its package has ended
		t.failures(pkg)
		t.unfinished(pkg)
	}
	slices.SortStableFunc(t.slow, func(a, b ended) int { return cmp.Compare(b.seconds, a.seconds) })
	fmt.Fprintln(t.out, "\nslowest tests")
	for _, e := range t.slow[:min(slowest, len(t.slow))] {
		fmt.Fprintf(t.out, "%8.1fs %s %s\n", e.seconds, e.pkg, e.test)
	}
	if len(t.skipped) > 0 {
		fmt.Fprintln(t.out, "\nskipped tests")
		fmt.Fprintln(t.out, "  "+strings.Join(t.skipped, "\n  "))
	}
}
