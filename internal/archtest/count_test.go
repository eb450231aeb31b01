package archtest

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// counted names one number: a quantity of a package.
type counted struct {
	what  string
	where string
}

// The quantities that have ceilings.
const (
	tokens            = "tokens"
	wideLines         = "wide-lines"
	longestFunction   = "function-lines"
	excessParameters  = "excess-parameters"
	wideStructs       = "wide-structs"
	excessFields      = "excess-fields"
	singleUseStructs  = "single-use-structs"
	loneInterfaces    = "lone-interfaces"
	repeatedContracts = "repeated-contracts"
	clauses           = "clauses"
)

// goals has the number of each quantity that needs no line in ceilings.txt.
var goals = map[string]int{
	tokens:            30_000,
	wideLines:         0,
	longestFunction:   60,
	excessParameters:  0,
	wideStructs:       0,
	excessFields:      0,
	singleUseStructs:  0,
	loneInterfaces:    0,
	repeatedContracts: 0,
	clauses:           50,
}

const (
	maxColumns    = 120
	tabColumns    = 4
	maxParameters = 6
)

// measurement holds the numbers of all quantities, and the places in the code that make them up.
type measurement struct {
	numbers map[counted]int
	places  map[counted][]string
}

func newMeasurement() *measurement {
	return &measurement{numbers: map[counted]int{}, places: map[counted][]string{}}
}

// count adds n to a number. The place is the code that it comes from.
func (m *measurement) count(what, where string, n int, place string) {
	key := counted{what, where}
	m.numbers[key] += n
	m.places[key] = append(m.places[key], place)
}

// raise sets a number to n if it is lower.
func (m *measurement) raise(what, where string, n int, place string) {
	key := counted{what, where}
	if n > m.numbers[key] {
		m.numbers[key] = n
		m.places[key] = []string{place}
	}
}

// measure counts every quantity.
func measure(files []parsedFile) *measurement {
	m := newMeasurement()
	for _, f := range files {
		m.countTokens(f)
		m.countWideLines(f)
		m.countFunctions(f)
	}
	m.countStructs(files)
	m.countClauses(files)
	m.countInterfaces(files)
	return m
}

// place returns the name under which the numbers of a file count. Tests, simulators and tools have ceilings of their
// own, whose names end in _test.
func (s sourceFile) place() string {
	if s.isProduction() {
		return s.pkg
	}
	return s.pkg + "_test"
}

// countTokens counts the tokens of a file without comments and automatic semicolons.
func (m *measurement) countTokens(f parsedFile) {
	set, text, n := token.NewFileSet(), []byte(f.text), 0
	var s scanner.Scanner
	s.Init(set.AddFile(f.path, -1, len(text)), text, nil, 0)
	for {
		_, tok, literal := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok != token.SEMICOLON || literal == ";" {
			n++
		}
	}
	m.count(tokens, f.place(), n, f.path)
}

// countWideLines counts the lines of code past 120 columns. Lines of comments may be wider.
func (m *measurement) countWideLines(f parsedFile) {
	number := 0
	for line := range strings.Lines(f.text) {
		number++
		if !strings.HasPrefix(strings.TrimSpace(line), "//") && columns(line) > maxColumns {
			m.count(wideLines, f.place(), 1, fmt.Sprintf("%s:%d", f.path, number))
		}
	}
}

// columns returns the width of a line with a tab stop every four columns.
func columns(line string) int {
	line = strings.TrimRight(line, "\r\n")
	tabs := 0
	for tabs < len(line) && line[tabs] == '\t' {
		tabs++
	}
	return tabs*tabColumns + utf8.RuneCountInString(line[tabs:])
}

// countFunctions measures the lengths and the parameters of the functions that a file declares.
func (m *measurement) countFunctions(f parsedFile) {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		place := f.position(fn.Pos()) + " " + fn.Name.Name
		if fn.Body != nil {
			m.raise(longestFunction, f.place(), f.line(fn.Body.Rbrace)-f.line(fn.Body.Lbrace)-1, place)
		}
		if n := fn.Type.Params.NumFields() - maxParameters; n > 0 {
			m.count(excessParameters, f.place(), n, place)
		}
	}
}

// notRead matches habits of prose that cost readers time: the words of ../shared/STYLE.md.
var notRead = []*regexp.Regexp{
	regexp.MustCompile(`\bwhat\b`),
	regexp.MustCompile(`\b(says?|said|tells?|told) (whether|what|that|which|how|why|where|when|who|so)\b`),
	regexp.MustCompile(`\b(one (that|of|which|without|with)|those (of|that)|that of)\b`),
	regexp.MustCompile(`\b(has|have|had) (a|an|the|it|them|its|this|that|another|all|each|users?) ?\w* ` +
		`(be|do|go|end|show|ask|run|start|wait|take|send|know|come|see|make)\b`),
	regexp.MustCompile(`\b(go(es)?|went|going|gone) on\b|\bfor ever\b|\bby (itself|themselves)\b`),
	regexp.MustCompile(`(^|[.;:] |, )(Who|who) \w+s\b|\b[Nn]obody\b|\b[Ss]omebody\b`),
	regexp.MustCompile(`\b[Tt]here (is|are|was|were)\b`),
}

// countClauses counts how often 1,000 lines of comments match notRead, in tens: a removed comment rarely raises that.
func (m *measurement) countClauses(files []parsedFile) {
	lines, found := map[string]int{}, newMeasurement()
	for _, f := range files {
		for _, group := range f.Comments {
			for _, comment := range group.List {
				if strings.HasPrefix(comment.Text, "//go:") {
					continue
				}
				for i, line := range strings.Split(comment.Text, "\n") {
					lines[f.place()]++
					line = strings.TrimSpace(strings.TrimPrefix(line, "//"))
					for _, pattern := range notRead {
						if hit := pattern.FindString(line); hit != "" {
							found.count(clauses, f.place(), 1, fmt.Sprintf("%s:%d %q", f.path, f.line(comment.Pos())+i,
								hit))
						}
					}
				}
			}
		}
	}
	for key, n := range found.numbers {
		m.numbers[key] = (100*n + lines[key.where] - 1) / lines[key.where] * 10
		m.places[key] = found.places[key]
	}
}

func TestProductionIsWhatUsersInstall(t *testing.T) {
	for name, want := range map[string]bool{
		"bot/card/card.go": true, "cmd/ductor/run.go": true, "internal/store/open.go": true,
		"bot/card/card_test.go":     false,
		"cmd/ductor/demo_screen.go": false, "cmd/ductor-bench/main.go": false, "internal/sim/agent/agent.go": false,
		"cli/clitest/host.go": false, "scripts/testlog/main.go": false, "docs/chat.md": false,
	} {
		if newSource(name, "").isProduction() != want {
			t.Errorf("%s is production code: %t, want %t", name, !want, want)
		}
	}
}

func TestMeasureFiles(t *testing.T) {
	wide := strings.Repeat("x", 110)
	for _, c := range []struct {
		what, code string
		want       int
	}{
		{tokens, "// a comment\nvar x = 1 /* and more */ + f(`raw`)\n\nfunc f(string) int; type a int\n", 21},
		{wideLines, "var " + wide + "xx int\nvar y" + wide + "xx int\n", 1},
		{wideLines, "func f() {\n\t_ = \"" + wide + "\"\n\t_ = \"é" + wide + "äö\"\n}\n// " + wide + wide, 1},
		{longestFunction, "func f() {\n\tg()\n}\n\nfunc (x T) h(\n) {\n}\n\nfunc g() int {\n\tif true " +
			"{\n\t}\n\treturn 1\n}\n\nfunc assembly()\n", 3},
		{excessParameters, "func f(a, b, c int, d, e, f string) {}\n", 0},
		{excessParameters, "func (x T) f(a, b, c int, d, e, f string, g ...int) {}\n\nfunc g(int, int, int, int, " +
			"int, int, int, int)\n", 3},
		{clauses, "// One says whether it is one of\n// these. There are\n// what\n// there is no " +
			"more.\n//go:noinline what\nvar x int // what\n", 1200},
		{clauses, "/* what\n2\n3\n4\n5\n6\n7 */\n", 150},
		{clauses, "/* what\nis what */\nvar x = \"what\"\n", 1000},
	} {
		m := measure([]parsedFile{parse(t, "bot/x.go", "package bot\n\n"+c.code)})
		key := counted{c.what, "bot"}
		if n := m.numbers[key]; n != c.want {
			t.Errorf("%s: %d, want %d in %q:\n%s", c.what, n, c.want, m.places[key], c.code)
		}
	}
	m := measure([]parsedFile{parse(t, "bot/x_test.go", "package bot\n\nvar x int\n"),
		parse(t, "scripts/y/y.go", "package y\n")})
	if m.numbers[counted{tokens, "bot_test"}] != 5 || m.numbers[counted{tokens, "scripts/y_test"}] != 2 {
		t.Errorf("tests and support count as %v", m.numbers)
	}
}
