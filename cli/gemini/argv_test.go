package gemini

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ductor/cli"
)

func TestArgv(t *testing.T) {
	p, _ := scripted(t, nil)
	base := []string{"--prompt=", "--output-format=stream-json"}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		req  cli.Request
		want []string
	}{
		{"nothing said", cli.Request{}, []string{"--approval-mode=default"}},
		{"ask", cli.Request{Permission: cli.Ask}, []string{"--approval-mode=default"}},
		{"plan", cli.Request{Permission: cli.Plan}, []string{"--approval-mode=plan"}},
		{"accept-edits", cli.Request{Permission: cli.AcceptEdits}, []string{"--approval-mode=default"}},
		{"auto", cli.Request{Permission: cli.Auto}, []string{"--approval-mode=default"}},
		{"bypass", cli.Request{Permission: cli.Bypass}, []string{"--approval-mode=yolo"}},
		{"a prompt like a flag", cli.Request{Prompt: "--yolo"}, []string{"--approval-mode=default"}},
		{"model and directories", cli.Request{Model: "m", AddDirs: []string{full, t.TempDir(), "/not/there", full}},
			[]string{"--approval-mode=default", "--model=m", "--include-directories=" + full + "," + full}},
		{"tools", cli.Request{AllowedTools: []string{"x", "y"}}, []string{"--approval-mode=default", "--allowed-tools=x,y"}},
		{"resume", cli.Request{Resume: "id"}, []string{"--approval-mode=default", "--resume=id"}},
		{"more", cli.Request{ExtraArgs: []string{"--debug"}}, []string{"--approval-mode=default", "--debug"}},
	} {
		if got, err := p.argv(c.req); err != nil || !slices.Equal(got, append(slices.Clone(base), c.want...)) {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
	args, err := p.argv(cli.Request{Tools: cli.ToolList{Denied: []string{`web"fetch`, "mcp:github"}}})
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(args[len(args)-1], "--policy=")
	if files := p.ownFiles(append(args, "--policy=/of/the/owner")); !slices.Equal(files, []string{path}) {
		t.Errorf("files %q", files)
	}
	policy, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []string{
		`toolName = ["web\"fetch"]`, "decision = \"deny\"\npriority = 999\ntoolName = \"*\"\nmcpName = \"github\"",
	} {
		if !strings.Contains(string(policy), rule) {
			t.Errorf("the policy lacks %q: %q", rule, policy)
		}
	}
}

// The unsupported parts of a mode are reported.
func TestPermission(t *testing.T) {
	for _, mode := range cli.PermissionModes() {
		approval, cannot := approvalMode(mode)
		whole := mode == cli.Plan || mode == cli.Bypass
		if approval == "" || (cannot.IsZero()) != whole {
			t.Errorf("%s: %q, %q", mode, approval, cannot)
		}
	}
}

func TestPromptsAreText(t *testing.T) {
	for prompt, want := range map[string]string{
		"hi": "hi", "/memory": "\u2060" + "/memory", " $x": "\u2060" + " $x", "--yolo": "--yolo", "-": "-",
		"@a b@c": `\@a b\@c`,
	} {
		if got, err := onceInput(cli.Request{Prompt: prompt}, nil); string(got) != want || err != nil {
			t.Errorf("%q becomes %q", prompt, got)
		}
	}
}

func TestTrust(t *testing.T) {
	p := New(Options{ProviderOptions: cli.ProviderOptions{Env: func() []string { return []string{"GOOGLE_API_KEY=mine"} }}})
	for name, tt := range map[string]struct {
		req     cli.Request
		trusted bool
	}{
		"settings that nobody allowed": {cli.Request{Dir: "/a"}, false},
		"allowed settings":             {cli.Request{Dir: "/a", Project: cli.WithProject}, true},
		"no settings":                  {cli.Request{Dir: "/a", Project: cli.EmptyProject}, true},
		"no directory":                 {cli.Request{}, true},
	} {
		env := p.env(tt.req)
		if got := cli.Variable(env, "GEMINI_CLI_TRUST_WORKSPACE"); got != strconv.FormatBool(tt.trusted) {
			t.Errorf("%s: trusts %s", name, got)
		}
		// Without trust a .env file sets only variables that are missing.
		if kept := slices.Contains(env, "GEMINI_API_KEY="); kept == tt.trusted || !slices.Contains(env, "GOOGLE_API_KEY=mine") {
			t.Errorf("%s: the environment is %q", name, env)
		}
	}
}
