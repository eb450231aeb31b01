package archtest

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/invariants.md may only name tests that exist, and state each promise once.
func TestEveryPromiseIsHeld(t *testing.T) {
	text := readDoc(t, "docs/invariants.md")
	tests := testsByPackage(t)
	exists := func(pkg, name string) bool { return slices.Contains(tests[pkg], name) }
	promises, problems := checkPromises(text, exists)
	for _, p := range problems {
		t.Error(p)
	}
	if promises < 50 {
		t.Errorf("only %d promises were found: does docs/invariants.md still hold a table?", promises)
	}
}

func TestPromisesThatAreNotHeldAreFound(t *testing.T) {
	exists := func(pkg, name string) bool { return pkg == "bot/render" && name == "TestSplit" }
	for _, c := range []struct{ row, problem string }{
		{"| All is well | `bot/render TestSplit` |", ""},
		{"| `code` in a promise | `bot/render TestSplit`, `bot/render TestSplit` |", ""},
		{"| All is well | `bot/render TestGone` |", "bot/render has no TestGone"},
		{"| All is well | `bot/render TestSplit`, `bot TestSplit` |", "bot has no TestSplit"},
		{"| All is well | by care |", "names no test"},
		{"| All is well | |", "names no test"},
		{"| All is well | `TestSplit` |", "names no test"},
		{"| All is well | `bot/render TestSplit`, `TestMore` |", "is not a package and a test"},
		{"| All is well |", "has 1 cells"},
		{"| All is well | `bot/render TestSplit` |\n| Nothing is wrong | `bot/render TestSplit` |", "the same tests"},
	} {
		text := "# Invariants\n\n| promise | held by |\n|---|---|\n" + c.row + "\n"
		n, problems := checkPromises(text, exists)
		got := strings.Join(problems, "\n")
		rows := strings.Count(c.row, "\n") + 1
		if n != rows || !strings.Contains(got, c.problem) || c.problem == "" && got != "" {
			t.Errorf("%s: %d promises, %q; want %q", c.row, n, got, c.problem)
		}
	}
}

var (
	quoted   = regexp.MustCompile("`([^`]+)`")
	heldBy   = regexp.MustCompile(`^([a-z][a-z/]*) ((?:Test|Fuzz)[A-Za-z0-9_]+)$`)
	ruleLine = regexp.MustCompile(`^\|[-| :]+\|$`)
)

// checkPromises counts the rows of the tables in text, and describes problems with their tests. Two promises with the
// same tests are one promise that is stated twice.
func checkPromises(text string, exists func(pkg, name string) bool) (promises int, problems []string) {
	head := true // the first row of a table names its columns
	promiseOf := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			head = true
			continue
		case ruleLine.MatchString(line):
			head = false
			continue
		case head:
			continue
		}
		promises++
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 2 {
			problems = append(problems, fmt.Sprintf("%s: has %d cells", line, len(cells)))
			continue
		}
		for _, p := range checkHolders(cells[1], exists) {
			problems = append(problems, strings.TrimSpace(cells[0])+": "+p)
		}
		if other, ok := promiseOf[cells[1]]; ok {
			problems = append(problems, fmt.Sprintf("%s: has the same tests as %q", strings.TrimSpace(cells[0]), other))
		}
		promiseOf[cells[1]] = strings.TrimSpace(cells[0])
	}
	return promises, problems
}

func checkHolders(cell string, exists func(pkg, name string) bool) (problems []string) {
	named := 0
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		by := heldBy.FindStringSubmatch(m[1])
		if by == nil {
			problems = append(problems, fmt.Sprintf("%q is not a package and a test", m[1]))
			continue
		}
		if named++; !exists(by[1], by[2]) {
			problems = append(problems, by[1]+" has no "+by[2])
		}
	}
	if named == 0 {
		problems = append(problems, "names no test")
	}
	return problems
}

// testsByPackage lists the functions in the tests of each package.
func testsByPackage(t *testing.T) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	for _, f := range parsedTree(t) {
		if !f.isTest() {
			continue
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				tests[f.pkg] = append(tests[f.pkg], fn.Name.Name)
			}
		}
	}
	return tests
}

func readDoc(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
