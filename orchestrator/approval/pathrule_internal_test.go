package approval

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"ductor/cli"
	"ductor/internal/rooted"
	"ductor/orchestrator"
)

func reading(tool, file string) cli.ApprovalAsked {
	input, err := json.Marshal(map[string]any{"file_path": file, "limit": 10})
	if err != nil {
		panic(err)
	}
	return cli.ApprovalAsked{Tool: tool, Title: file, Input: input}
}

// An entry with a path lets an agent read the files that it names, and no others, however a request writes their names.
func TestAllowedPaths(t *testing.T) {
	dir := linkedProject(t)
	more := reading("Read", "src/a.go")
	more.Input = []byte(`{"file_path":"src/a.go","command":"id"}`)
	twice := reading("Read", "src/a.go")
	twice.Input = []byte(`{"file_path":"/etc/passwd","file_path":"src/a.go"}`)
	viewed := cli.ApprovalAsked{Tool: "view", Title: "src/a.go", Effect: cli.Effect{Read: "src/a.go"}}
	checkAllowedPaths(t, dir, []allowedCase{
		{"Read(./src/**)", "claude", reading("Read", dir+"/src/a.go"), true},
		{"Read(src/**)", "claude", reading("Read", "src/deep/a.go"), true},
		{"Read(./src/*.go)", "claude", reading("Read", "src/a.go"), true},
		{"Read(./**/*.go)", "claude", reading("Read", "src/deep/a.go"), true},
		{"Read(./.env)", "claude", reading("Read", ".env"), true},
		{"Read(./.github/**)", "claude", reading("Read", ".github/ci.yml"), true},
		{"read(./src/**)", "copilot", viewed, true},
		{"Read(./src/**)", "claude", reading("Read", "src/near"), true},

		{"Read(./src/**)", "claude", reading("Read", "srcs/a.go"), false},
		{"Read(./src/**)", "claude", reading("Read", "docs/a.md"), false},
		{"Read(./src/*.go)", "claude", reading("Read", "src/deep/a.go"), false},
		{"Read(./src/**)", "claude", reading("Read", "src/../.env"), false},
		{"Read(./src/**)", "claude", reading("Read", "src/out/../x"), false},
		{"Read(./src/**)", "claude", reading("Read", dir+"/src/../docs/a.md"), false},
		{"Read(./**)", "claude", reading("Read", ".env"), false},
		{"Read(./**)", "claude", reading("Read", "src/id_rsa"), false},
		{"Read(./**)", "claude", reading("Read", "/etc/passwd"), false},
		{"Read(./**)", "claude", reading("Read", "~/x"), false},
		{"Read(./**)", "claude", reading("Read", ""), false},
		{"Read(./.*)", "claude", reading("Read", ".env"), false},
		{"Read(./src/**)", "claude", reading("Read", "src/out/passwd"), false},
		{"Read(./src/**)", "claude", reading("Read", "src/hidden"), false},
		{"Read(./src/**)", "claude", reading("Read", "src/docs/a.md"), false},
		{"Read(./src/**)", "claude", more, false},
		{"Read(./src/**)", "claude", twice, false},
		{"Read(./src/**)", "claude", reading("Grep", "src/a.go"), false},
		{"Read(./src/**)", "claude", edit("Edit", "src/a.go", cli.FileUpdated), false},
		{"Read(./src/**)", "copilot", viewed, false},
		{"Read(/etc/**)", "claude", reading("Read", "/etc/passwd"), false},
		{"Read(//etc/**)", "claude", reading("Read", "/etc/passwd"), false},
		{"Read(./../**)", "claude", reading("Read", "../x"), false},
		{"Read(*.go)", "claude", reading("Read", "a.go"), false},
	})
}

// An entry with a path lets an agent change the files that it names.
func TestAllowedPathsOfEdits(t *testing.T) {
	dir := linkedProject(t)
	const updated = cli.FileUpdated
	both := edit("Edit", "src/a.go", updated)
	both.Changes = append(both.Changes, edit("Edit", "docs/a.md", updated).Changes...)
	checkAllowedPaths(t, dir, []allowedCase{
		{"Edit(./src/**)", "claude", edit("Edit", "src/a.go", updated), true},
		{"Edit(./src/**)", "claude", edit("Write", dir+"/src/a.go", cli.FileAdded), true},
		{"Write(./src/**)", "claude", edit("Write", "src/a.go", cli.FileAdded), true},
		{"edit(./src/**)", "codex", edit("patch", "src/a.go", updated), true},
		{"Write(./src/**)", "claude", edit("Edit", "src/a.go", updated), false},
		{"Edit(./src/**)", "codex", edit("patch", "src/a.go", updated), false},
		{"Edit(./src/**)", "claude", both, false},
		{"Edit(./src/**)", "claude", edit("Edit", "docs/a.md", updated), false},
		{"Edit(./src/**)", "claude", edit("Edit", "src/../docs/a.md", updated), false},
		{"Edit(./src/**)", "claude", edit("Edit", "src/docs/a.md", updated), false},
		{"Edit(./src/**)", "claude", edit("Edit", "src/a.go", cli.FileDeleted), false},
		{"Edit(./.github/**)", "claude", edit("Edit", ".github/ci.yml", updated), false},
		{"Edit(./src/**)", "claude", reading("Read", "src/a.go"), false},
	})
}

// linkedProject creates a directory with links to files inside and outside of it.
func linkedProject(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"src/deep", ".github", "docs"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"src/out": "/etc", "src/hidden": "../.env", "src/docs": "../docs", "src/near": "deep/a.go",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// checkAllowedPaths is like checkAllowed, and also resolves the links in the requests.
func checkAllowedPaths(t *testing.T, dir string, cases []allowedCase) {
	t.Helper()
	for _, c := range cases {
		r := &Requests{turn: RunningTurn{Allowed: []string{c.entry}}}
		a := orchestrator.ApprovalRequest{Agent: c.agent, Dir: dir, Request: &c.asked}
		named := pathsOf(a)
		real := rooted.RealPaths(append([]string{dir}, named...))
		a.Links = linksOf(dir, named, real[0], real[1:])
		if got := canAutoApprove(a) && r.allowedTool(a) != ""; got != c.want {
			t.Errorf("%s %q of %s by %s: %v", c.asked.Tool, c.asked.Title, c.agent, c.entry, got)
		}
	}
}

// An entry that can never let anything through has a correction, which is no such entry.
func TestEntriesThatLetNothingThrough(t *testing.T) {
	const onlyCommand = `write one command of plain words, such as "Bash(git log *)", with at most one star, at the end`
	const onlyPath = `write a path below the agent's folder, such as "Read(./src/**)", or "Read" for every file`
	const onlyEdit = `write a path below the agent's folder, such as "Edit(./src/**)", ` +
		`or "Edit" for every file below the folder that isn't hidden`
	for entry, want := range map[string]string{
		"shell": "", "Bash": "", "Bash(npm:*)": "", "Bash(git log *)": "", "Bash(npm run test:*)": "", "mcp:github": "",
		"Read(./src/**)": "", "Edit(docs/**)": "", "edit(./docs/**)": "", "WebFetch(domain:go.dev)": "",
		"shell(git push)":               "",
		"run_shell_command(git status)": "", "mcp__github__new_issue": "", "SlashCommand(/fix)": "",
		"execute(make)": "",

		"Bash(*)":                  `write "Bash"`,
		"Bash(:*)":                 `write "Bash"`,
		"Bash(npm run test*)":      `write "Bash(npm run test *)"`,
		"Bash(git * main)":         onlyCommand,
		"Bash(go vet && go build)": onlyCommand,
		"Read(~/.zshrc)":           onlyPath,
		"Read(//etc/**)":           onlyPath,
		"Read(*.go)":               onlyPath,
		"Edit(/src/**)":            onlyEdit,
		"read_file(./src/**)":      `write "read_file"`,
		"Glob(./src/**)":           `write "Glob"`,
		"Agent(Explore)":           `write "Agent"`,
		"web(go.dev)":              `write "web"`,
		"mcp__github":              `write "mcp:github"`,
		"mcp__github__*":           `write "mcp:github"`,
		"ExitPlanMode":             "remove it: plans and questions always come to you",
	} {
		if got := InsteadOf(entry); got != want {
			t.Errorf("%s: %q, want %q", entry, got, want)
		}
	}
}
