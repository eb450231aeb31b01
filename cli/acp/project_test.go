package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/rpc"
)

func TestWrongProjects(t *testing.T) {
	for want, p := range map[string]Project{
		"":               {Files: []string{".x/", "x.json", ".x/y.json"}, Meta: `{"a":1}`, Args: []string{"-x"}},
		"names relative": {Files: []string{"/etc/x"}},
		"relative to":    {Files: []string{"a/../../x"}},
		"a directory":    {Files: []string{""}},
		"project.files":  {Files: []string{`a\b`}},
		"no JSON object": {Files: []string{".x/"}, Meta: `["a"]`},
		"JSON object":    {Files: []string{".x/"}, Meta: `null`},
		"needs files":    {Env: map[string]string{"A": "1"}},
	} {
		if err := p.check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", p, err, want)
		}
	}
}

// projectIn returns a directory whose parent has a file of settings, and both paths.
func projectIn(t *testing.T) (dir, file string) {
	t.Helper()
	above := t.TempDir()
	dir, file = filepath.Join(above, "project"), filepath.Join(above, ".sim", "x.json")
	for _, d := range []string{dir, filepath.Dir(file)} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

// What excludes the settings of a project is passed to the process and to the session, unless a user has allowed them.
// Settings that were just allowed need another process.
func TestWhatExcludesTheSettingsOfAProject(t *testing.T) {
	o := Options{
		ProviderOptions: cli.ProviderOptions{Env: func() []string { return nil }},
		Holds:           map[cli.PermissionMode]Holding{cli.Ask: {Env: map[string]string{"OFF": "1", "ASK": "1"}}},
		Project: Project{
			Files: []string{".sim/"}, Env: map[string]string{"OFF": "1"}, Args: []string{"--off"},
			Meta: `{"o":{"dirs":["{dir}","/x"],"n":1}}`,
		},
	}
	keys := map[string]bool{}
	for _, c := range []struct {
		project cli.ProjectSettings
		mode    cli.PermissionMode
		want    string
	}{
		{cli.WithoutProject, cli.Ask, `[--off] 1 1 {"o":{"dirs":["/w","/x"],"n":1}}`},
		{cli.WithoutProject, cli.Bypass, `[--off] 1  {"o":{"dirs":["/w","/x"],"n":1}}`},
		{cli.EmptyProject, cli.Ask, `[] 1 1 {"o":{"dirs":["/w","/x"],"n":1}}`},
		{cli.EmptyProject, cli.Bypass, `[]   {"o":{"dirs":["/w","/x"],"n":1}}`},
		{cli.WithProject, cli.Ask, `[]  1 null`},
		{cli.WithProject, cli.Bypass, `[]   null`},
	} {
		req := cli.Request{Dir: "/w", Project: c.project, Permission: c.mode}
		meta, err := json.Marshal(o.meta(req))
		if err != nil {
			t.Fatal(err)
		}
		env := o.env(req)
		got := fmt.Sprintf("%v %s %s %s", o.argv(req), cli.Variable(env, "OFF"), cli.Variable(env, "ASK"), meta)
		if got != c.want {
			t.Errorf("%q in %s: %s, want %s", c.project, c.mode, got, c.want)
		}
		keys[o.key(req)] = true
	}
	if len(keys) != 6 {
		t.Errorf("there are %d kinds of processes", len(keys))
	}
}

// An agent with nothing that excludes the settings runs no turn and answers no question in a project that has some. New
// settings end its session.
func TestSettingsOfAProjectThatNothingExcludes(t *testing.T) {
	dir, file := projectIn(t)
	provider, p := play(t, func(o *Options) { o.Project = Project{Files: []string{".sim/"}} })
	if got := provider.ProjectFiles(); !slices.Equal(got, []string{".sim/"}) {
		t.Errorf("it reads %q", got)
	}
	req := wish(t, "hi")
	req.Dir = dir
	for _, settings := range []cli.ProjectSettings{cli.WithoutProject, cli.EmptyProject} {
		req.Project = settings
		_, err := provider.Open(t.Context(), cli.Live, req)
		if f := cli.AsFailure(testAgent, err); err == nil || f.Kind != cli.NotRun ||
			!strings.Contains(f.Error(), "../.sim/x.json") ||
			!strings.Contains(f.Error(), "for a consultation, a summary or a job, choose another agent") {
			t.Errorf("%q: %v", settings, err)
		}
	}
	if _, err := provider.StoredSessions(t.Context(), dir); err == nil || p.started > 0 {
		t.Errorf("its sessions are listed: %v, %d processes", err, p.started)
	}
	kept := filepath.Dir(file) + ".kept"
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	move(filepath.Dir(file), kept)
	s := open(t, provider, req)
	turn := begin(t, s, req)
	p.endTurn(p.hear(methodPrompt))
	if r := until[cli.Result](turn); r.Err != nil {
		t.Error(r.Err)
	}
	move(kept, filepath.Dir(file))
	req.Turn = "second"
	if r, _ := clitest.Play(t.Context(), s, req); kindOfResult(r) != cli.NotRun {
		t.Errorf("with new settings: %+v", r)
	}
	req.Project, req.Turn = cli.WithProject, "third"
	s = open(t, provider, req)
	turn = begin(t, s, req)
	p.endTurn(p.hear(methodPrompt))
	if r := until[cli.Result](turn); r.Err != nil {
		t.Errorf("with allowed settings: %v", r.Err)
	}
}

// The catalogue also applies behind a wrapper, as far as it concerns sessions. Of an unknown agent, ductor takes the
// folders of its name.
func TestTheSettingsOfAProjectBehindAWrapper(t *testing.T) {
	dir, file := projectIn(t)
	for name, c := range map[string]struct {
		folder        string // in the project
		files         string // one of those that it reads
		refused, meta bool
	}{
		"codex-acp":        {".codex", ".codex/", true, false},
		"claude-agent-acp": {".claude/skills", ".mcp.json", false, true},
		"OpenCode":         {".opencode", "opencode.json", true, false},
		"another":          {".npx", ".npx/", true, false},
	} {
		provider, p := play(t, func(o *Options) { o.Path = "npx" })
		p.hello = fmt.Sprintf(`{"protocolVersion":1,"agentInfo":{"name":%q}}`, name)
		folder := filepath.Join(filepath.Dir(file), "..", c.folder)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "x.json"), []byte(`{}`), 0o600); err != nil {
			t.Fatal(err)
		}
		req := wish(t, "hi")
		req.Dir = dir
		s, err := provider.Open(context.Background(), cli.Live, req)
		if err == nil {
			t.Cleanup(func() { _ = s.Close(context.Background()) })
		}
		p.mu.Lock()
		made := slices.IndexFunc(p.sent, func(m rpc.Message) bool { return m.Method == methodNew })
		meta := made >= 0 && strings.Contains(string(p.sent[max(made, 0)].Params), `"additionalDirectories":["`+dir)
		p.mu.Unlock()
		if (err != nil) != c.refused || meta != c.meta || !slices.Contains(provider.ProjectFiles(), c.files) {
			t.Errorf("%s: %v, its session is told: %v, it reads %q", name, err, meta, provider.ProjectFiles())
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
}

// Before ductor knows the program behind a wrapper, users are asked about the settings of every agent that it can be.
// If the program turns out to read other settings than users saw, it gets no session before they were asked again.
func TestOnlySettingsThatUsersSawAreUsedBehindAWrapper(t *testing.T) {
	provider, p := play(t, func(o *Options) { o.Path = "npx" })
	for _, e := range append(Catalogue(), Entry{Project: Project{Files: []string{".npx/"}}}) {
		for _, file := range e.Project.Files {
			if !slices.Contains(provider.ProjectFiles(), file) {
				t.Errorf("%s of %s is not shown", file, e.Name)
			}
		}
	}
	sessions := func() (n int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, m := range p.sent {
			if m.Method == methodNew {
				n++
			}
		}
		return n
	}
	refused := func(what string, err error) {
		t.Helper()
		f := cli.AsFailure(testAgent, err)
		if err == nil || f.Kind != cli.NotRun || !strings.Contains(f.Error(), "send your message again") {
			t.Errorf("%s: %v", what, err)
		}
	}
	request := func(turn cli.TurnID) cli.Request {
		return cli.Request{Dir: t.TempDir(), Turn: turn, Prompt: "hi", Attended: true, Project: cli.WithProject}
	}
	play := func(s cli.Session, req cli.Request) {
		t.Helper()
		turn := begin(t, s, req)
		p.endTurn(p.hear(methodPrompt))
		if r := until[cli.Result](turn); r.Err != nil {
			t.Error(r.Err)
		}
	}
	p.hello = `{"protocolVersion":1,"agentInfo":{"name":"another"}}`
	first, second := request("first"), request("second")
	kept := open(t, provider, first)
	play(kept, first)

	p.hello = `{"protocolVersion":1,"agentInfo":{"name":"codex-acp"}}`
	_, err := provider.Open(t.Context(), cli.Live, second)
	if refused("another program", err); sessions() != 1 {
		t.Errorf("%d sessions were opened", sessions())
	}
	first.Turn = "third"
	r, _ := clitest.Play(t.Context(), kept, first)
	refused("a session of the first program", r.Err)
	if files := provider.ProjectFiles(); !slices.Contains(files, ".npx/") {
		t.Errorf("it asks about %q before the session of the first program goes on", files)
	}
	_, err = provider.Open(t.Context(), cli.Live, request("fourth"))
	refused("another program again", err)
	if files := provider.ProjectFiles(); !slices.Equal(files, []string{".codex/"}) {
		t.Fatalf("after it was refused it reads %q", files)
	}
	second.Turn = "fifth"
	play(open(t, provider, second), second)
}
