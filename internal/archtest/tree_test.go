package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"sync"
	"testing"
)

// parsedFile is a Go file with its syntax and comments.
type parsedFile struct {
	sourceFile
	*ast.File
	set *token.FileSet
}

// readTree parses the Go files of the module once for all tests, files below testdata excepted.
var readTree = sync.OnceValues(func() ([]parsedFile, error) {
	sources, err := readFiles(func(s sourceFile) bool {
		return strings.HasSuffix(s.path, ".go") && !strings.Contains(s.path, "testdata/")
	})
	if err != nil {
		return nil, err
	}
	if len(sources) < 100 {
		return nil, fmt.Errorf("only %d Go files were found: is this the root of the module?", len(sources))
	}
	return parseFiles(sources)
})

// parsedTree returns the parsed Go files of the module.
func parsedTree(t *testing.T) []parsedFile {
	t.Helper()
	files, err := readTree()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func parseFiles(sources []sourceFile) ([]parsedFile, error) {
	set := token.NewFileSet()
	var files []parsedFile
	for _, s := range sources {
		file, err := parser.ParseFile(set, s.path, s.text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, parsedFile{s, file, set})
	}
	return files, nil
}

// parse parses the text of one file for a test.
func parse(t *testing.T, path, text string) parsedFile {
	t.Helper()
	files, err := parseFiles([]sourceFile{newSource(path, text)})
	if err != nil {
		t.Fatal(err)
	}
	return files[0]
}

func (f parsedFile) line(pos token.Pos) int { return f.set.PositionFor(pos, false).Line }

// position names a place of the file for a message.
func (f parsedFile) position(pos token.Pos) string { return fmt.Sprintf("%s:%d", f.path, f.line(pos)) }

// isTest reports whether the file is compiled only for tests.
func (s sourceFile) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// isShipped reports whether the package of the file may be imported by others: it is no test and no tool.
func (s sourceFile) isShipped() bool {
	return !s.isTest() && !strings.HasPrefix(s.path, "tools/") && !strings.HasPrefix(s.path, "test/")
}
