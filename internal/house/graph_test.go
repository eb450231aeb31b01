package house

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rooms says which rooms of ours each room may import. A room not named here fails the test: decide its place.
var rooms = map[string][]string{
	"cmd/ductor":            {"*"},
	"bot":                   {"orchestrator", "bot/render", "cli"},
	"bot/render":            {},
	"orchestrator":          {"cli"},
	"cli":                   {"internal/supervisor"},
	"cli/claude":            {"cli"},
	"cli/codex":             {"cli"},
	"cli/clitest":           {"cli"},
	"internal/config":       {},
	"internal/store":        {"orchestrator", "cli"},
	"internal/house":        {},
	"internal/realagent":    {"internal/sim/modelapi"},
	"internal/sim/script":   {},
	"internal/sim/agent":    {"internal/sim/script"},
	"internal/sim/modelapi": {"internal/sim/script"},
	"internal/sim/telegram": {},
	"scripts/loopback":      {},
}

// homes says in which rooms an outside module may be imported outside of tests. "" is everywhere.
var homes = map[string][]string{
	"github.com/go-telegram/bot":   {"bot"},
	"github.com/mattn/go-sqlite3":  {"internal/store"},
	"github.com/pelletier/go-toml": {"internal/config"},
	"github.com/yuin/goldmark":     {"bot/render"},
	"github.com/spf13/cobra":       {"cmd/ductor"},
	"golang.org/x/time":            {"bot"},
	"golang.org/x/sync":            {""},
	"golang.org/x/sys":             {"cli", "cmd/ductor", "scripts/loopback", "internal/sim/agent"},
	"github.com/google/uuid":       {""},
	"pgregory.net/rapid":           {"cli/clitest"},
	"go.uber.org/goleak":           {"cli/clitest"},
	"github.com/google/go-cmp":     {"cli/clitest"},
}

type listed struct {
	ImportPath string
	Imports    []string
}

func TestImportGraph(t *testing.T) {
	for _, p := range list(t) {
		room := strings.TrimPrefix(p.ImportPath, "ductor/")
		allowed, known := rooms[room]
		if !known {
			t.Errorf("%s is a new room: say in this test what it may import", room)
			continue
		}
		for _, path := range p.Imports {
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

func list(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "ductor/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []listed
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("read go list: %v", err)
		}
		packages = append(packages, p)
	}
}
