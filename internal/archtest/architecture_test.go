package archtest

import (
	"fmt"
	"go/doc"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	architecturePage = "docs/architecture.md"
	maxPageLines     = 60 // without the generated table
	maxGlossary      = 15

	tableBegin = "<!-- packages: `go test ./internal/archtest -update` writes this table from the package " +
		"comments -->\n"
	tableEnd = "<!-- end of packages -->\n"
)

// packageTable matches the generated table, with the markers of a merge in it too.
var packageTable = regexp.MustCompile(`(?s)` + regexp.QuoteMeta(tableBegin) + `.*?` + regexp.QuoteMeta(tableEnd))

// TestArchitectureListsEveryPackage compares the table in docs/architecture.md with the package comments.
func TestArchitectureListsEveryPackage(t *testing.T) {
	page := readDoc(t, architecturePage)
	if n := len(packageTable.FindAllString(page, -1)); n != 1 {
		t.Fatalf("%s has %d tables of packages, want one between\n%sand\n%s", architecturePage, n, tableBegin, tableEnd)
	}
	table, err := formatPackages(summaries(t))
	if err != nil {
		t.Fatal(err)
	}
	want := packageTable.ReplaceAllLiteralString(page, tableBegin+table+tableEnd)
	if page == want {
		return
	}
	if *update {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(architecturePage)), []byte(want),
			0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("the table of packages in %s is stale. Run\n\n\tgo test ./internal/archtest -update\n\n"+
		"and commit the page. A row is the first sentence of the package's comment (doc.go). In a merge "+
		"conflict inside "+
		"of the table run the same command: it replaces both sides.", architecturePage)
}

// summaries returns the first sentence of each package's comment, without "Package name".
func summaries(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, f := range parsedTree(t) {
		if f.isShipped() {
			found[f.pkg] += summaryOf(f.Doc.Text())
		}
	}
	return found
}

var packageSubject = regexp.MustCompile(`^(?:Package|Command) \S+ (?:is )?`)

func summaryOf(comment string) string {
	sentence := strings.TrimSuffix(new(doc.Package).Synopsis(comment), ".")
	return packageSubject.ReplaceAllString(sentence, "")
}

// formatPackages writes a row for each production package, and one row for all others.
func formatPackages(summaries map[string]string) (string, error) {
	var b strings.Builder
	b.WriteString("| package | what it is or does |\n|---|---|\n")
	var support []string
	for _, pkg := range slices.Sorted(maps.Keys(summaries)) {
		if summaries[pkg] == "" {
			return "", fmt.Errorf("%s needs a package comment (doc.go) that says in its first sentence what it is", pkg)
		}
		if !newSource(pkg+"/x.go", "").isProduction() {
			support = append(support, "`"+pkg+"`")
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", pkg, strings.ReplaceAll(summaries[pkg], "|", `\|`))
	}
	if len(support) > 0 {
		fmt.Fprintf(&b, "| %s | simulators, test support, benchmarks and tools |\n", strings.Join(support, ", "))
	}
	return b.String(), nil
}

// TestArchitectureIsShort limits docs/architecture.md without its generated table, which grows with the packages.
func TestArchitectureIsShort(t *testing.T) {
	page := packageTable.ReplaceAllString(readDoc(t, architecturePage), "")
	if n := strings.Count(page, "\n"); n > maxPageLines {
		t.Errorf("%s has %d lines, and may have %d", architecturePage, n, maxPageLines)
	}
	_, words, found := strings.Cut(page, "## Words\n")
	words, _, _ = strings.Cut(words, "\n## ")
	if n := strings.Count(words, "**") / 2; !found || n == 0 || n > maxGlossary {
		t.Errorf("the section Words of %s has %d words in bold, and may have 1 to %d", architecturePage, n, maxGlossary)
	}
}

// docs/architecture.md may only name files and directories that exist.
func TestArchitectureNamesWhatExists(t *testing.T) {
	paths := pathsIn(readDoc(t, architecturePage))
	if len(paths) < 20 {
		t.Fatalf("only %d paths were found: %q", len(paths), paths)
	}
	for _, path := range paths {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(path))); err != nil {
			t.Errorf("%s names %s: %v", architecturePage, path, err)
		}
	}
}

func TestSummaryOf(t *testing.T) {
	for comment, want := range map[string]string{
		"Package bot is Telegram and nothing else: updates in. It is small.\n": "Telegram and nothing else: updates in",
		"Package rpc speaks JSON-RPC\n2.0 by lines.\n\nMore.\n":                "speaks JSON-RPC 2.0 by lines",
		"Command ductor talks to agents.\n":                                    "talks to agents",
		"":                                                                     "",
	} {
		if got := summaryOf(comment); got != want {
			t.Errorf("%q: %q, want %q", comment, got, want)
		}
	}
}

func TestFormatPackages(t *testing.T) {
	got, err := formatPackages(map[string]string{"bot": "a | b", "internal/sim/agent": "c", "scripts/x": "d"})
	want := "| package | what it is or does |\n|---|---|\n| `bot` | a \\| b |\n" +
		"| `internal/sim/agent`, `scripts/x` | simulators, test support, benchmarks and tools |\n"
	if err != nil || got != want {
		t.Errorf("%v\n%s, want\n%s", err, got, want)
	}
	if _, err := formatPackages(map[string]string{"bot": ""}); err == nil {
		t.Error("a package without a comment was accepted")
	}
}

func TestPathsInDocsAreFound(t *testing.T) {
	text := "`bot/card/card.go` and `cli`, **`cli/claude`**; `/new`, `~/src` and `go run ./cmd/x` are none, " +
		"`doc.go` is."
	if got, want := pathsIn(text), []string{"bot/card/card.go", "cli/claude", "doc.go"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// pathsIn lists the texts in backticks that contain a slash or end in .go.
func pathsIn(text string) []string {
	var paths []string
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		s := m[1]
		if strings.ContainsAny(s, " \n") || strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~") {
			continue
		}
		if strings.Contains(s, "/") || strings.HasSuffix(s, ".go") {
			paths = append(paths, s)
		}
	}
	return paths
}
