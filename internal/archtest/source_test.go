package archtest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the directory of the module, seen from this package.
const root = "../.."

// sourceFile is a text file of the project.
type sourceFile struct {
	path string // below the module
	pkg  string // the directory of path
	text string
}

var supportPath = regexp.MustCompile(`^(internal/(sim|realagent|testprogram)|scripts|tools)/|test/|cmd/ductor/(bench|demo)|cmd/ductor-bench|internal/store/sqlite/compiler/`)

// isProduction reports whether s is Go code of the program: no test, simulator, test support, demo or bench.
func (s sourceFile) isProduction() bool {
	return strings.HasSuffix(s.path, ".go") && !strings.HasSuffix(s.path, "_test.go") && !supportPath.MatchString(s.path)
}

// goFiles reads every Go file of the module.
func goFiles(t *testing.T) []sourceFile {
	t.Helper()
	files := readFiles(t, func(s sourceFile) bool { return strings.HasSuffix(s.path, ".go") })
	if len(files) < 100 {
		t.Fatalf("only %d Go files were found: is this the root of the module?", len(files))
	}
	return files
}

// readFiles reads the files that wanted accepts by their path. It reads them through the os package, so that go test
// runs a cached test again when one of them changed.
func readFiles(t *testing.T, wanted func(s sourceFile) bool) []sourceFile {
	t.Helper()
	var files []sourceFile
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		below, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		s := sourceFile{path: filepath.ToSlash(below)}
		s.pkg = path.Dir(s.path)
		if !d.Type().IsRegular() || !wanted(s) {
			return nil
		}
		text, err := os.ReadFile(name)
		s.text = string(text)
		files = append(files, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
