package archtest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// root is the directory of the module, seen from this package.
const root = "../.."

// sourceFile is a text file of the project.
type sourceFile struct {
	path string // below the module
	pkg  string // the directory of path
	text string
}

var supportPath = regexp.MustCompile(
	`^(internal/(sim|realagent|testprogram)|scripts|tools)/|test/|cmd/ductor/(bench|demo)|cmd/ductor-bench|internal/store/sqlite/compiler/`)

// isProduction reports whether s is Go code of the program: no test, simulator, test support, demo or bench.
func (s sourceFile) isProduction() bool {
	return strings.HasSuffix(s.path, ".go") && !strings.HasSuffix(s.path, "_test.go") &&
		!supportPath.MatchString(s.path)
}

// newSource returns the file at a path below the module.
func newSource(below, text string) sourceFile {
	return sourceFile{path: below, pkg: path.Dir(below), text: text}
}

// readFiles reads the files that wanted accepts by their path. It reads them through the os package, so that go test
// runs a cached test again when one of them changed.
func readFiles(wanted func(s sourceFile) bool) ([]sourceFile, error) {
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
		s := newSource(filepath.ToSlash(below), "")
		if !d.Type().IsRegular() || !wanted(s) {
			return nil
		}
		text, err := os.ReadFile(name)
		s.text = string(text)
		files = append(files, s)
		return err
	})
	return files, err
}
