package approval

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/orchestrator"
)

func commandApproval(command string) orchestrator.ApprovalRequest {
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return normalized(orchestrator.ApprovalRequest{Agent: "claude", Session: "s", Dir: "/src", Request: &cli.ApprovalAsked{Tool: "Bash", Title: command, Input: input}})
}

// normalized sets the effect of a request like a dialect whose shell is called Bash.
func normalized(a orchestrator.ApprovalRequest) orchestrator.ApprovalRequest {
	a.Request.Effect = cli.EffectOf(a.Request.Input, a.Dir, map[string]any{"kind": "command"})
	if a.Request.Tool == "Bash" {
		a.Request.Effect.Shell = cli.ShellUseFor(a.Request.Reason)
	}
	return a
}

func TestWhatIsOffered(t *testing.T) {
	for command, want := range map[string][2]string{
		"git status":     {"Bash(git status)", "Bash(git status *)"},
		"git status src": {"Bash(git status src)", "Bash(git status *)"},
		"go test ./...":  {"Bash(go test ./...)", "Bash(go test *)"},
		// ".." leads out of the directory
		"go test ../x":                  {"Bash(go test ../x)", "Bash(go test ../x)"},
		"npm run build":                 {"Bash(npm run build)", "Bash(npm run *)"},
		"npm run test:unit":             {"Bash(npm run test:unit)", "Bash(npm run *)"},
		"git add .":                     {"Bash(git add .)", "Bash(git add *)"},
		"git fetch origin main":         {"Bash(git fetch origin main)", "Bash(git fetch *)"},
		"git fetch evil:path":           {"Bash(git fetch evil:path)", "Bash(git fetch evil:path)"},
		"git fetch origin a:b":          {"Bash(git fetch origin a:b)", "Bash(git fetch origin a:b)"},
		"git fetch https://x.y/z":       {"Bash(git fetch https://x.y/z)", "Bash(git fetch https://x.y/z)"},
		"git show HEAD:a":               {"Bash(git show HEAD:a)", "Bash(git show HEAD:a)"},
		"cat .env":                      {"Bash(cat .env)", "Bash(cat .env)"},
		"cat sub/.aws/x":                {"Bash(cat sub/.aws/x)", "Bash(cat sub/.aws/x)"},
		"cat id_rsa":                    {"Bash(cat id_rsa)", "Bash(cat id_rsa)"},
		"cat x/prod.tfstate":            {"Bash(cat x/prod.tfstate)", "Bash(cat x/prod.tfstate)"},
		"touch a":                       {"Bash(touch a)", "Bash(touch *)"},
		"touch /etc/a":                  {"Bash(touch /etc/a)", "Bash(touch /etc/a)"},
		"python3 build.py":              {"Bash(python3 build.py)", ""},
		"node x.js":                     {"Bash(node x.js)", ""},
		"npx eslint":                    {"Bash(npx eslint)", ""},
		"sudo ls":                       {"Bash(sudo ls)", ""},
		"env ls":                        {"Bash(env ls)", ""},
		"bash x.sh":                     {"Bash(bash x.sh)", ""},
		"./build":                       {"Bash(./build)", ""},
		"/tmp/x":                        {"Bash(/tmp/x)", ""},
		"A=b ls":                        {"Bash(A=b ls)", ""},
		"go test ./orchestrator":        {"Bash(go test ./orchestrator)", "Bash(go test *)"},
		"git status --short":            {"Bash(git status --short)", "Bash(git status --short)"},
		"git status /etc":               {"Bash(git status /etc)", "Bash(git status /etc)"},
		"git statusx":                   {"Bash(git statusx)", "Bash(git statusx)"},
		"rm -rf build":                  {"Bash(rm -rf build)", "Bash(rm -rf build)"},
		"git status; rm x":              {"Bash(git status; rm x)", ""},
		"git status && rm x":            {"Bash(git status && rm x)", ""},
		"git status | sh":               {"Bash(git status | sh)", ""},
		"git status `id`":               {"Bash(git status `id`)", ""},
		"git status $(id)":              {"Bash(git status $(id))", ""},
		"git status > x":                {"Bash(git status > x)", ""},
		"git status\nrm x":              {"Bash(git status\nrm x)", ""},
		"git status\trm":                {"Bash(git status\trm)", ""},
		"git  status":                   {"Bash(git  status)", ""},
		"git status 'a'":                {"Bash(git status 'a')", ""},
		"ls ~":                          {"Bash(ls ~)", ""},
		"ls \u2024\u2024":               {"Bash(ls \u2024\u2024)", ""},
		"/bin/bash -lc 'git status'":    {"Bash(git status)", "Bash(git status *)"},
		"/bin/bash -lc 'git status;id'": {"Bash(git status;id)", ""},
	} {
		session, lasting := offeredRules(commandApproval(command))
		if session.Text != want[0] || lasting.Text != want[1] {
			t.Errorf("%q offers %q and %q", command, session.Text, lasting.Text)
		}
		for _, r := range []orchestrator.Rule{session, lasting} {
			if r.Kind != "" && !covers(r, commandApproval(command)) {
				t.Errorf("%s does not cover what it was made of", r.Text)
			}
		}
	}
}

func TestWhatARuleLetsThrough(t *testing.T) {
	_, status := offeredRules(commandApproval("git status"))
	exact, _ := offeredRules(commandApproval("rm -rf build; make"))
	for _, tc := range []struct {
		rule   orchestrator.Rule
		change func(*orchestrator.ApprovalRequest)
		want   bool
	}{
		{status, func(*orchestrator.ApprovalRequest) {}, true},
		{status, command("git status src docs"), true},
		{status, command("git status --porcelain"), false},
		{status, command("git status ../other"), false},
		{status, func(a *orchestrator.ApprovalRequest) {
			command("git status docs")(a)
			a.Links = []orchestrator.Link{{Path: "docs", Real: "sub"}}
		}, true},
		{status, func(a *orchestrator.ApprovalRequest) {
			command("git status docs")(a)
			a.Links = []orchestrator.Link{{Path: "docs", Real: "/etc", Outside: true}}
		}, false},
		{status, func(a *orchestrator.ApprovalRequest) {
			command("git status docs")(a)
			a.Links = []orchestrator.Link{{Path: "docs", Real: ".git/config"}}
		}, false},
		{status, command("git status /etc"), false},
		{status, command("git stash"), false},
		{status, command("git status\\;id"), false},
		{status, func(a *orchestrator.ApprovalRequest) { a.Agent = "codex" }, false},
		{status, func(a *orchestrator.ApprovalRequest) { a.Dir = "/other" }, false},
		{status, func(a *orchestrator.ApprovalRequest) { a.Conversation.Topic = 3 }, false},
		{status, func(a *orchestrator.ApprovalRequest) { a.Session = "later" }, true},
		{status, func(a *orchestrator.ApprovalRequest) { a.Request.Tool = "Shell" }, false},
		{status, func(a *orchestrator.ApprovalRequest) {
			a.Request.Input = []byte(`{"command":"git status","cwd":"/src"}`)
		}, true},
		{status, func(a *orchestrator.ApprovalRequest) { a.Request.Input = []byte(`{"command":"git status","cwd":"/"}`) }, false},
		{status, func(a *orchestrator.ApprovalRequest) {
			a.Request.Input = []byte(`{"command":"git status","dangerouslyDisableSandbox":true}`)
		}, false},
		{status, func(a *orchestrator.ApprovalRequest) { a.Request.Input = []byte(`{"command":["git","status"]}`) }, false},
		{status, func(a *orchestrator.ApprovalRequest) { a.Request.Input = nil }, false},
		{exact, command("rm -rf build; make"), true},
		{exact, command("rm -rf build; make "), false},
		{exact, func(a *orchestrator.ApprovalRequest) { command("rm -rf build; make")(a); a.Session = "later" }, false},
		// Rules in the database are not trusted.
		{orchestrator.Rule{Agent: "claude", Tool: "Bash", Dir: "/src", Kind: orchestrator.RulePrefix, Value: "git"}, func(*orchestrator.ApprovalRequest) {}, false},
		{orchestrator.Rule{Agent: "claude", Tool: "Bash", Dir: "/src", Kind: orchestrator.RulePrefix}, func(*orchestrator.ApprovalRequest) {}, false},
		{orchestrator.Rule{Agent: "claude", Tool: "Bash", Dir: "/src", Kind: orchestrator.RuleCommand, Value: "a;b"}, command("a;b"), false},
		{orchestrator.Rule{Agent: "claude", Tool: "Bash", Dir: "/src", Kind: "all"}, func(*orchestrator.ApprovalRequest) {}, false},
		{orchestrator.Rule{Agent: "claude", Tool: cli.PlanTool, Dir: "/src", Kind: orchestrator.RuleSame}, func(a *orchestrator.ApprovalRequest) { a.Request.Tool = cli.PlanTool }, false},
	} {
		a := commandApproval("git status")
		tc.change(&a)
		a = normalized(a)
		if got := covers(tc.rule, a); got != tc.want {
			t.Errorf("%s covers %s: %v", tc.rule.Text, a.Request.Input, got)
		}
	}
}

func command(c string) func(*orchestrator.ApprovalRequest) {
	return func(a *orchestrator.ApprovalRequest) { a.Request = commandApproval(c).Request }
}

func TestARuleForEdits(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "src")
	for _, made := range []string{"src/sub", "src/.git/hooks", "outside"} {
		if err := os.MkdirAll(filepath.Join(root, made), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"out": filepath.Join(root, "outside"), "hooks": filepath.Join(dir, ".git/hooks"),
		"in": filepath.Join(dir, "sub"), "broken": filepath.Join(root, "nowhere")} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	edit := func(path string) orchestrator.ApprovalRequest {
		input, err := json.Marshal(map[string]any{"file_path": path, "old_string": "a", "new_string": "b"})
		if err != nil {
			t.Fatal(err)
		}
		return orchestrator.ApprovalRequest{Agent: "claude", Session: "s", Dir: dir, Request: &cli.ApprovalAsked{
			Tool: "Edit", Input: input, Changes: []cli.FileChanged{{Path: path, Kind: cli.FileUpdated}},
		}}
	}
	rule, lasting := offeredRules(edit(filepath.Join(dir, "main.go")))
	if rule.Kind != orchestrator.RuleEdits || rule.Text != "Edit(any file below "+dir+" that is not hidden)" || lasting.Kind != "" {
		t.Fatalf("offered %+v, %+v", rule, lasting)
	}
	for path, want := range map[string]bool{
		"main.go": true, "sub/new/deep.go": true, dir + "/sub/x": true, "in/x": true, "sub/../main.go": true,
		"../outside/x": false, "out/x": false, "out": false, "broken": false, "broken/x": false, "hooks/pre-commit": false,
		".git/config": false, "sub/.envrc": false, "": false, ".": false, "/etc/passwd": false, dir: false, dir + "2/x": false,
	} {
		if got := covers(rule, edit(path)); got != want {
			t.Errorf("a rule for edits covers %q: %v", path, got)
		}
	}
	more := edit("main.go")
	more.Request.Changes = []cli.FileChanged{{Path: "sub/x", Kind: cli.FileUpdated}, {Path: "/etc/passwd", Kind: cli.FileUpdated}}
	if covers(rule, more) {
		t.Error("it covers a change outside")
	}
	more.Request.Changes = []cli.FileChanged{{Path: "sub/x", Kind: cli.FileDeleted}}
	if covers(rule, more) {
		t.Error("it covers a deletion")
	}
	if more.Request.Changes = nil; covers(rule, more) {
		t.Error("it covers an edit of nothing")
	}
	if more = edit("main.go"); !covers(rule, more) {
		t.Error("it does not cover an edit")
	}
	if more.Request.Fields = []cli.Field{{Name: "mode", Value: "511"}}; covers(rule, more) || editsBelow(orchestrator.ApprovalRequest{Dir: dir, Questions: []cli.Question{{Text: "?"}}}) {
		t.Error("it covers what does more than an edit")
	}
}

func TestARuleForExactlyThis(t *testing.T) {
	fetch := func(input string) orchestrator.ApprovalRequest {
		fields := cli.Reading{Labels: []string{"tool_use_id"}}.Fields([]byte(input))
		return normalized(orchestrator.ApprovalRequest{Agent: "claude", Session: "s", Dir: "/src", Request: &cli.ApprovalAsked{Tool: "WebFetch", Input: []byte(input), Fields: fields}})
	}
	rule, lasting := offeredRules(fetch(`{"url":"https://a","tool_use_id":"1"}`))
	if rule.Kind != orchestrator.RuleSame || lasting.Kind != "" {
		t.Fatalf("offered %+v, %+v", rule, lasting)
	}
	if !covers(rule, fetch(`{"tool_use_id":"2","url":"https://a"}`)) || covers(rule, fetch(`{"url":"https://b"}`)) || covers(rule, fetch(`{"url":"https://a","x":1}`)) {
		t.Error("it does not cover exactly this")
	}
	for _, wider := range []string{`{"url":"https://a","dangerouslyDisableSandbox":true}`, `{"url":"https://a","cwd":"/etc"}`} {
		if none, _ := offeredRules(fetch(wider)); none.Kind != "" || covers(rule, fetch(wider)) {
			t.Errorf("%s is offered %+v", wider, none)
		}
	}
	if other := fetch(`{"url":"https://a","requestId":"2"}`); covers(rule, other) || digestOf(other) == digestOf(fetch(`{"url":"https://a"}`)) {
		t.Error("a field that one agent uses as an id counts for nothing with another")
	}
	if none, _ := offeredRules(fetch("")); none.Kind != "" {
		t.Errorf("for an input nobody knows %+v is offered", none)
	}
	plan := fetch(`{"plan":"x"}`)
	plan.Request.Tool = cli.PlanTool
	if none, _ := offeredRules(plan); none.Kind != "" {
		t.Errorf("for a plan %+v is offered", none)
	}
}

// A job's rule without a command allows only uses of a tool that name nothing, and none of a shell: agents have their own
// names for the command.
func TestWhatTheNameOfAToolAllows(t *testing.T) {
	for _, c := range []struct {
		tool, input string
		want        bool
	}{
		{"WebFetch", `{"url":"https://a"}`, true},
		{"mcp__x__list", `{}`, true},
		{"mcp__x__list", `{"path":"a"}`, false},
		{"mcp__x__list", `{"path":null}`, true},
		{"mcp__x__run", `{"command":"ls"}`, false},
		{"mcp__x__run", `{"serverName":"x","_meta":{"tool_params":{"path":"a"}}}`, false},
		{"mcp__x__run", `{"calls":[{"x":{"cmd":"ls"}}]}`, false},
		{"mcp__x__run", `{"calls":[{"x":{"cmd":null}}]}`, true},
		{"mcp__x__run", `{"url":"a","url":"b"}`, false},
		{"mcp__x__run", `["a"]`, false},
		{"mcp__x__run", "", false},
		{"Bash", `{"command":"ls"}`, false},
		{"Bash", `{"kind":"shell","fullCommandText":"ls"}`, false},
	} {
		a := normalized(orchestrator.ApprovalRequest{Dir: "/src", Request: &cli.ApprovalAsked{Tool: c.tool, Input: []byte(c.input)}})
		if got := patternCovers(c.tool, a); got != c.want {
			t.Errorf("%s %s is allowed by its name: %v", c.tool, c.input, got)
		}
	}
}

// A steered agent cannot use a tool of an unattended run for files that the rule does not mean, whatever the MCP server
// calls its arguments.
func TestAttackTheArgumentsOfATool(t *testing.T) {
	for input, want := range map[string]bool{
		`{"query":"red or/and blue", "n":3, "deep":[{"on":true}]}`: true,
		`{"text":"Fails on macOS / Linux ..."}`:                    true,
		`{"text":"Wait ... then go...  .5 or 5.  "}`:               true,
		`{"text":"Needs .NET. Or .NET?"}`:                          true,
		`{"text":"<p>Some <b>bold</b> text</p>"}`:                  true,
		`{"text":"It takes ~5 minutes, or ~10%."}`:                 true,
		`{"text":"x = 1 // as before"}`:                            true,
		`{"text":"..."}`:                                           true,
		`{"text":"see .../x"}`:                                     false,
		`{"text":"see .NET/x"}`:                                    false,
		`{"text":"see ~5/x"}`:                                      false,
		`{"text":"see .env"}`:                                      false,
		`{"text":"see .."}`:                                        false,
		`{"text":"/"}`:                                             false,
		`{"text":"ls /"}`:                                          false,
		`{"text":"rm -rf / x"}`:                                    false,
		`{"text":"find / -delete"}`:                                false,
		`{"text":"// x"}`:                                          false,
		`{"text":"cat </etc/passwd>x"}`:                            false,
		`{"text":"read /etc"}`:                                     false,
		`{"filename":"docs/a b.md"}`:                               true,
		`{"uri":"/src/docs"}`:                                      true,
		`{"uri":"https://example.com/a/b?c=/d"}`:                   true,
		`{"text":"see https://example.com/a."}`:                    true,
		`{"uri":"https://example.com/../../etc"}`:                  false,
		`{"uri":"file:///etc/passwd"}`:                             false,
		`{"filename":"/etc/passwd"}`:                               false,
		`{"filename":"~/.bashrc"}`:                                 false,
		`{"filename":"~root"}`:                                     false,
		`{"filename":"a/../../x"}`:                                 false,
		`{"filename":".git/hooks/x"}`:                              false,
		`{"filename":"docs/.env"}`:                                 false,
		`{"x":{"y":["a", {"z":"/home/me"}]}}`:                      false,
		`{"files":{"/home/me/.bashrc":"text"}}`:                    false,
		`{"options":"-o /etc/x"}`:                                  false,
		`{"options":"--out=/etc/x"}`:                               false,
		`{"options":"{\"path\":\"/etc/x\"}"}`:                      false,
		`{"options":"@/etc/x"}`:                                    false,
		`{"to":"host:/etc/x"}`:                                     false,
		`{"list":[` + strings.Repeat("0,", 3000) + `0], "x":"a"}`:  false,
	} {
		for _, wrapped := range []string{input, `{"message":"Use it?","_meta":{"tool_params":` + input + `}}`} {
			asked := &cli.ApprovalAsked{Tool: "x.put", Input: []byte(wrapped)}
			a := normalized(orchestrator.ApprovalRequest{Dir: "/src", Request: asked})
			if got := patternCovers("x.put", a); got != want {
				t.Errorf("%.100s is allowed by its name: %v", wrapped, got)
			}
		}
	}
	described := normalized(orchestrator.ApprovalRequest{Dir: "/src", Request: &cli.ApprovalAsked{
		Tool: "x.put", Input: []byte(`{"description":"like /bin/put"}`),
		Fields: []cli.Field{{Name: "description", Value: "like /bin/put", Weight: cli.LabelField}},
	}})
	web := normalized(orchestrator.ApprovalRequest{Agent: "claude", Dir: "/src", Request: &cli.ApprovalAsked{
		Tool: "WebSearch", Input: []byte(`{"query":"what is /etc/hosts?"}`),
	}})
	if !patternCovers("x.put", described) || !patternCovers("WebSearch", web) {
		t.Error("a description or a search counts as a path")
	}
}

// A slash is a path unless white space and words of prose surround it.
func TestAttackASlashInAList(t *testing.T) {
	for _, input := range []string{`{"paths":"src,/,docs"}`, `{"path":"a:/:b"}`, `{"args":"TOKEN / ."}`} {
		a := normalized(orchestrator.ApprovalRequest{Dir: "/src", Request: &cli.ApprovalAsked{
			Tool: "x.put", Input: []byte(input),
		}})
		if patternCovers("x.put", a) {
			t.Errorf("%s is allowed by the name of its tool", input)
		}
	}
}

// An approval of a version that stored no effects can be allowed once and no rule covers it, until its agent asks again.
func TestARequestWithoutItsEffectMatchesNoRule(t *testing.T) {
	a := commandApproval("git status")
	session, lasting := offeredRules(a)
	digest := digestOf(a)
	a.Request.Effect = cli.Effect{}
	for _, r := range []orchestrator.Rule{session, lasting} {
		if covers(r, a) {
			t.Errorf("%s covers it", r.Text)
		}
	}
	if s, l := offeredRules(a); s.Kind != "" || l.Kind != "" || readsBelow(a) || patternCovers("Bash(git status)", a) || patternCovers("Bash", a) {
		t.Errorf("it is offered %+v and %+v, or allowed", s, l)
	}
	if digestOf(a) != digest || !a.Request.Allowable() {
		t.Error("it is another request, or cannot be allowed")
	}
}

// FuzzRule checks that no rule allows a command that a shell could read as more than its plain words.
func FuzzRule(f *testing.F) {
	for _, seed := range [][2]string{
		{"git status", "git status; id"}, {"git status a", "git status $(id)"}, {"go test ./x", "go test ./x\nid"},
		{"bash -c 'git status'", "bash -c 'git status' && id"}, {"ls a", "ls a*"}, {"rm -rf x", "rm -rf x y"}, {"ls", "ls\x00;id"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, seen, command string) {
		session, lasting := offeredRules(commandApproval(seen))
		a := commandApproval(command)
		effective := commandOf(a)
		if session.Kind == orchestrator.RuleCommand && covers(session, a) && effective != session.Value {
			t.Fatalf("%s covers %q", session.Text, command)
		}
		if !covers(lasting, a) {
			return
		}
		if effective == "" || !strings.HasPrefix(effective, lasting.Value) {
			t.Fatalf("%s covers %q", lasting.Text, command)
		}
		if strings.ContainsAny(effective, ";&|`$()<>{}[]*?!#~\\'\"\n\r\t\x00") {
			t.Fatalf("%s covers %q, which has a sign for the shell", lasting.Text, command)
		}
		rest := strings.TrimPrefix(effective, lasting.Value)
		if rest != "" && (lasting.Kind != orchestrator.RulePrefix || rest[0] != ' ' || strings.Contains(rest, " -") || strings.Contains(rest, " /") || strings.Contains(rest, "..")) {
			t.Fatalf("%s covers %q, which goes further", lasting.Text, command)
		}
	})
}
