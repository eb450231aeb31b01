package house

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rooms says which rooms of ours each room may import. A room not named here fails the test: decide its place.
var rooms = map[string][]string{
	"cmd/ductor":            {"*"},
	"cmd/ductor-supervisor": {"internal/supervisor", "docker/homes", "cli/gemini/guard"},
	"docker":                {"cli", "internal/supervisor", "docker/homes"},
	"docker/dockertest":     {},
	"docker/homes":          {},
	"bot":                   {"orchestrator", "bot/render", "cli", "internal/secrets"},
	"bot/render":            {},
	"orchestrator":          {"cli", "internal/secrets"},
	"cli":                   {"internal/supervisor"},
	"cli/acp":               {"cli"},
	"cli/claude":            {"cli"},
	"cli/codex":             {"cli"},
	"cli/clitest":           {"cli", "internal/supervisor", "internal/sim/agent"},
	// A dialect of the Agent Client Protocol lies above the room of that protocol.
	"cli/gemini":            {"cli", "cli/acp", "cli/gemini/guard"},
	"cli/gemini/guard":      {},
	"cli/copilot":           {"cli", "cli/acp"},
	"internal/config":       {},
	"heartbeat":             {"orchestrator", "cli"},
	"internal/store":        {"orchestrator", "heartbeat", "cli"},
	"internal/house":        {},
	"internal/realagent":    {"internal/sim/modelapi"},
	"internal/secrets":      {},
	"internal/sim/script":   {},
	"internal/sim/agent":    {"internal/sim/script"},
	"internal/sim/modelapi": {"internal/sim/script"},
	"internal/sim/telegram": {},
	"internal/supervisor":   {},
	"scripts/loopback":      {},
	"scripts/testlog":       {},
}

// homes says in which rooms an outside module may be imported outside of tests. "" is everywhere.
var homes = map[string][]string{
	"github.com/go-telegram/bot":      {"bot"},
	"github.com/mattn/go-sqlite3":     {"internal/store"},
	"github.com/pelletier/go-toml":    {"internal/config", "cli/codex"},
	"github.com/yuin/goldmark":        {"bot/render"},
	"github.com/robfig/cron":          {"heartbeat"},
	"github.com/spf13/cobra":          {"cmd/ductor"},
	"golang.org/x/time":               {"bot", "heartbeat"},
	"golang.org/x/term":               {"cmd/ductor"},
	"golang.org/x/sys":                {"cli", "docker", "internal/supervisor", "scripts/loopback", "cmd/ductor"},
	"github.com/sourcegraph/jsonrpc2": {"cli/copilot"},
	"github.com/docker/docker":        {"docker"},
	"github.com/containerd/errdefs":   {"docker"}, // the kinds of errors of the Docker client
	"github.com/google/uuid":          {""},
	"pgregory.net/rapid":              {"cli/clitest"},
	"go.uber.org/goleak":              {"cli/clitest"},
	"github.com/google/go-cmp":        {"cli/clitest"},
}

type listed struct {
	room    string // its path below the module
	imports []string
}

func TestImportGraph(t *testing.T) {
	for _, p := range list(t) {
		room := p.room
		allowed, known := rooms[room]
		if !known {
			t.Errorf("%s is a new room: say in this test what it may import", room)
			continue
		}
		for _, path := range p.imports {
			if ours, ok := strings.CutPrefix(path, "ductor/"); ok {
				if !slices.Contains(allowed, ours) && !slices.Contains(allowed, "*") {
					t.Errorf("%s imports %s, which is not below it", room, ours)
				}
				continue
			}
			if strings.Contains(strings.Split(path, "/")[0], ".") {
				checkHome(t, room, path)
			}
		}
	}
}

func checkHome(t *testing.T, room, path string) {
	t.Helper()
	for module, in := range homes {
		if path == module || strings.HasPrefix(path, module+"/") {
			if !slices.Contains(in, room) && !slices.Contains(in, "") {
				t.Errorf("%s imports %s, which lives in %v", room, path, in)
			}
			return
		}
	}
	t.Errorf("%s imports %s, an outside module without a home: say in this test where it lives", room, path)
}

// list reads the imports of every package outside of its tests. It reads the files itself, so that the
// test runs again when one of them changed.
func list(t *testing.T) []*listed {
	t.Helper()
	found := map[string]*listed{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == "tools"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		room, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		p := found[room]
		if p == nil {
			p = &listed{room: filepath.ToSlash(room)}
			found[room] = p
		}
		for _, imp := range file.Imports {
			p.imports = append(p.imports, strings.Trim(imp.Path.Value, `"`))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("only %d packages found: is this the root of the module?", len(found))
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *listed) int { return strings.Compare(a.room, b.room) })
}

// root is the module's, seen from this package.
const root = "../.."
