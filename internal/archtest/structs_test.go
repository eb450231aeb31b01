package archtest

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// A struct with state has at most this many fields, and with a mutex at most this many booleans. The fields of the
// structs of its package that it embeds count as its own.
const (
	maxFields = 12
	maxBools  = 2
)

var (
	// Options, configuration and wire types hold no state.
	statelessFile   = regexp.MustCompile(`(wire|row|codec)[^/]*\.go$|internal/config/`)
	statelessStruct = regexp.MustCompile(`(?i)(Options|Settings|Config|Params|Request|Row)$`)
)

// structShape is a struct as countStructs sees it.
type structShape struct {
	file     parsedFile
	name     string
	position token.Pos
	fields   int // without those of embedded structs
	bools    int
	embeds   []string
	mutex    bool
}

// countStructs counts the structs that are too wide, and those that exist only to be embedded once.
func (m *measurement) countStructs(files []parsedFile) {
	structs, methods, embedded := map[string]map[string]structShape{}, map[string]bool{}, map[string]int{}
	for _, f := range files {
		if structs[f.place()] == nil {
			structs[f.place()] = map[string]structShape{}
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				methods[f.place()+"."+baseName(fn.Recv.List[0].Type)] = true
			}
		}
		for _, s := range structsOf(f) {
			structs[f.place()][s.name] = s
			for _, name := range s.embeds {
				embedded[f.place()+"."+name]++
			}
		}
	}
	for place, inPackage := range structs {
		for name, s := range inPackage {
			m.countStruct(place, s, inPackage)
			if full := place + "." + name; embedded[full] == 1 && !methods[full] && !ast.IsExported(name) {
				m.count(singleUseStructs, place, 1, s.file.position(s.position)+" "+name)
			}
		}
	}
}

// countStruct counts s if it is too wide.
func (m *measurement) countStruct(place string, s structShape, inPackage map[string]structShape) {
	if statelessFile.MatchString(s.file.path) || statelessStruct.MatchString(s.name) {
		return
	}
	fields, bools := s.flatten(inPackage, map[string]bool{})
	if !s.mutex {
		bools = 0
	}
	if fields > maxFields || bools > maxBools {
		at := s.file.position(s.position) + " " + s.name
		m.count(wideStructs, place, 1, at)
		m.count(excessFields, place, max(0, fields-maxFields)+max(0, bools-maxBools), at)
	}
}

// flatten counts the fields of s with all that it embeds from its package.
func (s structShape) flatten(inPackage map[string]structShape, above map[string]bool) (fields, bools int) {
	fields, bools = s.fields, s.bools
	above[s.name] = true
	for _, name := range s.embeds {
		fields++
		if e, ok := inPackage[name]; ok && !above[name] {
			f, b := e.flatten(inPackage, above)
			fields, bools = fields+f-1, bools+b
		}
	}
	delete(above, s.name)
	return fields, bools
}

// structsOf returns the structs that a file declares at its top level.
func structsOf(f parsedFile) (all []structShape) {
	for _, spec := range typeSpecs(f) {
		typ, ok := spec.Type.(*ast.StructType)
		if !ok {
			continue
		}
		s := structShape{file: f, name: spec.Name.Name, position: spec.Pos()}
		for _, field := range typ.Fields.List {
			ident, _ := field.Type.(*ast.Ident)
			switch {
			case len(field.Names) == 0:
				s.embeds = append(s.embeds, baseName(field.Type))
			case ident != nil && ident.Name == "bool":
				s.bools += len(field.Names)
				fallthrough
			default:
				s.fields += len(field.Names)
			}
			s.mutex = s.mutex || strings.HasPrefix(baseName(field.Type), "sync.")
		}
		all = append(all, s)
	}
	return all
}

// typeSpecs returns the types that a file declares at its top level.
func typeSpecs(f parsedFile) (specs []*ast.TypeSpec) {
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
			for _, s := range g.Specs {
				specs = append(specs, s.(*ast.TypeSpec))
			}
		}
	}
	return specs
}

// baseName returns the name of a type without pointers and type arguments, and "" for types without a name.
func baseName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return baseName(e.X)
	case *ast.IndexExpr:
		return baseName(e.X)
	case *ast.IndexListExpr:
		return baseName(e.X)
	case *ast.SelectorExpr:
		return baseName(e.X) + "." + e.Sel.Name
	}
	return ""
}

func TestCountStructs(t *testing.T) {
	fields := func(n int, typ string) string {
		return strings.Repeat("\t_ "+typ+" // a bool\n", n)
	}
	for _, c := range []struct {
		path, code                    string
		structs, fields, singleUsable int
	}{
		{"bot/x.go", "type T struct {\n" + fields(12, "int") + "}\n", 0, 0, 0},
		{"bot/x.go", "type T struct {\n" + fields(12, "int") + "\t*U\n}\n", 1, 1, 0},
		{"bot/x.go", "type T struct {\n" + fields(12, "int") + "\tpkg.U `json:\"x\"`\n}\n", 1, 1, 0},
		{"bot/x.go", "type (\nT struct {\n" + fields(12, "int") + "\tu[int]\n}\nu[X any] struct {\n" + fields(3, "X") +
			"\n}\n)\n", 1, 3, 1},
		{"bot/x.go", "type T struct {\n\tu\n}\ntype u struct {}\nfunc (u *u) f() {}\n", 0, 0, 0},
		{"bot/x.go", "type T struct {\n\tu\n}\ntype U struct {\n\tu\n}\ntype u struct {}\n", 0, 0, 0},
		{"bot/x.go", "type T struct {\n\t*u\n}\ntype u struct {\n\t*T\n}\n", 0, 0, 1},
		{"bot/x.go", "type TOptions struct {\n" + fields(20, "int") + "}\n", 0, 0, 0},
		{"bot/wire.go", "type T struct {\n" + fields(20, "int") + "}\n", 0, 0, 0},
		{"bot/x.go", "type T struct {\n" + fields(3, "bool") + "}\n", 0, 0, 0},
		{"bot/x.go", "type T struct {\n\tmu sync.Mutex\n" + fields(3, "bool") + "}\n", 1, 1, 0},
		{"bot/x.go", "type T struct {\n\tmu sync.Mutex\n\tx, y, z bool\n" + fields(10, "int") + "}\n", 1, 3, 0},
		{"bot/x.go", "type T struct {\n\tmu sync.Mutex\n\tu\n}\ntype u struct {\n\tx, y, z bool\n}\n", 1, 1, 1},
		{"bot/x.go", "type T struct {\n\tx, y, z bool\n" + fields(10, "int") + "}\n", 1, 1, 0},
	} {
		m := newMeasurement()
		m.countStructs([]parsedFile{parse(t, c.path, "package bot\n\n"+c.code)})
		got := [3]int{m.numbers[counted{wideStructs, "bot"}], m.numbers[counted{excessFields, "bot"}],
			m.numbers[counted{singleUseStructs, "bot"}]}
		if want := [3]int{c.structs, c.fields, c.singleUsable}; got != want {
			t.Errorf("%v, want %v:\n%s", got, want, c.code)
		}
	}
}
