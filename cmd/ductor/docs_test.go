package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"ductor/internal/config"
)

var updateDocs = flag.Bool("update", false, "write docs/buttons.md")

// pages returns the texts of the README and the docs by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(paths) == 0 {
		t.Fatal("there are no docs", err)
	}
	all := map[string]string{}
	for _, path := range append(paths, "../../README.md") {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(path)] = string(raw)
	}
	return all
}

// catalogueKeys returns the keys with a prefix in a file of the catalogue.
func catalogueKeys(t *testing.T, file, prefix string) (keys []string) {
	t.Helper()
	raw, err := os.ReadFile("../../lang/en/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^`+prefix+`([a-z-]+) = `).FindAllStringSubmatch(string(raw), -1) {
		keys = append(keys, m[1])
	}
	return keys
}

// The docs name every command of the bot, and no other.
func TestTheDocsNameTheCommandsOfTheBot(t *testing.T) {
	menu := catalogueKeys(t, "bot.toml", "menu-")
	known := append([]string{"start", "stop", "group"}, menu...)
	// Paths of monitors and of a machine, commands of @BotFather and of agents, and a placeholder.
	notCommands := []string{"healthz", "metrics", "tmp", "var", "proc", "newbot", "setprivacy", "login", "name"}
	named := map[string]bool{}
	for page, text := range pages(t) {
		for _, m := range regexp.MustCompile("`/([a-z]+)[` ]").FindAllStringSubmatch(text, -1) {
			named[m[1]] = true
			if !slices.Contains(known, m[1]) && !slices.Contains(notCommands, m[1]) {
				t.Errorf("%s names /%s, which is no command", page, m[1])
			}
		}
	}
	for _, name := range menu {
		if !named[name] {
			t.Errorf("the docs do not name /%s", name)
		}
	}
}

// The docs name every subcommand and flag of the program, and no other.
func TestTheDocsNameTheCommandsOfTheProgram(t *testing.T) {
	root := command(config.Environment{Getenv: os.Getenv}, nil)
	all := pages(t)
	text := strings.Join(slices.Collect(maps.Values(all)), "\n")
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "ductor ")
		words := strings.Fields(name)
		if !strings.Contains(text, "`"+words[len(words)-1]) && !strings.Contains(text, "ductor "+name) {
			t.Errorf("the docs do not name ductor %s", name)
		}
		for _, f := range regexp.MustCompile(`(?m)^ +(?:(-\w), )?(--[a-z-]+)`).FindAllStringSubmatch(
			c.LocalFlags().FlagUsages(), -1) {
			if !strings.Contains(text, f[2]) && (f[1] == "" || !strings.Contains(text, f[1]+" ")) {
				t.Errorf("the docs do not name %s of ductor %s", f[2], name)
			}
		}
		for _, sub := range c.Commands() {
			if !sub.Hidden {
				walk(sub)
			}
		}
	}
	for _, c := range root.Commands() {
		if !c.Hidden {
			walk(c)
		}
	}
	for page, text := range all {
		for _, m := range regexp.MustCompile(
			`(?m)^(?:\$ |sudo )?ductor ([a-z]+)((?: [^\n#|]*)?)`).FindAllStringSubmatch(codeOf(text), -1) {
			if m[1] == runnerArg {
				continue // users do not start it
			}
			c, _, err := root.Find(append([]string{m[1]}, strings.Fields(m[2])...))
			if err != nil || c == root {
				t.Errorf("%s names ductor %s, which is no command", page, m[1])
				continue
			}
			for _, f := range regexp.MustCompile(`--([a-z][a-z-]+)`).FindAllStringSubmatch(m[2], -1) {
				if c.Flags().Lookup(f[1]) == nil && c.InheritedFlags().Lookup(f[1]) == nil && f[1] != "help" {
					t.Errorf("%s names %s of %s, which has no such flag", page, f[0], c.CommandPath())
				}
			}
		}
	}
}

// codeOf returns the code of a page: each span, and each line of a block, on its own line.
func codeOf(page string) string {
	var code []string
	for i, part := range strings.Split(page, "```") {
		if i%2 == 1 {
			code = append(code, part)
			continue
		}
		for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(part, -1) {
			code = append(code, m[1])
		}
	}
	return strings.Join(code, "\n")
}

// Every setting in the docs is in the reference, which is generated from the types.
func TestTheDocsNameSettings(t *testing.T) {
	all := pages(t)
	known, tables := map[string]bool{}, map[string]bool{}
	table := ""
	for line := range strings.Lines(all["reference.md"]) {
		if m := regexp.MustCompile(`^## \[+([a-zA-Z_.]+)`).FindStringSubmatch(line); m != nil {
			table = m[1]
			tables[strings.Split(table, ".")[0]], known[table] = true, true
		} else if m := regexp.MustCompile("^\\| `([a-z_.]+)`").FindStringSubmatch(line); m != nil {
			known[table+"."+m[1]] = true
		}
	}
	if len(known) < 50 {
		t.Fatalf("the reference has %d keys", len(known))
	}
	delete(all, "paths.md") // it names functions
	for page, text := range all {
		for _, m := range regexp.MustCompile("`([a-z]+(?:\\.[a-z_]+)+)(?: = [^`]*)?`").FindAllStringSubmatch(text, -1) {
			parts := strings.Split(m[1], ".")
			last := parts[len(parts)-1]
			// For example jobs.NAME.prompt.
			ofNamed := slices.ContainsFunc(slices.Collect(maps.Keys(known)), func(k string) bool {
				return strings.HasPrefix(k, parts[0]+".") && strings.HasSuffix(k, "."+last)
			})
			if tables[parts[0]] && !known[m[1]] && !ofNamed {
				t.Errorf("%s names %s, which is no setting", page, m[1])
			}
		}
	}
}

// buttonKey matches the key of a button's label.
var buttonKey = regexp.MustCompile(`^[a-z]+\.[a-z-]+$`)

// buttonKeys returns the keys of button labels by package. It finds them in calls and literals that create buttons.
func buttonKeys(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir("../../bot", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		screen := filepath.Base(filepath.Dir(path))
		ast.Inspect(file, func(n ast.Node) bool {
			var of ast.Expr
			var in []ast.Expr
			switch n := n.(type) {
			case *ast.CallExpr:
				of, in = n.Fun, n.Args[:min(2, len(n.Args))]
			case *ast.CompositeLit:
				of, in = n.Type, n.Elts
			}
			if of == nil || !makesButtons(of) {
				return true
			}
			for _, e := range in {
				ast.Inspect(e, func(n ast.Node) bool {
					if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
						if s, err := strconv.Unquote(lit.Value); err == nil && buttonKey.MatchString(s) &&
							!slices.Contains(found[screen], s) {
							found[screen] = append(found[screen], s)
						}
					}
					return true
				})
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for screen, keys := range chosenLabels() {
		found[screen] = append(found[screen], keys...)
	}
	return found
}

// chosenLabels returns labels that the code selects before it creates the button.
func chosenLabels() map[string][]string {
	return map[string][]string{
		"approval": {"approval.send", "approval.next"},
		"menu":     {"menu.tools-deny", "menu.tools-permit"},
		"sessions": {
			"sessions.archived-button", "sessions.others-button", "sessions.pin", "sessions.unpin", "sessions.archive",
			"sessions.unarchive",
			"sessions.resume", "sessions.fork", "sessions.rename", "sessions.export",
		},
		"transcript": {"transcript.send", "transcript.discard"},
	}
}

// makesButtons reports whether an expression names a function or type that creates buttons.
func makesButtons(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return strings.HasSuffix(strings.ToLower(e.Name), "button") || e.Name == "approvalWords"
	case *ast.SelectorExpr:
		return strings.HasSuffix(strings.ToLower(e.Sel.Name), "button")
	case *ast.ArrayType:
		return makesButtons(e.Elt)
	}
	return false
}

const buttonsHead = `# Buttons

Every button of the bot, by the screen that has it. %s stands for what the button is about, such as a title. This page is written by
` + "`go test ./cmd/ductor -run TestTheDocsNameEveryButton -update`" + `.

| screen | button |
|---|---|
`

// docs/buttons.md lists all buttons that the code creates, and no other.
func TestTheDocsNameEveryButton(t *testing.T) {
	found := buttonKeys(t)
	page := strings.Builder{}
	page.WriteString(buttonsHead)
	for _, screen := range slices.Sorted(maps.Keys(found)) {
		var labels []string
		for _, key := range found[screen] {
			labels = append(labels, labelOf(t, key))
		}
		slices.Sort(labels)
		for _, label := range slices.Compact(labels) {
			fmt.Fprintf(&page, "| `%s` | %s |\n", screen, strings.ReplaceAll(label, "|", "\\|"))
		}
	}
	if *updateDocs {
		if err := os.WriteFile("../../docs/buttons.md", []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range pages(t) {
		for _, m := range regexp.MustCompile(`\*\*([\x{2190}-\x{1FAFF}][^*]+)\*\*`).FindAllStringSubmatch(text, -1) {
			if !strings.Contains(page.String(), "| "+m[1]+" |") {
				t.Errorf("%s names the button %q, which does not exist", name, m[1])
			}
		}
	}
	if pages(t)["buttons.md"] != page.String() {
		t.Error("docs/buttons.md is not of this code; run go test ./cmd/ductor -run TestTheDocsNameEveryButton -update")
	}
}

// labelOf returns the English label of a button.
func labelOf(t *testing.T, key string) string {
	t.Helper()
	file, name, _ := strings.Cut(key, ".")
	raw, err := os.ReadFile("../../lang/en/" + file + ".toml")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` = (.*)$`).FindStringSubmatch(string(raw))
	if m == nil {
		t.Fatalf("the catalogue has no %s", key)
	}
	text := m[1]
	if i := strings.Index(text, `other = `); i >= 0 {
		text = strings.TrimSuffix(strings.TrimSpace(text[i+len(`other = `):]), "}")
	}
	label, err := strconv.Unquote(strings.TrimSpace(text))
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return label
}
