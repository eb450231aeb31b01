package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/cli/clitest"
	"ductor/docker/dockertest"
	"ductor/heartbeat/webhook"
	"ductor/internal/app"
	"ductor/internal/config"
	"ductor/internal/keys"
	agentsim "ductor/internal/sim/agent"
	telegramsim "ductor/internal/sim/telegram"
	"ductor/internal/sim/toolserver"
	"ductor/internal/testprogram"
	"ductor/mcp/relay"
	"ductor/orchestrator"
)

// The test binary also serves as the scripted agents and their runner.
func TestMain(m *testing.M) {
	clitest.RunIfAsked()
	toolserver.RunIfAsked()
	if len(os.Args) > 1 && os.Args[1] == relay.ServerVerb {
		fmt.Fprintln(os.Stderr, relay.StartServer(os.Args[2:]))
		os.Exit(1)
	}
	agentsim.RunIfChild()
	testprogram.Guard()
	code := m.Run()
	dockertest.Clean()
	os.Exit(code)
}

// row describes a check: spoil breaks something, the check finds it, and after the fix it passes again.
type row struct {
	check check
	about string // the thing, if the check covers several
	spoil func(*setUp)
	fix   func(*setUp) // needed besides restoring the configuration
	state State
	says  string // substring of the text or the fix
	// passes is the check that succeeds after the fix, if it is another one; "nothing" for none.
	passes string
}

const nothing = "-"

// serverRows returns the rows of MCP servers.
func serverRows() []row {
	return []row{
		{check: server, about: "greeter", state: Warning, says: "no answer within 1s",
			spoil: appendText("[mcp.servers.greeter]\ncommand = \"sleep\"\nargs = [\"60\"]\ntimeout = \"1s\""),
			fix: appendText("[mcp.servers.greeter]\ncommand = \"" + os.Args[0] + "\"\nargs = [\"" + toolserver.Verb +
				"\", \"serve\"]")},
	}
}

// linkRows returns the rows of projects in place of which an agent put a link.
func linkRows() []row {
	return []row{
		{check: sandbox, about: "box", fix: sandboxed, state: Failed, says: "/box leads to /", passes: nothing,
			spoil: func(s *setUp) { linkedProject(s, "box", orchestrator.SandboxDocker, s.state) }},
		{check: sandbox, about: "open", fix: sandboxed, state: Failed, says: "/open leads to /", passes: nothing,
			spoil: func(s *setUp) { linkedProject(s, "open", orchestrator.SandboxOff, s.project) }},
	}
}

// rows has at least one row for each check; TestEachCheckHasARow enforces it.
func rows() []row {
	return append(slices.Concat(serverRows(), linkRows()), []row{
		{check: configuration, spoil: put("[telegram]", "[telegram"), state: Failed, says: "or run: ductor setup"},
		{check: configuration, spoil: put("[stream]", "[straem]"), state: Failed, says: "straem"},
		{check: configuration, spoil: func(s *setUp) { s.mode = 0o644 }, state: Warning, says: "run: chmod 600"},
		{check: allowlist, spoil: put("allowed_users = [1]", "allowed_users = []"), state: Warning, says: "allowed_users", passes: "allowlist"},
		{check: key, about: "gemini.GEMINI_API_KEY", spoil: func(s *setUp) {
			s.must(keys.Set(s.state, keys.Name{Agent: "gemini", Variable: "GEMINI_API_KEY"}, strings.NewReader("a-key-of-gemini")))
			put("[agents.gemini]", "[agents.gemini]\nenabled = false")(s)
		}, state: Warning, says: "run: ductor secret rm gemini.GEMINI_API_KEY"},
		{check: proxy, spoil: change(func(c *config.Config) { c.Telegram.Proxy = "gopher://127.0.0.1:1" }), state: Failed, says: "correct telegram.proxy"},
		{check: telegram, spoil: put("token = ", `token = "666666:AAnobodys-nobodys-nobodys-nobodys" # `), state: Failed, says: "check telegram.api_base, telegram.token"},
		{check: telegram, spoil: func(s *setUp) {
			s.restore = s.srv.Inject(telegramsim.Fault{Method: "getMe", Kind: telegramsim.ServerError, Times: telegramsim.Always}).Remove
		}, state: Failed, says: "check telegram.api_base, telegram.token"},
		{check: groups, spoil: func(s *setUp) { s.serve(s.processWithoutGroup()) }, fix: func(s *setUp) { s.serve(s.processWithGroup()) }, state: Warning, says: "Delegate=yes"},
		{check: database, spoil: func(s *setUp) { s.write("ductor.db", "this is no database") }, fix: func(s *setUp) { s.remove("ductor.db") }, state: Failed, says: "ductor restore"},
		{check: database, spoil: func(s *setUp) { s.write("ductor.db", "this is no database") }, fix: func(s *setUp) {
			s.remove("ductor.db")
			s.database()
		}, state: Failed, says: "ductor restore"},
		{check: database, spoil: (*setUp).lockState, state: Failed, says: "it cannot be made"},
		{check: backup, spoil: change(func(c *config.Config) { c.Retention.BackupsDays = 0 }), state: Warning, says: "backups_days"},
		{check: damaged, spoil: func(s *setUp) { s.must(os.MkdirAll(filepath.Join(s.state, "damaged-20261129T000000.000"), 0o700)) },
			fix: func(s *setUp) { s.remove("damaged-20261129T000000.000") }, state: Warning, says: "delete that directory", passes: nothing},
		{check: disk, spoil: (*setUp).fillDisk, state: Failed, says: "free space there"},
		{check: disk, spoil: func(s *setUp) { s.must(os.MkdirAll(filepath.Join(s.state, "disk.probe"), 0o700)) }, fix: func(s *setUp) { s.remove("disk.probe") }, state: Failed, says: "free space there"},
		{check: homeDisk, spoil: (*setUp).fillHome, state: Failed, says: "free space there"},
		{check: defaultDir, spoil: func(s *setUp) { s.must(os.Remove(s.project)) }, fix: func(s *setUp) { s.must(os.Mkdir(s.project, 0o700)) }, state: Failed, says: "create it, or set another"},
		{check: webhooks, spoil: change(badHook),
			fix: change(func(c *config.Config) { c.Webhooks.Hooks = map[string]webhook.HookSettings{"push": {}} }), state: Failed, says: "correct it in [webhooks]", passes: "jobs"},
		{check: jobs, spoil: appendText("[jobs.tidy]\nprompt = \"tidy up\"\nschedule = \"every 7 parsecs\""), fix: appendText("[jobs.tidy]\nprompt = \"tidy up\"\nschedule = \"every day at 7:00\""),
			state: Failed, says: "correct that job"},
		{check: forgetting, spoil: func(s *setUp) { s.database(); s.write("docker", "in the way"); sandboxed(s) }, fix: func(s *setUp) { s.remove("docker") },
			state: Failed, says: "check [retention]", passes: "forgetting uploads"},
		{check: agents, spoil: func(s *setUp) {
			for _, program := range s.programs {
				put(program, "/no/such/program")(s)
			}
		}, state: Failed, says: "or install one", passes: "agent claude"},
		{check: agent, about: "claude", spoil: func(s *setUp) { put(s.programs[0], "/no/such/program")(s) }, state: Warning, says: "docs/agents.md"},
		{check: agent, about: "gemini", spoil: func(s *setUp) { s.must(os.Unsetenv("GEMINI_API_KEY")) }, fix: func(s *setUp) { s.setenv("GEMINI_API_KEY", "dummy") }, state: Warning, says: "log in to it"},
		{check: agent, about: "copilot", spoil: put("[agents.copilot]", "[permissions]\nmode = \"plan\"\n[agents.copilot]\nmode = \"one-shot\""), state: Warning, says: "docs/permissions.md"},
		{check: tools, spoil: appendText("[roles.careful]\nprompt = \"be careful\"\ntools = [\"mcp:github\"]"), state: Failed, says: "Claude cannot be told to use no other MCP servers", passes: nothing},
		{check: models, spoil: put("[agents.claude]", "[agents.claude]\nmodel = \"opuss-9\""), fix: put("[agents.claude]", "[agents.claude]\nmodel = \"sonnet\""), state: Warning, says: "/model lists"},
		{check: models, spoil: func(s *setUp) { s.role("---\nagent: claude\nmodel: opuss-9\n---\nyou test") }, fix: func(s *setUp) { s.role("---\nagent: claude\nmodel: sonnet\n---\nyou test") },
			state: Warning, says: `roles/tester.md: no agent lists a model "opuss-9"`},
		{check: roles, spoil: func(s *setUp) { s.role("---\nagent: cloude\n---\nyou test") }, fix: func(s *setUp) { s.role("---\nagent: claude\n---\nyou test") },
			state: Failed, says: `roles/tester.md: no agent is called "cloude"; use one of claude, codex`, passes: nothing},
		{check: roles, spoil: func(s *setUp) { s.role("---\nagent: [\n---\nyou test") }, fix: func(s *setUp) { s.role("you test") }, state: Failed, says: "roles/tester.md is no role", passes: nothing},
		{check: sandboxes, spoil: func(s *setUp) { s.write("docker", "in the way"); sandboxed(s) }, fix: func(s *setUp) { s.remove("docker") },
			state: Failed, says: "docs/sandbox.md", passes: nothing},
		{check: sandbox, about: "default", spoil: sandboxed, fix: engine, state: Failed, says: "/no/such/socket cannot be reached", passes: nothing},
		{check: sandbox, about: "default", spoil: func(s *setUp) {
			sandboxed(s)
			change(func(c *config.Config) { c.Sandbox.Host, c.Sandbox.CA = "tcp://127.0.0.1:1", "/no/such/ca.pem" })(s)
		}, fix: engine, state: Failed, says: "/no/such/ca.pem", passes: nothing},
		{check: sandbox, about: "default", spoil: func(s *setUp) {
			sandboxed(s)
			change(func(c *config.Config) { c.Sandbox.Seeds = []string{"/no/such/seed:x"} })(s)
		}, fix: engine, state: Failed, says: "sandbox.seeds: /no/such/seed", passes: nothing},
		{check: sandbox, about: "default", spoil: func(s *setUp) {
			sandboxed(s)
			link := s.linkedSocket()
			change(func(c *config.Config) { c.Sandbox.Mounts = []string{link} })(s)
		}, fix: engine, state: Failed, says: "who may use it owns the machine", passes: nothing},
	}...)
}

// TestTheFileOfARunningDuctor tests the finding about a configuration file that changed since ductor read it.
func TestTheFileOfARunningDuctor(t *testing.T) {
	running := config.Config{File: "/c/config.toml"}
	limit := config.Changed{Key: "queue.max", Applies: config.AtOnce}
	proxy := config.Changed{Key: "telegram.proxy", Applies: config.AfterRestart}
	finding := func(state State, text, fix string) Finding {
		return Finding{Name: string(configuration), State: state, Text: text, Fix: fix}
	}
	const differs = "/c/config.toml differs from the settings in use: "
	for name, c := range map[string]struct {
		mistakes error
		changes  []config.Changed
		want     Findings
	}{
		"unchanged": {want: Findings{finding(OK, "/c/config.toml", "")}},
		"mistakes": {mistakes: errors.New("a.b: wrong\nc: mode; run: chmod 600 c"), want: Findings{
			finding(Failed, "a.b: wrong", "correct /c/config.toml, then send /reload"),
			finding(Failed, "c: mode", "run: chmod 600 c"),
		}},
		"changed": {changes: []config.Changed{limit, proxy}, want: Findings{
			finding(Warning, differs+"queue.max, telegram.proxy", "send /reload"),
		}},
		"changed for a restart": {changes: []config.Changed{proxy}, want: Findings{
			finding(Warning, differs+"telegram.proxy", "restart ductor"),
		}},
	} {
		d := &doctor{scrub: app.NewScrubber(running)}
		d.checkFile(app.Examined{Running: running, Mistakes: c.mistakes, Changes: c.changes})
		if !slices.Equal(d.found, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, d.found, c.want)
		}
	}
}

// Each check finds its problem, names a fix, and passes once the problem is fixed.
func TestEachCheckFailsAndPasses(t *testing.T) {
	for i, r := range rows() {
		name := string(r.check)
		if r.about != "" {
			name = string(r.check.named(r.about))
		}
		t.Run(fmt.Sprint(i, " ", name), func(t *testing.T) {
			s := newSetUp(t)
			if !slices.Contains([]check{key, agents, agent, models}, r.check) {
				s.onlyClaude() // faster: each agent costs time
			}
			base := s.text
			r.spoil(s)
			found := s.examine()
			if r.check == allowlist { // an empty allowlist is a warning of the configuration
				name = string(configuration)
			}
			if !found.contains(name, r.state, r.says) {
				t.Errorf("no %s of %s that says %q in\n%s", r.state, name, r.says, found)
			}
			s.text, s.mode, s.changes = base, 0o600, nil
			if r.fix != nil {
				r.fix(s)
			} else if s.restore != nil {
				s.restore()
			}
			found = s.examine()
			if found.contains(name, r.state, r.says) {
				t.Errorf("mended, it is found again:\n%s", found)
			}
			if passes := cmp.Or(r.passes, name); passes != nothing && !found.contains(passes, OK, "") {
				t.Errorf("%s is not ok once it is mended:\n%s", passes, found)
			}
		})
	}
}

// TestEachCheckHasARow reads the checks from the source. Each must have a row, and every finding must use one of them.
func TestEachCheckHasARow(t *testing.T) {
	shown := map[string]bool{}
	for _, r := range rows() {
		shown[string(r.check)] = true
	}
	checks := map[string]string{} // by name of the constant
	var used []string
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if of, ok := n.Type.(*ast.Ident); ok && of.Name == "check" {
					checks[n.Names[0].Name] = strings.Trim(n.Values[0].(*ast.BasicLit).Value, `"`)
				}
			case *ast.CallExpr:
				to, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || !slices.Contains([]string{"ok", "warn", "fail"}, to.Sel.Name) {
					return true
				}
				ast.Inspect(n.Args[0], func(of ast.Node) bool {
					if lit, ok := of.(*ast.BasicLit); ok {
						t.Errorf("%s: a finding has the name %s, which is no check", path, lit.Value)
					}
					return true
				})
				if name, ok := n.Args[0].(*ast.Ident); ok {
					used = append(used, name.Name)
				}
			}
			return true
		})
	}
	if len(checks) < 15 || !slices.Contains(used, "disk") {
		t.Fatalf("the source has the checks %v, and uses %v", checks, used)
	}
	for name, text := range checks {
		if !shown[text] {
			t.Errorf("no row shows the check %s", name)
		}
	}
}

// No finding contains a secret of the configuration.
func TestNoFindingShowsASecret(t *testing.T) {
	s := newSetUp(t)
	const password = "a-password-of-a-proxy"
	change(func(c *config.Config) {
		c.Telegram.Proxy = "gopher://user:" + password + "@127.0.0.1:1"
		c.Warnings = append(c.Warnings, "the token "+c.Telegram.Token.Reveal()+" is doubtful, and so is "+c.Telegram.Proxy.Reveal())
	})(s)
	found := s.examine()
	if !found.contains("telegram.proxy", Failed, "") || !found.contains("configuration", Warning, "is doubtful") {
		t.Fatalf("it finds\n%s", found)
	}
	if text := found.String(); strings.Contains(text, password) || strings.Contains(text, s.srv.Token()) {
		t.Errorf("it shows a secret:\n%s", text)
	}
}
