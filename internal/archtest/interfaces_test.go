package archtest

import (
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// declaredType is a type with its own declarations.
type declaredType struct {
	file    parsedFile
	spec    *ast.TypeSpec
	methods map[string]declaredMethod
	embeds  []string // full names
}

type declaredMethod struct {
	signature string // with full names of types, to compare across packages
	doc       string
	place     string
}

// typeIndex holds the types of the module by their full names, such as bot/card.Card.
type typeIndex struct {
	types   map[string]*declaredType
	aliases map[string]string
}

// countInterfaces counts the interfaces of production code that have one implementation and no fake, and the methods
// that repeat the comment of the interface's method.
func (m *measurement) countInterfaces(files []parsedFile) {
	index := indexTypes(files)
	sets := map[string]map[string]declaredMethod{}
	for name := range index.types {
		sets[name] = index.methodSet(name, map[string]bool{})
	}
	repeated := map[string]string{} // the packages of the methods, each once even if it implements two interfaces
	names := slices.Sorted(maps.Keys(index.types))
	for _, name := range names {
		port := index.types[name]
		if !port.isInterface() || port.spec.TypeParams != nil || !port.file.isProduction() || len(sets[name]) == 0 {
			continue
		}
		var implementations, fakes []string
		for _, candidate := range names {
			switch c := index.types[candidate]; {
			case c.isInterface() || !implements(sets[candidate], sets[name]):
			case c.file.isProduction():
				implementations = append(implementations, candidate)
			default:
				fakes = append(fakes, candidate)
			}
		}
		if len(implementations) == 1 && len(fakes) == 0 {
			m.count(loneInterfaces, port.file.place(), 1, port.file.position(port.spec.Pos())+" "+name)
		}
		for _, implementation := range implementations {
			for _, place := range index.types[implementation].repeatedContracts(port) {
				repeated[place] = index.types[implementation].file.place()
			}
		}
	}
	for _, place := range slices.Sorted(maps.Keys(repeated)) {
		m.count(repeatedContracts, repeated[place], 1, place)
	}
}

// repeatedContracts returns the places of the methods of d whose comments repeat those of an interface.
func (d *declaredType) repeatedContracts(port *declaredType) (places []string) {
	for name, contract := range port.methods {
		if own, declared := d.methods[name]; declared && repeats(contract.doc, own.doc) {
			places = append(places, own.place)
		}
	}
	return places
}

// indexTypes collects the types and methods that files declare.
func indexTypes(files []parsedFile) typeIndex {
	index := typeIndex{types: map[string]*declaredType{}, aliases: map[string]string{}}
	for _, f := range files {
		for _, spec := range typeSpecs(f) {
			if spec.Assign.IsValid() {
				index.aliases[f.scope()+"."+spec.Name.Name] = strings.TrimPrefix(newNamer(f, nil).name(spec.Type), "*")
				continue
			}
			index.types[f.scope()+"."+spec.Name.Name] = &declaredType{file: f, spec: spec,
				methods: map[string]declaredMethod{}}
		}
	}
	for _, d := range index.types {
		d.readSpec(index.aliases)
	}
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				if receiver := index.types[f.scope()+"."+baseName(fn.Recv.List[0].Type)]; receiver != nil {
					receiver.addMethod(f, fn.Name, fn.Type, fn.Doc, index.aliases)
				}
			}
		}
	}
	return index
}

// scope returns the package that the names of a file belong to. External tests have their own.
func (f parsedFile) scope() string {
	if strings.HasSuffix(f.Name.Name, "_test") {
		return f.pkg + "_test"
	}
	return f.pkg
}

func (d *declaredType) isInterface() bool {
	_, ok := d.spec.Type.(*ast.InterfaceType)
	return ok
}

// readSpec reads the methods of an interface, and the types that an interface or a struct embeds.
func (d *declaredType) readSpec(aliases map[string]string) {
	var fields *ast.FieldList
	switch typ := d.spec.Type.(type) {
	case *ast.InterfaceType:
		fields = typ.Methods
	case *ast.StructType:
		fields = typ.Fields
	default:
		return
	}
	for _, field := range fields.List {
		if fn, ok := field.Type.(*ast.FuncType); ok && d.isInterface() && len(field.Names) == 1 {
			d.addMethod(d.file, field.Names[0], fn, field.Doc, aliases)
		} else if len(field.Names) == 0 {
			d.embeds = append(d.embeds, newNamer(d.file, aliases).name(baseType(field.Type)))
		}
	}
}

func (d *declaredType) addMethod(f parsedFile, name *ast.Ident, typ *ast.FuncType, doc *ast.CommentGroup,
	aliases map[string]string) {
	key := name.Name
	if !name.IsExported() {
		key = f.scope() + "." + key // no other package can implement it
	}
	d.methods[key] = declaredMethod{newNamer(f, aliases).signature(typ), doc.Text(),
		f.position(name.Pos()) + " " + name.Name}
}

// methodSet returns the methods of a type, including those of embedded types.
func (x typeIndex) methodSet(name string, above map[string]bool) map[string]declaredMethod {
	d := x.types[name]
	if d == nil || above[name] {
		return standardMethods[name]
	}
	above[name] = true
	set := map[string]declaredMethod{}
	for _, embedded := range d.embeds {
		maps.Copy(set, x.methodSet(embedded, above))
	}
	maps.Copy(set, d.methods)
	delete(above, name)
	return set
}

// standardMethods has the methods of the interfaces of the standard library that ours embed.
var standardMethods = map[string]map[string]declaredMethod{
	"error":          {"Error": {signature: "() string"}},
	"fmt.Stringer":   {"String": {signature: "() string"}},
	"io.Closer":      {"Close": {signature: "() error"}},
	"io.Reader":      {"Read": {signature: "([]byte) int, error"}},
	"io.Writer":      {"Write": {signature: "([]byte) int, error"}},
	"io.ReadCloser":  {"Read": {signature: "([]byte) int, error"}, "Close": {signature: "() error"}},
	"io.WriteCloser": {"Write": {signature: "([]byte) int, error"}, "Close": {signature: "() error"}},
}

func implements(set, port map[string]declaredMethod) bool {
	for name, method := range port {
		if own, ok := set[name]; !ok || own.signature != method.signature {
			return false
		}
	}
	return true
}

// namer writes types with the full names of their packages.
type namer struct {
	scope   string
	imports map[string]string
	aliases map[string]string
}

func newNamer(f parsedFile, aliases map[string]string) namer {
	n := namer{scope: f.scope(), imports: map[string]string{}, aliases: aliases}
	for _, spec := range f.Imports {
		full, _ := strconv.Unquote(spec.Path.Value)
		short := path.Base(full)
		if spec.Name != nil {
			short = spec.Name.Name
		}
		n.imports[short] = strings.TrimPrefix(full, "ductor/")
	}
	return n
}

// universe holds the types that belong to no package.
var universe = regexp.MustCompile(
	`^(any|bool|byte|comparable|error|rune|string|uintptr|u?int(8|16|32|64)?|float(32|64)|complex(64|128))$`)

func (n namer) name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		if universe.MatchString(e.Name) {
			return e.Name
		}
		return n.resolve(n.scope + "." + e.Name)
	case *ast.SelectorExpr:
		pkg, _ := e.X.(*ast.Ident)
		if pkg == nil {
			return "?"
		}
		return n.resolve(n.imports[pkg.Name] + "." + e.Sel.Name)
	case *ast.StarExpr:
		return "*" + n.name(e.X)
	case *ast.ArrayType:
		if e.Len == nil {
			return "[]" + n.name(e.Elt)
		}
		return "[n]" + n.name(e.Elt)
	case *ast.Ellipsis:
		return "..." + n.name(e.Elt)
	case *ast.MapType:
		return "map[" + n.name(e.Key) + "]" + n.name(e.Value)
	case *ast.ChanType:
		return "chan " + n.name(e.Value)
	case *ast.FuncType:
		return "func" + n.signature(e)
	case *ast.IndexExpr:
		return n.name(e.X) + "[" + n.name(e.Index) + "]"
	case *ast.ParenExpr:
		return n.name(e.X)
	}
	return "?"
}

func (n namer) resolve(full string) string {
	for range 5 { // an alias may name an alias
		target, ok := n.aliases[full]
		if !ok {
			break
		}
		full = target
	}
	return full
}

func (n namer) signature(typ *ast.FuncType) string {
	list := func(fields *ast.FieldList) string {
		var all []string
		if fields != nil {
			for _, field := range fields.List {
				all = append(all, slices.Repeat([]string{n.name(field.Type)}, max(1, len(field.Names)))...)
			}
		}
		return strings.Join(all, ", ")
	}
	return strings.TrimSpace("(" + list(typ.Params) + ") " + list(typ.Results))
}

// baseType removes pointers and type arguments from an embedded type.
func baseType(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.StarExpr:
		return baseType(e.X)
	case *ast.IndexExpr:
		return baseType(e.X)
	case *ast.IndexListExpr:
		return baseType(e.X)
	}
	return e
}

var (
	refers = regexp.MustCompile(`\bimplements \S+\.$`)
	word   = regexp.MustCompile(`\w{4,}`)
)

// repeats reports whether the comment of a method repeats the contract at the interface: both share half of the words of
// the shorter one. The first word does not count, it is the method's name. "Run implements Gateway." repeats nothing.
func repeats(contract, implementation string) bool {
	contract, implementation = strings.TrimSpace(contract), strings.TrimSpace(implementation)
	if refers.MatchString(implementation) {
		return false
	}
	words := func(text string) map[string]bool {
		_, text, _ = strings.Cut(text, " ")
		set := map[string]bool{}
		for _, w := range word.FindAllString(strings.ToLower(text), -1) {
			set[w] = true
		}
		return set
	}
	a, b := words(contract), words(implementation)
	shared := 0
	for w := range a {
		if b[w] {
			shared++
		}
	}
	return shared > 0 && 2*shared >= min(len(a), len(b))
}

func TestCountInterfaces(t *testing.T) {
	const port = "package a\n\nimport \"ductor/b\"\n\n// Port is small.\ntype Port interface {\n\tinner\n" +
		"\t// Run runs one turn and returns its result.\n\tRun(x, y b.In) (Out, error)\n}\n\n" +
		"type inner interface {\n\tStop(func(...string) map[string]*b.In)\n}\n\ntype Out = b.Out\n"
	const methods = "func (*T) Run(b.In, b.In) (b.Out, error)\n\nfunc (t *T) Stop(f func(...string) map[string]*b.In)\n"
	for _, c := range []struct {
		path, code          string
		alone, repeatedInCB int
	}{
		{"c/b/x.go", methods, 2, 0},
		{"c/b/x.go", "// Run runs a turn. It returns the result.\n" + methods, 2, 1},
		{"c/b/x.go", "// Run implements a.Port.\n" + methods, 2, 0},
		{"c/b/x.go", methods + "type U struct {\n\t*T\n}\n", 0, 0},                           // two implementations
		{"c/b/x_test.go", methods, 0, 0},                                                     // a fake
		{"c/b/x.go", strings.Replace(methods, "b.In, b.In", "b.In, b.In, b.In", 1), 1, 0},    // inner alone
		{"c/b/x.go", strings.Replace(methods, "(b.Out, error)", "(*b.Out, error)", 1), 1, 0}, // inner alone
		{"c/b/x.go", strings.ReplaceAll(methods, "Run", "run"), 1, 0},                        // inner alone
	} {
		b := parse(t, "b/b.go", "package b\n\ntype In int\n\ntype Out struct{}\n")
		implementation := parse(t, c.path, "package b\n\nimport \"ductor/b\"\n\ntype T struct{}\n\n"+c.code)
		m := newMeasurement()
		m.countInterfaces([]parsedFile{implementation, parse(t, "a/a.go", port), b})
		if n := m.numbers[counted{loneInterfaces, "a"}]; n != c.alone {
			t.Errorf("%d interfaces are alone, want %d:\n%s", n, c.alone, c.code)
		}
		if n := m.numbers[counted{repeatedContracts, "c/b"}]; n != c.repeatedInCB {
			t.Errorf("%d contracts are repeated, want %d:\n%s", n, c.repeatedInCB, c.code)
		}
	}
}

func TestRepeats(t *testing.T) {
	const contract = "Close ends the session. It waits until its process is gone."
	for implementation, want := range map[string]bool{
		"": false, "Close implements Session.": false, "Close implements cli.Session.": false,
		"Close ends the session and waits for its process.": true,
		"Close sends SIGTERM first.":                        false,
		"Close closes pipes.":                               false,
	} {
		if got := repeats(contract, implementation); got != want {
			t.Errorf("%q repeats the contract: %t, want %t", implementation, got, want)
		}
	}
}
