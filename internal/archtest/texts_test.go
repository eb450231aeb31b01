package archtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// chatPackages are the packages that say something in a chat.
var chatPackages = []string{
	"./bot/...", "./cli", "./cli/service", "./heartbeat/...", "./internal/app", "./orchestrator/...",
}

// untranslated are packages whose texts are not all in the catalogue, such as the limits of permission modes, the names
// of rules, and sentences for schedules. The list only gets shorter.
var untranslated = []string{"cli", "cli/service", "heartbeat/schedule", "orchestrator/approval"}

// silent are packages below those whose literals no chat shows: they are for logs, programs and agents.
var silent = []string{"bot/bottest", "bot/outbox", "bot/render", "bot/tgapi", "heartbeat/webhook", "internal/app",
	"orchestrator/consult", "orchestrator/handoff", "orchestrator/sessions"}

// notForUsers are literals that read like texts, or files of them, and that no user sees: agents do, or programs.
var notForUsers = []string{
	// agents
	"bot/updates/fence.go", "orchestrator/fence/fence.go",
	"heartbeat/proactive.go", "orchestrator/files/instruction.go",
	"orchestrator/side/shorten.go", "[Attached file %q (%s): %s]", "[You asked to use ", ". That was denied:]",
	"rename from ", "rename to ", "new mode ", // output of git
	"2 Jan 15:04",
}

// explained are files whose errors the form of a job shows: each contains a *lang.Error instead of an English text.
var explained = []string{"heartbeat/job.go", "heartbeat/schedule/", "orchestrator/approval/pattern.go"}

// catalogueText is a text of the catalogue.
type catalogueText struct {
	forms  []string       // one form, or the plural forms
	places map[int]string // the verb of each place, by number
	plural bool
	used   bool
}

// TestTheCatalogueFitsItsCallers compares the texts of package lang with the code that asks for them.
func TestTheCatalogueFitsItsCallers(t *testing.T) {
	texts := catalogue(t)
	for _, p := range typedPackages(t) {
		c := &textChecker{T: t, pkg: p, texts: texts}
		for _, file := range p.files {
			c.check(file)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		if !texts[key].used {
			t.Errorf("no code asks for the text %s", key)
		}
	}
}

// catalogue reads the English texts.
func catalogue(t *testing.T) map[string]*catalogueText {
	t.Helper()
	texts := map[string]*catalogueText{}
	screens, err := readFiles(func(s sourceFile) bool { return s.pkg == "lang/en" })
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range screens {
		var screen map[string]any
		if err := toml.Unmarshal([]byte(s.text), &screen); err != nil {
			t.Fatalf("%s: %v", s.path, err)
		}
		for name, value := range screen {
			text := &catalogueText{forms: []string{fmt.Sprint(value)}}
			if forms, ok := value.(map[string]any); ok {
				text.forms, text.plural = nil, true
				for _, form := range forms {
					text.forms = append(text.forms, fmt.Sprint(form))
				}
				if forms["other"] == nil {
					t.Errorf("%s: %s has no form for other numbers", s.path, name)
				}
			}
			if err := text.readPlaces(); err != nil {
				t.Errorf("%s: %s: %v", s.path, name, err)
			}
			texts[strings.TrimSuffix(path.Base(s.path), ".toml")+"."+name] = text
		}
	}
	return texts
}

var place = regexp.MustCompile(`%(?:\[(\d+)\])?([.\d]*)(.)`)

// readPlaces collects the places of all forms.
func (c *catalogueText) readPlaces() error {
	c.places = map[int]string{}
	for _, form := range c.forms {
		found := place.FindAllStringSubmatch(strings.ReplaceAll(form, "%%", ""), -1)
		for _, m := range found {
			number := 1
			if m[1] != "" {
				number, _ = strconv.Atoi(m[1])
			} else if len(found) > 1 {
				return errors.New(
					"several places need numbers, as in %[1]s, so that translators can change their order")
			}
			if before := c.places[number]; before != "" && before != m[3] {
				return fmt.Errorf("place %d has two verbs", number)
			}
			c.places[number] = m[3]
		}
	}
	return nil
}

// typedPackage is a package of this module with its types, tests excepted.
type typedPackage struct {
	path  string // below the module
	files []*ast.File
	fset  *token.FileSet
	info  *types.Info
}

// listed is the output of go list for a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// typedPackages loads the chat packages. It takes the types of what they import from the build cache.
func typedPackages(t *testing.T) []*typedPackage {
	t.Helper()
	byPath := map[string]parsedFile{}
	for _, f := range parsedTree(t) {
		byPath[f.path] = f
	}
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"},
		chatPackages...)...)
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	exports, ours := map[string]string{}, []listed{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if strings.HasPrefix(p.ImportPath, "ductor/") {
			ours = append(ours, p)
		}
	}
	var all []*typedPackage
	fset := parsedTree(t)[0].set
	from := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range ours {
		typed := &typedPackage{path: strings.TrimPrefix(p.ImportPath, "ductor/"), fset: fset,
			info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}}
		for _, name := range p.GoFiles {
			typed.files = append(typed.files, byPath[path.Join(typed.path, name)].File)
		}
		if _, err := (&types.Config{Importer: from}).Check(p.ImportPath, fset, typed.files, typed.info); err != nil {
			t.Fatal(err)
		}
		all = append(all, typed)
	}
	return all
}

// textChecker checks how a package uses the catalogue.
type textChecker struct {
	*testing.T
	pkg   *typedPackage
	texts map[string]*catalogueText
}

func (c *textChecker) errorf(n ast.Node, format string, args ...any) {
	c.T.Helper()
	at := c.pkg.fset.Position(n.Pos())
	c.T.Errorf("%s:%d: %s", path.Join(c.pkg.path, filepath.Base(at.Filename)), at.Line, fmt.Sprintf(format, args...))
}

// check checks a file: its keys, and that it has no text of its own.
func (c *textChecker) check(file *ast.File) {
	direct := map[ast.Expr]bool{} // the keys of calls, which checkCall has checked
	var parents []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			parents = parents[:len(parents)-1]
			return true
		}
		parents = append(parents, n)
		if call, ok := n.(*ast.CallExpr); ok {
			if i, ok := withKey[c.function(call)]; ok {
				c.checkCall(call, i)
				direct[call.Args[i]] = true
			}
		}
		c.checkReason(n)
		if e, ok := n.(ast.Expr); ok && !direct[e] && c.pkg.path != "lang" {
			c.checkKey(e)
		}
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			c.checkLiteral(lit, parents)
		}
		return true
	})
}

// function returns the name of the called function, or "" if it has none.
func (c *textChecker) function(call *ast.CallExpr) string {
	switch f := ast.Unparen(call.Fun).(type) {
	case *ast.SelectorExpr:
		if fn, ok := c.pkg.info.Uses[f.Sel].(*types.Func); ok {
			return fn.FullName()
		}
	case *ast.Ident:
		if c.pkg.info.Uses[f] == types.Universe.Lookup("panic") {
			return "panic"
		}
		if fn, ok := c.pkg.info.Uses[f].(*types.Func); ok {
			return fn.FullName()
		}
	}
	return ""
}

// withKey lists functions that get the key of a text and the text's arguments, with the position of the key.
var withKey = map[string]int{
	"(ductor/lang.Printer).Text": 0, "ductor/lang.NewMessage": 0, "ductor/cli.Failf": 2,
}

// checkCall compares the arguments of a call with the places of the text whose key is the argument at position i.
func (c *textChecker) checkCall(call *ast.CallExpr, i int) {
	value, args := c.pkg.info.Types[call.Args[i]].Value, call.Args[i+1:]
	if value == nil {
		if len(args) > 0 && !call.Ellipsis.IsValid() {
			c.errorf(call, "a text with arguments needs a constant key")
		}
		return
	}
	key := constant.StringVal(value)
	text := c.texts[key]
	if text == nil {
		c.errorf(call, "the catalogue has no text %s", key)
		return
	}
	text.used = true
	if len(args) != len(text.places) {
		c.errorf(call, "the text %s has %d places, and the call has %d arguments", key, len(text.places), len(args))
		return
	}
	for i, arg := range args {
		verb, typ := text.places[i+1], c.pkg.info.Types[arg].Type
		if !fits(verb, typ) || i == 0 && text.plural && !fits("d", typ) {
			c.errorf(arg, "argument %d of the text %s is a %s, which does not fit %%%s", i+1, key, typ, verb)
		}
	}
}

// fits reports whether a verb can format a value of a type.
func fits(verb string, t types.Type) bool {
	basic, _ := t.Underlying().(*types.Basic)
	info := types.BasicInfo(0)
	if name := t.String(); verb == "s" && (name == "time.Duration" || name == "ductor/lang.Message") {
		return true // a message formats them for its language
	}
	if basic != nil {
		info = basic.Info()
	}
	switch verb {
	case "d":
		return info&types.IsInteger != 0
	case "f":
		return info&types.IsFloat != 0
	case "s", "q":
		return info&types.IsString != 0
	}
	return false
}

// checkKey checks a key that is not an argument, such as a key in a table. Its text must have no placeholders.
func (c *textChecker) checkKey(e ast.Expr) {
	tv := c.pkg.info.Types[e]
	if tv.Type == nil || tv.Type.String() != "ductor/lang.Key" || tv.IsType() {
		return
	}
	if tv.Value == nil {
		if call, ok := e.(*ast.CallExpr); ok && c.pkg.info.Types[call.Fun].IsType() {
			c.errorf(e, "a key is made at run time, so that this test cannot check it")
		}
		return
	}
	key := constant.StringVal(tv.Value)
	switch text := c.texts[key]; {
	case key == "":
	case text == nil:
		c.errorf(e, "the catalogue has no text %s", key)
	default:
		text.used = true
		if len(text.places) > 0 {
			c.errorf(e, "the text %s has places, so its key belongs into the call of Text", key)
		}
	}
}

// reasons are the fields with the words of agents and other programs. ductor's own words belong into the catalogue.
var reasons = []string{"cli.Failure.Reason", "cli.Status.Detail", "cli.Denial.Reason", "cli.ToolEnded.Err"}

// checkReason fails if n sets a field in reasons to an English text of ductor.
func (c *textChecker) checkReason(n ast.Node) {
	switch n := n.(type) {
	case *ast.CompositeLit:
		for _, e := range n.Elts {
			if pair, ok := e.(*ast.KeyValueExpr); ok {
				if name, ok := pair.Key.(*ast.Ident); ok {
					c.checkWords(c.pkg.info.Types[n].Type, name.Name, pair.Value)
				}
			}
		}
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			if field, ok := to.(*ast.SelectorExpr); ok && len(n.Lhs) == len(n.Rhs) {
				c.checkWords(c.pkg.info.Types[field.X].Type, field.Sel.Name, n.Rhs[i])
			}
		}
	}
}

var (
	reads = regexp.MustCompile(`[A-Za-z][,;:.!?…]? [A-Za-z]|^[^A-Za-z]*[A-Z][a-z]+[^A-Za-z]*$`)
	// unseen are functions whose arguments users do not see: they go to the log, or are matched with.
	unseen = regexp.MustCompile(
		`^(panic|fmt\.Errorf|errors\.New|regexp\.\w+|\(\*log/slog\.Logger\)\.\w+|log/slog\.\w+|strings\.(HasPrefix|HasSuffix|Contains|NewReplacer))$`)
)

// checkLiteral fails for a text outside of the catalogue.
func (c *textChecker) checkLiteral(lit *ast.BasicLit, parents []ast.Node) {
	s, err := strconv.Unquote(lit.Value)
	file := path.Join(c.pkg.path, filepath.Base(c.pkg.fset.Position(lit.Pos()).Filename))
	if err == nil && reads.MatchString(s) && c.isExplainedError(file, parents) {
		c.errorf(lit, "the form of a job shows the error %s: return a *lang.Error", lit.Value)
	}
	if err != nil || !reads.MatchString(s) || slices.Contains(untranslated, c.pkg.path) ||
		slices.Contains(silent, c.pkg.path) || !c.isChatPackage() {
		return
	}
	for _, p := range parents {
		switch n := p.(type) {
		case *ast.ImportSpec, *ast.Field:
			return
		case *ast.FuncDecl:
			if isConfigCheck(n) {
				return
			}
		case *ast.CallExpr:
			if unseen.MatchString(c.function(n)) {
				return
			}
		}
	}
	if !slices.ContainsFunc(notForUsers, func(known string) bool {
		return file == known || strings.HasPrefix(s, known)
	}) {
		c.errorf(lit, "%s reads like a text for users: say it with the catalogue of package lang", lit.Value)
	}
}

// checkWords fails if value contains an English text, and reasons contains the field.
func (c *textChecker) checkWords(of types.Type, field string, value ast.Expr) {
	if of == nil {
		return
	}
	name := strings.TrimPrefix(strings.TrimLeft(of.String(), "*"), "ductor/")
	if !slices.Contains(reasons, name+"."+field) {
		return
	}
	ast.Inspect(value, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		if v := c.pkg.info.Types[e].Value; v != nil && v.Kind() == constant.String &&
			reads.MatchString(constant.StringVal(v)) && !translated(e) {
			c.errorf(e, "users read %s in their language: use cli.Failf, lang.NewMessage or Emitter.Warn", v)
			return false
		}
		return true
	})
}

// translated reports whether cli.ToolErrorText or cli.Denial.Why translates the constant e. It also returns true for
// advice on how to log in, which Failure.Sentence replaces in other languages.
func translated(e ast.Expr) bool {
	name := ""
	switch e := e.(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		name = e.Sel.Name
	}
	return strings.HasPrefix(name, "Tool") || strings.HasPrefix(name, "Denied") || name == "loginFix"
}

// isExplainedError reports whether a literal with these parents is the text of an error in one of the explained files.
func (c *textChecker) isExplainedError(file string, parents []ast.Node) bool {
	return slices.ContainsFunc(explained, func(prefix string) bool { return strings.HasPrefix(file, prefix) }) &&
		slices.ContainsFunc(parents, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			return ok && slices.Contains([]string{"fmt.Errorf", "errors.New"}, c.function(call))
		})
}

// isConfigCheck reports whether a method reports mistakes of the configuration, which is in English.
func isConfigCheck(f *ast.FuncDecl) bool {
	params := f.Type.Params.List
	return f.Recv != nil && f.Name.Name == "Check" && len(params) == 1 && params[0].Names[0].Name == "problem"
}

// isChatPackage reports whether chatPackages contains the package itself.
func (c *textChecker) isChatPackage() bool {
	return slices.ContainsFunc(chatPackages, func(pattern string) bool {
		below, all := strings.CutSuffix(strings.TrimPrefix(pattern, "./"), "/...")
		return c.pkg.path == below || all && strings.HasPrefix(c.pkg.path, below+"/")
	})
}

func TestReadPlaces(t *testing.T) {
	for _, c := range []struct {
		forms []string
		want  string // the places, or the error
	}{
		{[]string{"100%% of it"}, "map[]"},
		{[]string{"%d MB"}, "map[1:d]"},
		{[]string{"%[2]s of %[1]d, %.1f"}, "several places need numbers, as in %[1]s, so that translators can change " +
			"their order"},
		{[]string{"one of %[2]q", "%[1]d of %[2]q"}, "map[1:d 2:q]"},
		{[]string{"%[1]s", "%[1]d"}, "place 1 has two verbs"},
	} {
		text := catalogueText{forms: c.forms}
		got := ""
		if err := text.readPlaces(); err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprint(text.places)
		}
		if got != c.want {
			t.Errorf("%q: %s, want %s", c.forms, got, c.want)
		}
	}
}

func TestReads(t *testing.T) {
	for s, want := range map[string]bool{
		"Nothing is running": true, "✅ Send": true, " by ": false, "Close": true, "in the chat": true,
		"queue": false, "map[1:d]": false, "own/": false, "⏳ ": false, "15:04": false,
	} {
		if got := reads.MatchString(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}
