// Command testlog summarizes the output of `go test -json`. It prints a line for each package, the output of failed
// tests, the slowest tests, and skipped tests with their reasons. At the end it repeats the failures in a few lines,
// for readers who see only the end of a log. Only the exit code of go test shows whether the tests passed.
//
//	go test -json ./... | testlog [FILE]
//
// It appends a line to FILE, with the numbers of passed, failed and skipped tests.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "testlog:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	counts, err := tell(os.Stdin, os.Stdout)
	if err != nil || len(args) == 0 {
		return err
	}
	f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, counts.passed, counts.failed, counts.skipped)
	return errors.Join(err, f.Close())
}

// event is one line of `go test -json`; see `go doc test2json` and, for the lines of builds, `go help buildjson`.
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64 // seconds
}

// name identifies a test. If test is empty, it identifies a package.
type name struct{ pkg, test string }

type ended struct {
	test    name
	seconds float64
}

type teller struct {
	out     io.Writer
	said    map[name][]string // output of tests that are still running or have failed
	failed  map[string][]name // failed tests of each package, in the order in which they failed
	skipped map[string][]name // skipped tests, by reason
	slow    []ended
	gist    []string // short descriptions of the failures
	counts  counts
}

// counts contains numbers of tests. Subtests are also counted.
type counts struct{ passed, failed, skipped int }

func tell(in io.Reader, out io.Writer) (counts, error) {
	t := &teller{out: out, said: map[name][]string{}, failed: map[string][]name{}, skipped: map[string][]name{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			t.line(line)
		}
		if err == io.EOF {
			t.sum()
			return t.counts, nil
		}
		if err != nil {
			return t.counts, err
		}
	}
}

func (t *teller) line(line []byte) {
	var ev event
	if json.Unmarshal(line, &ev) != nil {
		fmt.Fprintf(t.out, "%s", line) // the line is not JSON, but other output of go test
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
	switch ev.Action {
	case "fail":
		t.counts.failed++
		t.failed[n.pkg] = append(t.failed[n.pkg], n)
		return
	case "pass":
		t.counts.passed++
	case "skip":
		t.counts.skipped++
		why := reason(t.said[n])
		t.skipped[why] = append(t.skipped[why], n)
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
		t.gist = append(t.gist, f.pkg+" "+f.test+"\n"+gist(t.said[f]))
		delete(t.said, f)
	}
	delete(t.failed, pkg)
}

// unfinished prints the output of tests that did not end, because a panic, a data race or a timeout ended the test
// binary.
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
		if c := crash(t.said[n]); c != "" {
			t.gist = append(t.gist, n.pkg+" "+n.test+"\n"+c)
		}
		delete(t.said, n)
	}
}

// logged matches the first line of a test's log message. Such a line begins with the file and line of the call.
var logged = regexp.MustCompile(`^ *(\w+_test\.go:\d+): `)

// reason returns the last line that a skipped test has logged.
func reason(said []string) string {
	for _, line := range slices.Backward(said) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "---") &&
			!strings.HasPrefix(line, "===") {
			return logged.ReplaceAllString(line, "")
		}
	}
	return "it says no reason"
}

// gist returns the messages that a test has logged. If one line of the test's code has logged several messages, gist
// returns only the last of them: usually this line logs the output of a child process, of which only the end matters.
// Different lines log different failures, so gist returns all failures.
func gist(said []string) string {
	type entry struct{ from, text string }
	var entries []entry
	for _, line := range said {
		if m := logged.FindStringSubmatch(line); m != nil {
			entries = slices.DeleteFunc(entries, func(e entry) bool { return e.from == m[1] })
			entries = append(entries, entry{m[1], line})
		} else if n := len(entries); n > 0 && strings.HasPrefix(line, "        ") {
			// The message continues on this line.
			entries[n-1].text += line
		}
	}
	var out strings.Builder
	for _, e := range entries {
		out.WriteString(shortened(e.text))
	}
	return out.String() + crash(said)
}

// crashed matches the first line of a report of the Go runtime: a panic, a fatal error or a data race.
var crashed = regexp.MustCompile(`^(panic: |fatal error: |WARNING: DATA RACE)`)

// crash returns the first lines of a report of the Go runtime, or "".
func crash(said []string) string {
	const most = 40 // maximum number of lines
	i := slices.IndexFunc(said, crashed.MatchString)
	if i < 0 {
		return ""
	}
	return strings.Join(said[i:min(i+most, len(said))], "")
}

func shortened(text string) string {
	const begin, end = 300, 500
	if len(text) <= begin+end {
		return text
	}
	return strings.ToValidUTF8(text[:begin]+"\n        ...\n"+text[len(text)-end:], "")
}

const slowest = 12

func (t *teller) sum() {
	for _, pkg := range slices.Sorted(maps.Keys(t.failed)) { // a package that panics does not report its end
		t.failures(pkg)
		t.unfinished(pkg)
	}
	slices.SortStableFunc(t.slow, func(a, b ended) int { return cmp.Compare(b.seconds, a.seconds) })
	fmt.Fprintln(t.out, "\nslowest tests")
	for _, e := range t.slow[:min(slowest, len(t.slow))] {
		fmt.Fprintf(t.out, "%8.1fs %s %s\n", e.seconds, e.test.pkg, e.test.test)
	}
	if len(t.skipped) > 0 {
		fmt.Fprintln(t.out, "\nskipped tests")
		for _, why := range slices.Sorted(maps.Keys(t.skipped)) {
			fmt.Fprintf(t.out, "  %s:\n", why)
			for _, n := range t.skipped[why] {
				fmt.Fprintf(t.out, "    %s %s\n", n.pkg, n.test)
			}
		}
	}
	if len(t.gist) > 0 {
		fmt.Fprintf(t.out, "\nfailed tests: %d\n%s", len(t.gist), strings.Join(t.gist, ""))
	}
}
