package archtest

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// counted is what one ceiling limits: a quantity of a package, a file or a tree.
type counted struct {
	what  string
	where string
}

// The quantities that have ceilings.
const (
	longestFile     = "file-lines"
	longestFunction = "function-lines"
	wideStructs     = "wide-structs"
	excessFields    = "excess-fields"
	sharedNames     = "shared-names"
	climbingPercent = "climbing-percent"
)

// goals say for each quantity which number needs no line in ceilings.txt.
var goals = map[string]int{
	longestFile:     400,
	longestFunction: 60,
	wideStructs:     0,
	excessFields:    0,
	sharedNames:     12,
	climbingPercent: 15,
}

// A struct with state has at most this many fields, and with a mutex at most this many booleans.
const (
	maxFields = 12
	maxBools  = 2
)

// measure counts every quantity in the production code.
func measure(t *testing.T) map[counted]int {
	t.Helper()
	numbers := map[counted]int{}
	var production []sourceFile
	for _, s := range readFiles(t, func(s sourceFile) bool { return s.isProduction() }) {
		production = append(production, s)
		measureFile(s, numbers)
	}
	if len(production) < 100 {
		t.Fatalf("only %d files of production code were found", len(production))
	}
	numbers[counted{sharedNames, "cli"}] = len(namesInAll(production, "cli/acp", "cli/codex", "cli/copilot"))
	for _, tree := range []string{"bot", "cli"} {
		numbers[counted{climbingPercent, tree}] = climbingPercentOf(t, production, tree)
	}
	return numbers
}

// measureFile adds the numbers of a Go file to those of its package.
func measureFile(s sourceFile, numbers map[counted]int) {
	atLeast := func(what string, n int) {
		key := counted{what, s.pkg}
		numbers[key] = max(numbers[key], n)
	}
	atLeast(longestFile, strings.Count(s.text, "\n"))
	for _, n := range functionLines(s.text) {
		atLeast(longestFunction, n)
	}
	for _, excess := range wideStructsOf(s) {
		numbers[counted{wideStructs, s.pkg}]++
		numbers[counted{excessFields, s.pkg}] += excess
	}
}

var (
	functionBody = regexp.MustCompile(`(?ms)^func [^\n]*\{\n(.*?)^\}`)
	functionName = regexp.MustCompile(`(?m)^func (?:\(\s*\w*\s*\*?\w+(?:\[[^\]]*\])?\) )?(\w+)[\[(]`)
	structBody   = regexp.MustCompile(`(?ms)^type (\w+) struct \{\n(.*?)^\}`)
	lineComment  = regexp.MustCompile(`//[^\n]*`)
	fieldLine    = regexp.MustCompile(`^\t((?:\w+, )*\w+) +(\S+)`)
	embeddedLine = regexp.MustCompile(`^\t[*\w.]+\s*$`)

	// Options, configuration and wire types hold no state.
	statelessFile   = regexp.MustCompile(`(wire|row|codec)[^/]*\.go$|internal/config/`)
	statelessStruct = regexp.MustCompile(`(?i)(Options|Config|Params|Request|Row)$`)
)

// functionLines gives the length of each function's body.
func functionLines(code string) (lines []int) {
	for _, m := range functionBody.FindAllStringSubmatch(code, -1) {
		lines = append(lines, strings.Count(m[1], "\n"))
	}
	return lines
}

// wideStructsOf gives for each struct of s with too much state by how many fields and booleans it is too wide.
func wideStructsOf(s sourceFile) (excess []int) {
	if statelessFile.MatchString(s.path) {
		return nil
	}
	for _, m := range structBody.FindAllStringSubmatch(s.text, -1) {
		if statelessStruct.MatchString(m[1]) {
			continue
		}
		body := lineComment.ReplaceAllString(m[2], "")
		fields, bools := countFields(body)
		if !strings.Contains(body, "sync.") {
			bools = 0
		}
		if fields > maxFields || bools > maxBools {
			excess = append(excess, max(0, fields-maxFields)+max(0, bools-maxBools))
		}
	}
	return excess
}

// countFields counts the fields of a struct's body without comments, and those of them that are booleans.
func countFields(body string) (fields, bools int) {
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		if m := fieldLine.FindStringSubmatch(line); m != nil {
			n := strings.Count(m[1], ",") + 1
			fields += n
			if m[2] == "bool" {
				bools += n
			}
		} else if embeddedLine.MatchString(line) {
			fields++
		}
	}
	return fields, bools
}

// namesInAll lists the names of functions and methods that each of the packages defines.
func namesInAll(files []sourceFile, packages ...string) (names []string) {
	definedIn := map[string]map[string]bool{}
	for _, s := range files {
		for _, m := range functionName.FindAllStringSubmatch(s.text, -1) {
			if definedIn[m[1]] == nil {
				definedIn[m[1]] = map[string]bool{}
			}
			definedIn[m[1]][s.pkg] = true
		}
	}
	for name, in := range definedIn {
		if !slices.ContainsFunc(packages, func(pkg string) bool { return !in[pkg] }) {
			names = append(names, name)
		}
	}
	return names
}

func TestProductionIsWhatUsersInstall(t *testing.T) {
	for name, want := range map[string]bool{
		"bot/card/card.go": true, "cmd/ductor/run.go": true, "internal/store/open.go": true, "bot/card/card_test.go": false,
		"cmd/ductor/demo_screen.go": false, "cmd/ductor-bench/main.go": false, "internal/sim/agent/agent.go": false,
		"cli/clitest/host.go": false, "scripts/testlog/main.go": false, "docs/chat.md": false,
	} {
		if s := (sourceFile{path: name, pkg: path.Dir(name)}); s.isProduction() != want {
			t.Errorf("%s is production code: %t, want %t", name, s.isProduction(), want)
		}
	}
}

func TestMeasureFile(t *testing.T) {
	fields := func(n int, typ string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString("\tf" + string(rune('a'+i)) + " " + typ + " // a bool\n")
		}
		return b.String()
	}
	for _, c := range []struct {
		what, path, text string
		want             int
	}{
		{longestFile, "bot/x.go", "package bot\n\nvar x int\n", 3},
		{longestFunction, "bot/x.go", "func f() {\n\tg()\n}\n\nfunc (x T) h(\n) {\n}\n\nfunc g() int {\n\tif true {\n\t}\n\treturn 1\n}\n", 3},
		{wideStructs, "bot/x.go", "type T struct {\n" + fields(12, "int") + "}\n", 0},
		{wideStructs, "bot/x.go", "type T struct {\n" + fields(12, "int") + "\t*U\n}\n", 1},
		{wideStructs, "bot/x.go", "type TOptions struct {\n" + fields(20, "int") + "}\n", 0},
		{wideStructs, "bot/wire.go", "type T struct {\n" + fields(20, "int") + "}\n", 0},
		{wideStructs, "bot/x.go", "type T struct {\n" + fields(3, "bool") + "}\n", 0},
		{wideStructs, "bot/x.go", "type T struct {\n\tmu sync.Mutex\n" + fields(3, "bool") + "}\n", 1},
		{excessFields, "bot/x.go", "type T struct {\n\tmu sync.Mutex\n\tx, y, z bool\n" + fields(10, "int") + "}\n", 3},
		{excessFields, "bot/x.go", "type T struct {\n\tx, y, z bool\n" + fields(10, "int") + "}\n", 1},
	} {
		numbers := map[counted]int{}
		measureFile(sourceFile{path: c.path, pkg: path.Dir(c.path), text: c.text}, numbers)
		if n := numbers[counted{c.what, "bot"}]; n != c.want {
			t.Errorf("%s of %s: %d, want %d:\n%s", c.what, c.path, n, c.want, c.text)
		}
	}
}

func TestNamesInAll(t *testing.T) {
	files := []sourceFile{
		{pkg: "a", text: "func one() {}\nfunc (t *T) two() {}\nfunc three() {}\n"},
		{pkg: "b", text: "func (u U[K, V]) one(x int) {}\nfunc two[T any](x T) {}\n// func three() {}\n"},
		{pkg: "c", text: "func three() {}\n"},
	}
	names := namesInAll(files, "a", "b")
	slices.Sort(names)
	if want := []string{"one", "two"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}
