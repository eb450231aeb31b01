package archtest

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// imports lists the packages of this module that each package may import. A package without an entry fails the test.
var imports = map[string][]string{
	"cmd/ductor": {
		"internal/app", "internal/app/environment", "bot/tgapi", "orchestrator", "cli", "cli/host", "internal/config",
		"internal/doctor", "internal/store", "internal/runner", "internal/sim/agent", "internal/sim/telegram", "mcp/relay",
		"lang", "internal/attach/client", "internal/statesocket", "web", "web/dashboard", "web/demo", "cmd/ductor/sub",
		"internal/keys", "internal/secrets", "internal/nearest", "internal/terminal", "internal/terminal/hook",
	},
	"cmd/ductor/sub": {
		"mcp/relay", "bot/tgapi", "cli", "cli/acp", "internal/app", "internal/app/environment",
		"internal/backup", "internal/config", "internal/keys", "internal/nearest", "internal/secrets",
		"internal/service", "internal/setup", "internal/store", "internal/terminal",
		"orchestrator", "orchestrator/users",
	},
	"internal/doctor":            {"orchestrator", "bot", "bot/checks", "bot/tgapi", "cli", "docker", "internal/app", "internal/app/environment", "internal/config", "internal/proctree", "internal/store", "internal/store/sqlite"},
	"internal/attach/client":     {"internal/attach/screen", "internal/attach/wire", "internal/statesocket"},
	"internal/attach/screen":     {"bot/render", "cli", "internal/attach/wire"},
	"internal/terminal":          {"internal/rooted"},
	"internal/terminal/presence": {"internal/rooted"},
	"internal/terminal/server":   {"cli", "cli/claude", "internal/secrets", "internal/statesocket", "internal/terminal/hook", "lang"},
	"internal/terminal/hook":     {"internal/statesocket"},
	"internal/statesocket":       {"internal/rooted"},
	"internal/attach":            {"cli", "internal/attach/wire", "internal/statesocket", "orchestrator"},
	"internal/attach/wire":       {},
	"internal/growstack":         {},
	"internal/backup":            {"internal/rooted", "internal/store"},
	"internal/setup":             {"orchestrator", "bot/render", "bot/tgapi", "bot/users", "cli", "internal/config", "internal/paircode", "internal/secrets"},
	"internal/service":           {},
	"internal/keys":              {"internal/rooted", "internal/secrets"},
	"web":                        {},
	"web/dashboard":              {"web"},
	"web/demo":                   {"web", "internal/sim/agent", "internal/sim/telegram"},
	"web/browsertest":            {},
	"cmd/ductor-runner":          {"cli/claude/skills", "mcp/relay", "internal/runner", "internal/rooted", "docker/homes", "cli/gemini/guard", "cli/stored/files"},
	// The bench starts ductor as a process, and imports nothing of it.
	"cmd/ductor-bench": {"cmd/ductor-bench/floor", "internal/sim/agent", "internal/sim/script",
		"internal/sim/telegram"},
	"cmd/ductor-bench/floor": {},
	"scripts/paths":          {"*"}, // it is the whole program with counters

	"internal/app": {"*"}, // it connects all others
	"internal/app/environment": {
		"orchestrator", "heartbeat", "docker", "cli", "cli/claude", "cli/codex", "cli/copilot", "cli/gemini",
		"cli/host", "cli/service",
		"internal/config", "internal/rooted", "internal/runner", "lang",
	},

	"mcp":                   {"orchestrator", "orchestrator/handoff", "cli", "internal/rooted", "internal/statesocket", "lang", "mcp/relay"},
	"mcp/relay":             {"internal/rooted", "internal/statesocket"},
	"mcp/servers":           {"cli", "lang", "mcp/relay"},
	"docker":                {"cli", "cli/host", "internal/runner", "internal/rooted", "docker/homes"},
	"docker/dockertest":     {},
	"git":                   {"cli", "cli/turn", "internal/rooted", "lang", "orchestrator"},
	"docker/homes":          {},
	"bot":                   {"orchestrator", "cli/naming", "bot/outbox", "bot/render", "cli", "internal/secrets", "bot/tgapi", "bot/agent", "bot/usage", "bot/card", "bot/changes", "bot/checks", "bot/approval", "bot/cron", "bot/display", "bot/edits", "bot/files", "bot/menu", "bot/message", "bot/sessions", "bot/silence", "bot/steps", "bot/tables", "bot/project", "bot/transcript", "bot/updates", "bot/users", "bot/consult", "internal/nearest", "lang"},
	"bot/outbox":            {"internal/growstack", "orchestrator"},
	"bot/message":           {"internal/rooted", "orchestrator", "bot/outbox", "bot/render", "bot/tgapi", "cli", "lang"},
	"bot/users":             {"orchestrator", "orchestrator/users", "bot/message", "bot/render", "bot/tgapi", "internal/paircode", "lang"},
	"bot/updates":           {"internal/growstack", "internal/rooted", "orchestrator", "orchestrator/fence", "internal/paircode", "bot/message", "bot/render", "bot/tgapi", "lang"},
	"bot/tgapi":             {"orchestrator", "bot/outbox", "bot/render", "cli", "internal/secrets", "lang"},
	"bot/bottest":           {"orchestrator", "cli", "bot/outbox", "bot/render", "bot/render/rendertest", "bot/tgapi"},
	"bot/render/rendertest": {},
	"bot/approval":          {"orchestrator", "bot/message", "bot/outbox", "bot/render", "bot/tgapi", "cli", "lang"},
	"bot/card":              {"orchestrator", "bot/message", "bot/outbox", "bot/render", "bot/tgapi", "cli", "lang"},
	"bot/consult": {"orchestrator", "orchestrator/side", "bot/message", "bot/outbox", "bot/render",
		"bot/tgapi", "cli", "cli/naming", "lang"},
	"bot/display":    {"orchestrator", "bot/message", "bot/render", "bot/tgapi", "lang"},
	"bot/edits":      {"orchestrator", "bot/message", "bot/render", "bot/tgapi", "cli", "lang"},
	"bot/cron":       {"orchestrator", "bot/message", "bot/render", "bot/tgapi", "cli", "lang"},
	"bot/project":    {"orchestrator", "bot/message", "bot/outbox", "bot/render", "bot/tgapi", "cli", "lang"},
	"bot/sessions":   {"orchestrator", "orchestrator/fence", "bot/message", "bot/render", "bot/tgapi", "cli", "lang"},
	"bot/transcript": {"orchestrator", "bot/message", "bot/render", "bot/tgapi", "lang"},
	"bot/files":      {"orchestrator", "bot/message", "bot/render", "bot/tgapi", "cli", "lang"},
	"bot/menu": {
		"cli/tools", "orchestrator", "bot/render", "bot/tgapi", "cli", "cli/naming", "internal/nearest", "lang",
	},
	"bot/usage":   {"orchestrator", "cli", "bot/message", "bot/picture", "bot/render", "bot/tgapi", "lang"},
	"bot/agent":   {"orchestrator", "bot/message", "bot/render", "bot/tgapi", "cli", "lang"},
	"bot/picture": {},
	"bot/silence": {"orchestrator", "bot/message", "bot/outbox", "bot/render", "bot/tgapi", "cli", "lang"},
	"bot/changes": {"orchestrator", "bot/message", "bot/picture", "bot/render", "bot/tgapi",
		"cli", "lang"},
	"bot/checks":        {"orchestrator", "bot/message", "bot/outbox", "bot/render", "bot/tgapi", "cli", "lang"},
	"bot/steps":         {"orchestrator", "bot/message", "bot/render", "bot/tgapi", "cli", "lang"},
	"bot/tables":        {"orchestrator", "bot/message", "bot/picture", "bot/render", "bot/tgapi", "cli", "lang"},
	"bot/render":        {"cli", "cli/tools", "lang"},
	"lang":              {},
	"orchestrator":      {"cli", "lang"},
	"cli":               {"internal/rooted", "lang"},
	"cli/frames":        {"cli"},
	"cli/rpc":           {"cli", "cli/frames", "cli/turn"},
	"cli/naming":        {"cli", "internal/nearest"},
	"cli/shared":        {"cli", "cli/frames", "cli/turn", "cli/rpc"},
	"cli/host":          {"cli", "internal/proctree", "internal/rooted", "internal/runner"},
	"cli/service":       {"internal/growstack", "cli", "cli/tools", "lang"},
	"cli/tools":         {"cli", "internal/nearest"},
	"cli/stored":        {"cli", "cli/stored/files"},
	"cli/stored/files":  {},
	"cli/turn":          {"cli", "cli/frames", "lang"},
	"cli/acp":           {"cli", "cli/turn", "cli/rpc", "cli/shared", "cli/acp/toolcall", "cli/acp/workspace", "lang"},
	"cli/acp/toolcall":  {"cli"},
	"cli/acp/workspace": {"cli", "cli/rpc", "cli/acp/toolcall"},
	"cli/claude/skills": {},
	"cli/claude":        {"cli", "cli/claude/skills", "cli/turn", "cli/stored", "lang"},
	"cli/codex":         {"cli", "cli/tools", "cli/turn", "cli/rpc", "cli/shared", "cli/stored", "lang"},
	"cli/clitest": {"cli", "cli/turn", "cli/host", "cli/frames", "internal/runner", "internal/proctree",
		"internal/sim/agent", "internal/realagent", "internal/testprogram"},
	// A dialect of the Agent Client Protocol builds on the package of that protocol.
	"cli/gemini":       {"cli", "cli/tools", "cli/turn", "cli/acp", "cli/gemini/guard", "cli/stored", "lang"},
	"cli/gemini/guard": {},
	"cli/copilot":      {"cli", "cli/frames", "cli/turn", "cli/rpc", "cli/shared", "cli/stored", "lang"},
	// The packages that internal/config imports declare settings. None of them imports it.
	"internal/config": {
		"bot/card", "bot/outbox", "bot/updates", "cli", "cli/acp", "cli/naming", "cli/service",
		"cli/tools", "docker", "heartbeat", "heartbeat/webhook",
		"internal/keys", "internal/nearest", "internal/rooted", "internal/secrets", "internal/trace",
		"internal/transcribe", "mcp/servers",
		"orchestrator", "orchestrator/conversation", "orchestrator/sessions", "orchestrator/spending",
		"orchestrator/turn",
	},
	"internal/nearest":               {},
	"internal/health":                {"orchestrator"},
	"internal/alerts":                {"cli", "internal/health", "lang", "orchestrator", "orchestrator/spending"},
	"internal/metrics":               {"cli", "internal/health", "internal/trace", "orchestrator"},
	"heartbeat":                      {"lang", "orchestrator", "orchestrator/approval", "cli", "heartbeat/schedule"},
	"heartbeat/schedule":             {"lang"},
	"heartbeat/webhook":              {"orchestrator", "cli", "internal/secrets"},
	"internal/store":                 {"orchestrator", "heartbeat", "heartbeat/webhook", "cli", "lang", "internal/store/sqlite"},
	"internal/store/sqlite":          {"orchestrator", "internal/store/sqlite/compiler"}, // for the states of the disk
	"internal/store/sqlite/compiler": {},
	"internal/archtest":              {},
	"internal/realagent":             {"internal/sim/modelapi", "internal/testprogram"},
	"internal/paircode":              {},
	"internal/secrets":               {},
	"internal/sim/script":            {},
	"internal/sim/hostile":           {},
	"internal/sim/agent":             {"internal/sim/script"},
	"internal/sim/modelapi":          {"internal/sim/script"},
	"internal/sim/disk":              {"internal/store/sqlite/compiler"},
	"internal/sim/telegram":          {},
	"internal/sim/toolserver":        {},
	"internal/proctree":              {},
	"internal/testprogram":           {"internal/proctree"},
	"internal/roles":                 {"cli", "cli/tools", "orchestrator"},
	"internal/memory":                {},
	"internal/runner/fdstore":        {},
	"internal/runner/fork":           {"internal/proctree"},
	"internal/runner/inotify":        {},
	"internal/runner/journal":        {},
	"internal/rooted":                {},
	"internal/transcribe":            {},
	"internal/trace":                 {"cli", "orchestrator"},
	"scripts/loopback":               {},
	"scripts/testlog":                {},
	"scripts/together":               {},

	"internal/runner": {
		"internal/memory", "internal/proctree", "internal/runner/fdstore", "internal/runner/fork",
		"internal/runner/inotify", "internal/runner/journal",
	},
	"orchestrator/approval": {"orchestrator", "cli", "cli/tools", "internal/rooted", "internal/secrets", "lang"},
	"orchestrator/conversation": {"internal/growstack", "cli/tools", "lang", "orchestrator", "orchestrator/approval",
		"orchestrator/circuit", "orchestrator/handoff", "orchestrator/later", "orchestrator/retry",
		"orchestrator/sessions", "orchestrator/side", "orchestrator/spending", "orchestrator/steps",
		"orchestrator/turn", "orchestrator/workplace", "cli", "internal/secrets", "orchestrator/conversation/inbox"},
	"orchestrator/conversation/inbox": {},
	"orchestrator/turn": {
		"cli", "cli/tools", "internal/growstack", "internal/secrets", "lang", "orchestrator", "orchestrator/approval",
		"orchestrator/circuit", "orchestrator/handoff", "orchestrator/steps",
	},
	"orchestrator/changes":  {"cli", "git", "internal/secrets", "orchestrator", "orchestrator/fence"},
	"orchestrator/users":    {"orchestrator", "internal/paircode"},
	"orchestrator/files":    {"orchestrator", "cli", "internal/rooted", "internal/secrets"},
	"orchestrator/side":     {"lang", "orchestrator", "orchestrator/spending", "cli", "cli/tools", "internal/secrets"},
	"orchestrator/spending": {"orchestrator", "cli", "lang"},
	"orchestrator/circuit":  {"cli"},
	"orchestrator/consult": {"orchestrator", "orchestrator/handoff", "orchestrator/side", "orchestrator/steps", "cli",
		"internal/secrets"},
	"orchestrator/steps":     {"orchestrator", "cli"},
	"orchestrator/handoff":   {"internal/rooted", "orchestrator", "orchestrator/side", "cli"},
	"orchestrator/later":     {"orchestrator", "cli"},
	"orchestrator/retry":     {"orchestrator"},
	"orchestrator/sessions":  {"orchestrator", "orchestrator/fence", "cli"},
	"orchestrator/fence":     {},
	"orchestrator/projects":  {"orchestrator", "cli", "git"},
	"orchestrator/workplace": {"orchestrator", "cli", "lang"},
}

// modules lists the packages that may import an outside module, except in tests. "" allows every package.
var modules = map[string][]string{
	"github.com/go-telegram/bot":   {"bot/tgapi"},
	"github.com/mattn/go-sqlite3":  {"internal/store/sqlite", "internal/sim/disk", "cmd/ductor-bench"},
	"github.com/pelletier/go-toml": {"cli/acp", "cli/codex", "internal/config", "internal/terminal", "lang"},
	"github.com/yuin/goldmark":     {"bot/render"},
	"github.com/robfig/cron":       {"heartbeat/schedule"},
	"github.com/spf13/cobra":       {"cmd/ductor", "cmd/ductor/sub"},
	"golang.org/x/mod":             {"cmd/ductor/sub"}, // the order of versions
	"go.yaml.in/yaml":              {"cli", "internal/roles"},
	"golang.org/x/image":           {"bot/picture"},
	"golang.org/x/text":            {"lang"},
	"golang.org/x/time":            {"bot/outbox", "heartbeat/webhook"},
	"golang.org/x/term":            {"cmd/ductor/sub", "internal/attach/client"},
	"charm.land/bubbletea":         {"internal/attach/client"},
	"github.com/charmbracelet/x":   {"internal/attach/screen"}, // the width of texts in a terminal
	"golang.org/x/sys": {"docker", "internal/doctor", "internal/proctree", "internal/runner",
		"internal/runner/fdstore", "internal/runner/fork", "internal/runner/inotify", "internal/runner/journal",
		"internal/sim/disk", "internal/sim/hostile", "internal/testprogram", "scripts/loopback", "cmd/ductor-bench"},
	"github.com/docker/docker":               {"docker"},
	"github.com/aymanbagabas/go-udiff":       {"cli", "internal/setup", "internal/terminal"},
	"github.com/containerd/errdefs":          {"docker"}, // the kinds of errors of the Docker client
	"github.com/google/uuid":                 {""},
	"github.com/coreos/go-systemd":           {"internal/health"},
	"github.com/prometheus/client_golang":    {"internal/metrics"},
	"github.com/chromedp":                    {"web/browsertest"},
	"github.com/modelcontextprotocol/go-sdk": {"mcp", "mcp/servers", "internal/sim/toolserver"},
	"pgregory.net/rapid":                     {"cli/clitest"},
	"go.uber.org/goleak":                     {"cli/clitest", "internal/testprogram"},
	"github.com/google/go-cmp":               {"cli/clitest"},
}

// goPackage is a package of this module with the imports of its files, except tests.
type goPackage struct {
	path    string // below the module
	imports []string
}

func TestImportGraph(t *testing.T) {
	for _, p := range packagesOf(t) {
		allowed, known := imports[p.path]
		if !known {
			t.Errorf("%s is a new package: say in this test what it may import", p.path)
			continue
		}
		for _, path := range p.imports {
			if ours, ok := strings.CutPrefix(path, "ductor/"); ok {
				if !slices.Contains(allowed, ours) && !slices.Contains(allowed, "*") {
					t.Errorf("%s imports %s, which is not below it", p.path, ours)
				}
				continue
			}
			if strings.Contains(strings.Split(path, "/")[0], ".") {
				checkModule(t, p.path, path)
			}
		}
	}
}

// checkModule fails the test if the package pkg may not import path, a package of an outside module.
func checkModule(t *testing.T, pkg, path string) {
	t.Helper()
	for module, in := range modules {
		if path == module || strings.HasPrefix(path, module+"/") {
			if !slices.Contains(in, pkg) && !slices.Contains(in, "") {
				t.Errorf("%s imports %s, which belongs to %v", pkg, path, in)
			}
			return
		}
	}
	t.Errorf("%s imports %s, a new outside module: say in this test which package it belongs to", pkg, path)
}

// packagesOf reads the imports of every package, tests excepted.
func packagesOf(t *testing.T) []*goPackage {
	t.Helper()
	found := map[string]*goPackage{}
	for _, f := range parsedTree(t) {
		if !f.isShipped() {
			continue
		}
		p := found[f.pkg]
		if p == nil {
			p = &goPackage{path: f.pkg}
			found[f.pkg] = p
		}
		for _, imp := range f.Imports {
			p.imports = append(p.imports, strings.Trim(imp.Path.Value, `"`))
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *goPackage) int { return strings.Compare(a.path, b.path) })
}
