package cli

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree creates files below a new directory. A text that begins with "-> " creates a link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write := func() error { return os.WriteFile(path, []byte(text), 0o600) }
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			write = func() error { return os.Symlink(target, path) }
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func sumOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

func TestWhatAProjectSets(t *testing.T) {
	files := []string{".mcp.json", ".agent/hooks/", ".agent/roles/", ".env", ".agent/config.toml"}
	for _, tt := range []struct {
		name    string
		tree    map[string]string
		dir     string
		want    []string
		missing string
	}{
		{name: "nothing", tree: map[string]string{"go.mod": "module x"}},
		{name: "every value of JSON", tree: map[string]string{".mcp.json": `{"servers": {"x": {"command": "sh", "args": ["-c", "make"], "on": true}}}`},
			want: []string{".mcp.json: servers.x.command=sh", ".mcp.json: servers.x.args[0]=-c", ".mcp.json: servers.x.args[1]=make", ".mcp.json: servers.x.on=true"}},
		{name: "JSON with comments, whole", tree: map[string]string{".mcp.json": "{} // and more"}, want: []string{".mcp.json={} // and more"}},
		{name: "TOML, whole", tree: map[string]string{".agent/config.toml": "[a]\nb = 1"}, want: []string{".agent/config.toml=[a]\nb = 1"}},
		{name: "all files of a directory, however deep", tree: map[string]string{".agent/hooks/a.json": `{"run": "a"}`, ".agent/hooks/x/y/b.json": `{"run": "b"}`, ".agent/hooks/c.sh": "exit"},
			want: []string{".agent/hooks/a.json: run=a", ".agent/hooks/c.sh=4 bytes, sha256 " + sumOf("exit"), ".agent/hooks/x/y/b.json: run=b"}},
		{name: "front matter and commands", tree: map[string]string{
			".agent/roles/none.md":   "allowed-tools: of no front matter",
			".agent/roles/wide.md":   "---\nname: wide\nallowed-tools: Bash(*)\n---\ntext\nnow !`make` it\n```!\nrm x\n```\nend",
			".agent/roles/x/code.md": "```sh\nls\n```",
		}, want: []string{
			".agent/roles/none.md=33 bytes, sha256 " + sumOf("allowed-tools: of no front matter"),
			".agent/roles/wide.md: allowed-tools=Bash(*)", ".agent/roles/wide.md: name=wide", ".agent/roles/wide.md: runs=make",
			".agent/roles/wide.md: runs=rm x",
			".agent/roles/wide.md=79 bytes, sha256 " + sumOf("---\nname: wide\nallowed-tools: Bash(*)\n---\ntext\nnow !`make` it\n```!\nrm x\n```\nend"),
			".agent/roles/x/code.md=12 bytes, sha256 " + sumOf("```sh\nls\n```"),
		}},
		{name: "front matter with escapes", tree: map[string]string{".agent/roles/a.md": "---\n\"\\x68ooks\": {Stop: make}\n---\n"},
			want: []string{".agent/roles/a.md: hooks.Stop=make", ".agent/roles/a.md=33 bytes, sha256 " + sumOf("---\n\"\\x68ooks\": {Stop: make}\n---\n")}},
		{name: "front matter of two documents, whole", tree: map[string]string{".agent/roles/a.md": "---\na: 1\n...\nhooks: x\n---\n"},
			want: []string{".agent/roles/a.md=\na: 1\n...\nhooks: x", ".agent/roles/a.md=26 bytes, sha256 " + sumOf("---\na: 1\n...\nhooks: x\n---\n")}},
		{name: "variables of agents", tree: map[string]string{".env": "DB_URL=x\nexport GOOGLE_GEMINI_BASE_URL = http://evil\n# NODE_X=1\nhttps_proxy=y\rexport\tBASH_ENV: z\n\ufeffNODE_OPTIONS=w\nOPENAI_BASE_URL=v\nQWEN_HOME=u"},
			want: []string{".env: GOOGLE_GEMINI_BASE_URL=http://evil", ".env: https_proxy=y", ".env: BASH_ENV=z", ".env: NODE_OPTIONS=w",
				".env: OPENAI_BASE_URL=v", ".env: QWEN_HOME=u", ".env: other variables=DB_URL",
				".env=144 bytes, sha256 " + sumOf("DB_URL=x\nexport GOOGLE_GEMINI_BASE_URL = http://evil\n# NODE_X=1\n"+
					"https_proxy=y\rexport\tBASH_ENV: z\n\ufeffNODE_OPTIONS=w\nOPENAI_BASE_URL=v\nQWEN_HOME=u")}},
		{name: "variables that are not known",
			tree: map[string]string{".env": "OPENSSL_CONF=evil.cnf\nMAVEN_OPTS=-javaagent:x"},
			want: []string{".env: other variables=OPENSSL_CONF, MAVEN_OPTS",
				".env=45 bytes, sha256 " + sumOf("OPENSSL_CONF=evil.cnf\nMAVEN_OPTS=-javaagent:x")}},
		{name: "no variables", tree: map[string]string{".env": "\n# OPENSSL_CONF=x\n"}},
		{name: "above, and above the repository", dir: "top/repo/a/b",
			tree: map[string]string{"top/repo/.git/HEAD": "x", "top/repo/a/b/x": "", "top/repo/.mcp.json": `{"x": "repo"}`, "top/.mcp.json": `{"x": "above it"}`},
			want: []string{"../../.mcp.json: x=repo", "../../../.mcp.json: x=above it"}},
		{name: "above where there is no repository", dir: "a", tree: map[string]string{"a/x": "", ".mcp.json": `{"x": 1}`}, want: []string{"../.mcp.json: x=1"}},
		{name: "above where a link to the directory leads", dir: "link", tree: map[string]string{"link": "-> there/a", "there/a/x": "", "there/.mcp.json": `{"x": 1}`},
			want: []string{"../.mcp.json: x=1"}},
		{name: "the checkout that a worktree is of", dir: "trees/fix/a", tree: map[string]string{
			"trees/fix/a/x": "", "trees/fix/.git": "gitdir: ../../main/.git/worktrees/fix\n", "main/.git/worktrees/fix/commondir": "../..\n", "main/.mcp.json": `{"x": 1}`,
			"main/.git/worktrees/fix/gitdir": "../../../../trees/fix/.git\n",
		}, want: []string{"../../../main/.mcp.json: x=1"}},
		{name: "a link that stays", tree: map[string]string{".mcp.json": "-> other.json", "other.json": `{"x": 1}`}, want: []string{".mcp.json: x=1"}},
		{name: "a link that leads out", tree: map[string]string{".mcp.json": "-> /etc/hostname"}, want: []string{".mcp.json=it cannot be read"}, missing: ".mcp.json"},
		{name: "a link to nothing yet", tree: map[string]string{".mcp.json": "-> later.json"}, missing: ".mcp.json"},
		{name: "a directory that is a link out", tree: map[string]string{".agent/hooks": "-> /etc"}, missing: ".agent/hooks"},
		{name: "a directory that is a link to nothing yet", tree: map[string]string{".agent/hooks": "-> later"}, missing: ".agent/hooks"},
		{name: "a link to a directory within", tree: map[string]string{".agent/hooks/x": "-> ../../y", "y/a.json": "{}"}, want: []string{".agent/hooks/x=it cannot be read"}, missing: ".agent/hooks/x"},
		{name: "a directory", tree: map[string]string{".mcp.json/x": ""}, want: []string{".mcp.json=it cannot be read"}, missing: ".mcp.json"},
		{name: "a file that is too long", tree: map[string]string{".mcp.json": strings.Repeat(" ", projectFileBytes+1)}, want: []string{".mcp.json=it cannot be read"}, missing: ".mcp.json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fields, missing := ReadProject(filepath.Join(tree(t, tt.tree), tt.dir), "/home/none", files)
			var got []string
			for _, f := range fields {
				if f.Weight != LabelField { // users see it
					got = append(got, f.Name+"="+f.Value)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || missing != tt.missing {
				t.Errorf("missing %q, want %q; %s", missing, tt.missing, diff)
			}
		})
	}
}

// ReadProject shows the settings of another repository only if this repository names the directory in return. Users
// cannot allow settings if Git or an agent could read another path in a file of Git than ductor.
func TestAGitFileThatLeadsElsewhere(t *testing.T) {
	const hidden, worktree = "the settings to which .git leads", "other/.git/worktrees/x/"
	breaks := strings.Repeat("\n", 70<<10)
	for _, tt := range []struct {
		name    string
		tree    map[string]string // in addition to the settings of the repository other
		want    []Field
		missing string
	}{
		{"a repository", map[string]string{"dir/.git": "gitdir: ../other/.git"}, nil, hidden},
		{"a repository without settings", map[string]string{"dir/.git": "gitdir: ../third/.git"}, nil, ""},
		{"a worktree in another directory", map[string]string{
			"dir/.git":             "gitdir: ../other/.git/worktrees/x",
			worktree + "commondir": "../..", worktree + "gitdir": "../../../../x/.git",
		}, nil, hidden},
		{"a link to the file .git of a worktree", map[string]string{
			"dir/.git": "-> ../x/.git", "x/.git": "gitdir: ../other/.git/worktrees/x",
			worktree + "commondir": "../..", worktree + "gitdir": "../../../../x/.git",
		}, nil, hidden},
		{"a worktree that the project made up", map[string]string{
			"dir/.git":                   "gitdir: git/worktrees/x",
			"dir/git/worktrees/x/gitdir": "../../../.git", "dir/git/worktrees/x/commondir": "../../../../other/.git",
		}, nil, hidden},
		{"a link to the repository of a submodule", map[string]string{
			"dir/.git": "gitdir: link", "dir/link": "-> ../other/.git",
			"other/.git/config": "[core]\n\tworktree = ../../x\n",
		}, nil, hidden},
		{"the repository of a submodule", map[string]string{
			"dir/.git":                      "gitdir: ../other/.git/modules/dir",
			"other/.git/modules/dir/config": "[core]\n\tworktree = ../../../../dir\n[x]\n\tworktree = ..\n",
		}, []Field{{Name: "../other/.mcp.json: x", Value: "1"}}, ""},
		{"line breaks", map[string]string{"dir/.git": "gitdir: ../other/.git\r\n\n"}, nil, hidden},
		{"many line breaks", map[string]string{"dir/.git": "gitdir: ../other/.git" + breaks}, nil, ".git"},
		{"many line breaks above", map[string]string{
			"dir/.git/HEAD": "x", ".git": "gitdir: other/.git" + breaks,
		}, nil, "../.git"},
		{"many line breaks in commondir", map[string]string{
			"dir/.git": "gitdir: g", "dir/g/config": "[core]\n\tworktree = ..\n",
			"dir/g/commondir": "../../other/.git" + breaks,
		}, nil, ".git"},
		{"many line breaks in the config of a submodule", map[string]string{
			"dir/.git":                      "gitdir: ../other/.git/modules/dir",
			"other/.git/modules/dir/config": "[core]\n\tworktree = ../../../../dir\n" + breaks,
		}, nil, ".git"},
		{"many line breaks in gitdir", map[string]string{
			"dir/.git":             "gitdir: ../other/.git/worktrees/x",
			worktree + "commondir": "../..", worktree + "gitdir": "../../../../dir/.git" + breaks,
		}, nil, ".git"},
		{"a space after the path", map[string]string{
			"dir/.git": "gitdir: g \n", "dir/g/config": "[core]\n\tworktree = ..\n",
			"dir/g /commondir": "../../other/.git",
		}, nil, ".git"},
		{"two spaces before the path", map[string]string{
			"dir/.git": "gitdir:  g", "dir/ g": "-> ../other/.git",
		}, nil, ".git"},
		{"a space before a path in commondir", map[string]string{
			"dir/.git": "gitdir: g", "dir/g/commondir": " x", "dir/g/ x": "-> ../../other/.git",
		}, nil, ".git"},
		{"no space before the path", map[string]string{"dir/.git": "gitdir:../other/.git"}, nil, ".git"},
		{"a line break before the path", map[string]string{"dir/.git": "\ngitdir: ../other/.git"}, nil, ".git"},
		{"text after a NUL", map[string]string{"dir/.git": "gitdir: ../other/.git\x00"}, nil, ".git"},
		{"a link before ..", map[string]string{
			"dir/.git": "gitdir: link/../.git", "dir/link": "-> ../other/x", "other/x/a": "", "other/.git/HEAD": "x",
		}, nil, ".git"},
		{"a commondir in a repository", map[string]string{
			"dir/.git/HEAD": "x", "dir/.git/commondir": "../../other/.git",
		}, nil, hidden},
		{"a large commondir in a repository", map[string]string{
			"dir/.git/HEAD": "x", "dir/.git/commondir": "../../other/.git" + breaks,
		}, nil, ".git"},
		{"a file .git of another program", map[string]string{"dir/.git": "x"}, nil, ""},
		{"a link .git to nothing", map[string]string{"dir/.git": "-> later"}, nil, ""},
	} {
		tt.tree["other/.mcp.json"] = `{"x": 1}`
		tt.tree["dir/x"] = ""
		fields, missing := ReadProject(filepath.Join(tree(t, tt.tree), "dir"), "/home/none", []string{".mcp.json"})
		if diff := cmp.Diff(tt.want, fields); diff != "" || missing != tt.missing {
			t.Errorf("%s: missing %q, want %q; %s", tt.name, missing, tt.missing, diff)
		}
	}
}

// A repository cannot hide commands from its card by writing them in a form that only the agent understands.
func TestAttackCommandsThatACardDoesNotList(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string // all of the text for nil
	}{
		{"no `command` and no ! `command`, only ```code```", []string{}},
		{"Now: !`git status` and\n```!\nrm -rf build\nls\n```\nnot `this`", []string{"git status", "rm -rf build\nls"}},
		{"Status: !`git status\nsh .cache/x`", []string{"git status\nsh .cache/x"}},
		{"Look ```!\nsh .cache/x\n```\nend", []string{"sh .cache/x"}},
		{"```! sh .cache/x ```\nls\n", []string{"sh .cache/x"}},
		{"Of Qwen: !{sh -c '{ a; }; b'} end", []string{"sh -c '{ a; }; b'"}},
		{"---\nx: !`in front matter`\n---\n", []string{"in front matter"}},
		{"!`git status\n", nil},
		{"```!\nls\n", nil},
		{"!{ls", nil},
		{"!``sh x``", nil},
		{"!`a ```! sh x ``` `", nil},
		{"!`a```!\nsh x\n```", nil},
		{"```!`sh x` ```", nil},
		{"```!\nls\n!`sh x`\n```", nil},
		{"!{a !`sh x`}", nil},
	} {
		if tt.want == nil {
			tt.want = []string{tt.text}
		}
		fields, missing := ReadProject(tree(t, map[string]string{"x.MD": tt.text}), "/home/none", []string{"x.MD"})
		got := []string{}
		for _, f := range fields {
			if f.Name == "x.MD: runs" {
				got = append(got, f.Value)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || missing != "" {
			t.Errorf("%q: missing %q; %s", tt.text, missing, diff)
		}
	}
}

// Claude runs no commands in braces, so its skills do not show them as commands.
func TestCommandsOfClaude(t *testing.T) {
	const text = "Write html!{<p>} in Rust, see !`git status`."
	if diff := cmp.Diff([]string{"git status"}, ClaudeCommands(text)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"<p>", "git status"}, ShellCommands(text)); diff != "" {
		t.Error(diff)
	}
}

// A repository cannot hide settings from its card by the name of their file, or by bytes that an agent skips. Files
// that take effect only if a setting names them have no more than a hash, and so have files with secrets.
func TestAttackSettingsThatACardHashes(t *testing.T) {
	const yaml, script, broken = "x:\n  command: evil # why", "#!/bin/sh\nevil", "x: evil # \xff"
	hash := func(text string) string { return fmt.Sprintf("%d bytes, sha256 %s", len(text), sumOf(text)) }
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"a.jsonc", "{} // why", []string{"a.jsonc={} // why"}},
		{"a.jsonc", `{"x": ["evil"]}`, []string{"a.jsonc: x[0]=evil"}},
		{"a.JSON", `{"x": ["evil"]}`, []string{"a.JSON: x[0]=evil"}},
		{"a.yaml", yaml, []string{"a.yaml=" + yaml}},
		{"a.yml", yaml, []string{"a.yml=" + yaml}},
		{"a.toml", yaml, []string{"a.toml=" + yaml}},
		{"a.rules", yaml, []string{"a.rules=" + yaml}},
		{"credentials.rules", yaml, []string{"credentials.rules=" + yaml}},
		{"a.md", "\n---\nhooks: x\n---\n", []string{"a.md: hooks=x", "a.md=" + hash("\n---\nhooks: x\n---\n")}},
		{"a.yaml", broken, []string{"a.yaml=x: evil # \ufffd", "a.yaml=" + hash(broken)}},
		{"credentials.json", `{"x": ["evil"]}`, []string{"credentials.json: x[0]=evil"}},
		{"a.sh", script, []string{"a.sh=" + hash(script)}},
		{"hook", script, []string{"hook=" + hash(script)}},
		{"a.PNG", broken, []string{"a.PNG=" + hash(broken)}},
		{"LICENSE.txt", yaml, []string{"LICENSE.txt=" + hash(yaml)}},
		{"a.svg", yaml, []string{"a.svg=" + hash(yaml)}},
		{"uv.lock", yaml, []string{"uv.lock=" + hash(yaml)}},
		{".env.local", yaml, []string{".env.local=" + hash(yaml)}},
		{".npmrc", yaml, []string{".npmrc=" + hash(yaml)}},
		{"key.pem", yaml, []string{"key.pem=" + hash(yaml)}},
		{"credentials.yaml", yaml, []string{"credentials.yaml=" + hash(yaml)}},
	} {
		dir := tree(t, map[string]string{".agent/" + tt.name: tt.text})
		fields, missing := ReadProject(dir, "/home/none", []string{".agent/"})
		var got []string
		for _, f := range fields {
			got = append(got, strings.TrimPrefix(f.Name, ".agent/")+"="+f.Value)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || missing != "" {
			t.Errorf("%s: missing %q; %s", tt.name, missing, diff)
		}
	}
	for name, want := range map[string]string{".kilocodemodes": yaml, "modes": yaml, "key.pem": hash(yaml)} {
		fields, missing := ReadProject(tree(t, map[string]string{name: yaml}), "/home/none", []string{name})
		if len(fields) != 1 || fields[0].Value != want || missing != "" {
			t.Errorf("a listed %s: %v, missing %q", name, fields, missing)
		}
	}
	long := strings.Repeat("x: evil\n", projectFileBytes/8+1)
	dir := tree(t, map[string]string{"a.yaml": long})
	if _, missing := ReadProject(dir, "/home/none", []string{"a.yaml"}); missing != "a.yaml" {
		t.Errorf("missing %q of a file that is too long", missing)
	}
}

// Skills bring licences and other long texts. These must not fill the card, because a card that is too long has no button
// to allow the project.
func TestManyPlainFilesFitIntoACard(t *testing.T) {
	files := map[string]string{}
	for i := range 40 {
		for _, name := range []string{"LICENSE.txt", "LICENSE", "a.html", "a.css", "a.csv", "docs/a.md"} {
			files[fmt.Sprintf(".claude/skills/s%d/%s", i, name)] = strings.Repeat("Some words of a licence. ", 500)
		}
	}
	fields, missing := ReadProject(tree(t, files), "/home/none", []string{".claude/skills/"})
	length := 0
	for _, f := range fields {
		length += len(f.Name) + len(f.Value)
	}
	if missing != "" || len(fields) != len(files) || length > 150*len(files) {
		t.Errorf("%d fields of %d files have %d bytes, missing %q", len(fields), len(files), length, missing)
	}
}

// Some agents join the names of a server and its tool: the tool "with" of ductor_work looks like ductor's work_with.
func TestServersNamedLikeOursInOtherFormats(t *testing.T) {
	for _, c := range []struct{ extension, text, server string }{
		{".jsonc", `{"mcp": {"ductor_work": {}}} // a comment`, "ductor_work"},
		{".json", `{"mcpServers": [{"name": "ductor-x"}]}`, "ductor-x"},
		{".toml", "[mcp_servers.ductor_x]\ncommand = \"x\"", "ductor_x"},
		{".toml", "[mcp_servers.x]\ncommand = \"/opt/ductor/x\"", ""},
		{".md", "---\n1: x\nmcpServers: {ductor_x: {}}\n---\n", "ductor_x"},
		{".md", "Call ductor_send_file to send a file.", ""},
		{".sh", "ductor-runner", ""},
	} {
		if got := serverLikeOwn([]byte(c.text), c.extension); got != c.server {
			t.Errorf("%s: %q in %s", c.extension, got, c.text)
		}
	}
}

func TestProjectServersNamedLikeOurs(t *testing.T) {
	for text, server := range map[string]string{
		`{"mcpServers": {"ductor_work": {"url": "x"}}} // a comment`:            "ductor_work",
		`{"mcpServers": {"x": 1, "\u0064uctor work": {}}}`:                      "ductor work",
		`{"mcp": [{"ductor__x": {"url": "x"}}]}`:                                "ductor__x",
		`{"mcpServers": {"ductor": {"url": "x"}, "ductors": {"url": "y"}}}`:     "",
		`{"tools": {"ductor_send_file": true}, "mcpServers": {"x": "ductor_"}}`: "",
	} {
		for name, text := range map[string]string{".mcp.json": text, "role.md": "---\n" + text + "\n---\n"} {
			if name == "role.md" && strings.Contains(text, "//") {
				continue // YAML has other comments
			}
			fields, missing := ReadProject(tree(t, map[string]string{name: text}), "/home/none", []string{name})
			warned := len(fields) > 0 && strings.HasPrefix(fields[0].Value, "rename the MCP server "+server+":")
			if warned != (server != "") || (missing == name) != (server != "") {
				t.Errorf("%s: %v, missing %q", text, fields, missing)
			}
		}
	}
}

func TestTheHomeDirectoryIsNoProject(t *testing.T) {
	home := tree(t, map[string]string{".mcp.json": `{"x": 1}`, ".git/HEAD": "x", "work/x": ""})
	files := []string{".mcp.json"}
	for _, dir := range []string{home, filepath.Join(home, "work")} {
		if fields, missing := ReadProject(dir, home, files); len(fields) > 0 || missing != "" {
			t.Errorf("%s sets %v, missing %q", dir, fields, missing)
		}
	}
}

// What changed in a .env file has names, but no values.
func TestWhatChangedInTheSettings(t *testing.T) {
	read := func(files map[string]string) []Field {
		fields, missing := ReadProject(tree(t, files), "/home/none", []string{".env", ".mcp.json"})
		if missing != "" {
			t.Fatalf("%s is missing", missing)
		}
		return fields
	}
	first := map[string]string{".env": "DB=secret\nNODE_OPTIONS=a\nOLD=1", ".mcp.json": `{"a": "1", "b": "2"}`}
	before := read(first)
	var unmarked []Field
	for _, f := range before {
		if f.Weight != LabelField {
			unmarked = append(unmarked, f)
		} else if strings.Contains(f.Value, "secret") {
			t.Errorf("the marks contain a value: %s", f.Value)
		}
	}
	for _, tt := range []struct {
		name   string
		before []Field
		now    map[string]string
		want   string
	}{
		{"nothing", before, first, ""},
		{"variables", before,
			map[string]string{".env": "DB=other\nNODE_OPTIONS=b\nLD_PRELOAD=x", ".mcp.json": first[".mcp.json"]},
			".env: DB, .env: NODE_OPTIONS, .env: LD_PRELOAD, .env: OLD"},
		{"a second value of one name", before,
			map[string]string{".env": first[".env"] + "\nDB=x", ".mcp.json": first[".mcp.json"]}, ".env: DB"},
		{"other settings", before, map[string]string{".env": first[".env"], ".mcp.json": `{"b": "3", "c": "4"}`},
			".mcp.json: b, .mcp.json: c, .mcp.json: a"},
		{"a new file", read(map[string]string{".mcp.json": "1"}),
			map[string]string{".env": "A=1", ".mcp.json": "1"}, ".env: A"},
		{"settings that an older version read", unmarked, map[string]string{".env": "A=1"}, ""},
	} {
		if got := strings.Join(SettingsChanges(tt.before, read(tt.now)), ", "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
