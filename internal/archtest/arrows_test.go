package archtest

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// An arrow leads from a file to another file of its package that declares something the first one uses. Arrows should
// lead down: into files that do not lead back. Arrows climb if they lead up in the order of the files in which the
// fewest do.

// arrows says for each file which files its arrows lead to.
type arrows map[string]map[string]bool

// climbingPercentOf gives how many of 100 arrows climb inside the packages of a tree, rounded up.
func climbingPercentOf(t *testing.T, files []sourceFile, tree string) int {
	t.Helper()
	packages := map[string][]sourceFile{}
	for _, s := range files {
		if s.pkg == tree || strings.HasPrefix(s.pkg, tree+"/") {
			packages[s.pkg] = append(packages[s.pkg], s)
		}
	}
	all, climbing := 0, 0
	for pkg, files := range packages {
		a := arrowsOf(t, files)
		n, up := a.count(), a.climbing(a.order())
		t.Logf("%s: %d of %d arrows climb", pkg, up, n)
		all, climbing = all+n, climbing+up
	}
	return (100*climbing + all - 1) / max(all, 1)
}

// noImports is an importer without packages: a type check with it finds the uses of what a package itself declares.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not imported") }

// arrowsOf reads the arrows between the files of a package.
func arrowsOf(t *testing.T, files []sourceFile) arrows {
	t.Helper()
	set := token.NewFileSet()
	var parsed []*ast.File
	for _, s := range files {
		file, err := parser.ParseFile(set, s.path, s.text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: noImports{}, FakeImportC: true, Error: func(error) {}} // errors: the imports
	config.Check(files[0].pkg, set, parsed, info)
	a := arrows{}
	for _, s := range files {
		a[s.path] = map[string]bool{}
	}
	for use, object := range info.Uses {
		if !object.Pos().IsValid() {
			continue // of the universe
		}
		if from, to := set.File(use.Pos()).Name(), set.File(object.Pos()).Name(); from != to {
			a[from][to] = true
		}
	}
	return a
}

func (a arrows) count() (n int) {
	for _, to := range a {
		n += len(to)
	}
	return n
}

// climbing counts the arrows that lead from a file to one before it.
func (a arrows) climbing(order []string) (n int) {
	for i, from := range order {
		for _, to := range order[:i] {
			if a[from][to] {
				n++
			}
		}
	}
	return n
}

// order lists the files from the top down, so that few arrows climb. It starts from a greedy order and moves single
// files as long as that helps; the result depends on the arrows only.
func (a arrows) order() []string {
	order := a.greedyOrder()
	for improved := true; improved; {
		improved = false
		for _, file := range slices.Clone(order) {
			at := slices.Index(order, file)
			if to := a.bestPosition(order, at); to != at {
				order = slices.Insert(slices.Delete(order, at, at+1), to, file)
				improved = true
			}
		}
	}
	return order
}

// bestPosition gives the position in order at which the file at position at makes the fewest arrows climb.
func (a arrows) bestPosition(order []string, at int) int {
	file, best, bestChange := order[at], at, 0
	change := 0 // of the number of climbing arrows, against the position at
	for i := at + 1; i < len(order); i++ {
		change += one(a[file][order[i]]) - one(a[order[i]][file])
		if change < bestChange {
			best, bestChange = i, change
		}
	}
	change = 0
	for i := at - 1; i >= 0; i-- {
		change += one(a[order[i]][file]) - one(a[file][order[i]])
		if change < bestChange {
			best, bestChange = i, change
		}
	}
	return best
}

// greedyOrder takes away the file with the most arrows out of it and the fewest into it, again and again (Eades, Lin
// and Smyth: A fast and effective heuristic for the feedback arc set problem, 1993).
func (a arrows) greedyOrder() (order []string) {
	var rest []string
	for file := range a {
		rest = append(rest, file)
	}
	slices.Sort(rest)
	for len(rest) > 0 {
		best, bestBalance := 0, 0
		for i, file := range rest {
			balance := 0
			for _, other := range rest {
				balance += one(a[file][other]) - one(a[other][file])
			}
			if i == 0 || balance > bestBalance {
				best, bestBalance = i, balance
			}
		}
		order = append(order, rest[best])
		rest = slices.Delete(rest, best, best+1)
	}
	return order
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestArrows(t *testing.T) {
	files := []sourceFile{
		{path: "a.go", text: "package p\nimport \"x\"\ntype A struct { *B; n x.N }\nfunc (a *A) go1() { a.go2(); a.Field++ }\n"},
		{path: "b.go", text: "package p\ntype B struct { Field int }\n"},
		{path: "c.go", text: "package p\nfunc (a *A) go2() { undefined(len(\"\")); a.go3() }\n"},
		{path: "d.go", text: "package p\nfunc (a *A) go3() {}\nvar A2, B2 = 1, 2\nfunc f(B string) { _ = B }\n"},
	}
	a := arrowsOf(t, files)
	for _, want := range [][2]string{{"a.go", "b.go"}, {"a.go", "c.go"}, {"c.go", "a.go"}, {"c.go", "d.go"}, {"d.go", "a.go"}} {
		if !a[want[0]][want[1]] {
			t.Errorf("no arrow leads from %s to %s", want[0], want[1])
		}
	}
	if n := a.count(); n != 5 {
		t.Errorf("%d arrows, want 5: %v", n, a)
	}
	order := a.order()
	if n := a.climbing(order); n != 1 { // c uses a and a uses c
		t.Errorf("%d arrows climb in %v, want 1", n, order)
	}
}

func TestOrderIsNoWorseThanEveryOther(t *testing.T) {
	a := arrows{}
	names := []string{"a", "b", "c", "d", "e", "f"}
	for i, from := range names {
		a[from] = map[string]bool{}
		for j, to := range names {
			if i != j && (i*5+j*7+i*j)%3 != 0 {
				a[from][to] = true
			}
		}
	}
	got, fewest := a.climbing(a.order()), a.count()
	permute(names, 0, func(order []string) { fewest = min(fewest, a.climbing(order)) })
	if got != fewest || fewest == 0 {
		t.Errorf("%d of %d arrows climb, the fewest possible are %d", got, a.count(), fewest)
	}
}

// permute calls f with every order of names[k:] behind names[:k].
func permute(names []string, k int, f func([]string)) {
	if k == len(names) {
		f(names)
		return
	}
	for i := k; i < len(names); i++ {
		names[k], names[i] = names[i], names[k]
		permute(names, k+1, f)
		names[k], names[i] = names[i], names[k]
	}
}
