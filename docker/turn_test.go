package docker

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/claude"
	"ductor/cli/clitest"
	"ductor/cli/codex"
	"ductor/cli/gemini"
	"ductor/docker/dockertest"
	"ductor/internal/realagent"
)

// shareTemp puts a test's temporary files into a directory that the container of o sees at the same path.
func shareTemp(t testing.TB, o *Options) {
	t.Helper()
	shared, err := os.MkdirTemp("", "ductor-shared-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(shared) }) // at worst a leftover in the temporary directory
	t.Setenv("TMPDIR", shared)
	o.Projects = append(o.Projects, shared)
}

// The scripted Claude works in a container as on the host: it streams, resumes, runs tools, and ends when told.
func TestScriptedAgentInAContainer(t *testing.T) {
	o := testOptions(t, needEngine(t))
	shareTemp(t, &o)
	const adopts = "held by what every launcher is held to: the suite puts launchers of its own over the host"
	cannot := clitest.Cannot{}
	cannot.Leave(adopts, clitest.AdoptText, clitest.AdoptTool, clitest.AdoptEnded, clitest.AdoptUnsent,
		clitest.DetachThenAbort, clitest.AbortAway)
	cannot[clitest.AbortTool] = "its process IDs are the container's own; the launcher's conformance tests cover process trees"
	oneShot := maps.Clone(cannot)
	oneShot.Leave("as live", clitest.Thinking, clitest.FailingTool, clitest.LongLine, clitest.ModelError,
		clitest.SecondTurn,
		clitest.CrashInText, clitest.SilentExit, clitest.AbortDeaf, clitest.AbortBefore, clitest.CloseUnused)
	for mode, cannot := range map[cli.Mode]clitest.Cannot{cli.Live: cannot, cli.OneShot: oneShot} {
		t.Run(string(mode), func(t *testing.T) {
			clitest.Conformance(t, clitest.Harness{
				Mode: mode,
				New: func(t *testing.T) (cli.Provider, cli.Request) {
					o := o
					o.Engine = needEngine(t) // the suite checks for goroutines that a case leaks
					l := open(t, o)
					p := claude.New(claude.Options{
						ProviderOptions: cli.ProviderOptions{
							Launcher: l, Timing: cli.Timing{Grace: 500 * time.Millisecond}, AllowEnv: []string{"CLITEST_*", "DUCTOR_*"},
							ReadFile: func(string) ([]byte, error) { return nil, os.ErrNotExist },
						},
					})
					return p, cli.Request{Dir: t.TempDir(), Permission: cli.Bypass}
				},
				Script: clitest.Script{ErrorKind: cli.Refused}, Cannot: cannot,
			})
		})
	}
}

// modelAddress is the address of the simulated model inside a container.
const modelAddress = "127.0.0.1:8099"

// startModel runs the simulated model in a container until the test ends.
func startModel(t *testing.T, l *Launcher) {
	t.Helper()
	model, err := l.Start(t.Context(), cli.Command{Path: "model", Args: []string{modelAddress}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := model.Stop(t.Context(), 0); err != nil {
			t.Error(err)
		}
	})
}

// The real Codex in a container uses the simulated model beside it, writes a file through the mount and is resumed.
func TestRealCodexInAContainer(t *testing.T) {
	o := testOptions(t, needEngine(t))
	shareTemp(t, &o)
	real := realagent.Codex(t, "http://"+modelAddress)
	o.Mounts = append(o.Mounts, Mount{Source: filepath.Dir(real.Path), Target: "/opt/codex"})
	l := open(t, o)
	startModel(t, l)
	p := codex.New(codex.Options{
		ProviderOptions: cli.ProviderOptions{
			Launcher: l, Path: "/opt/codex/codex", Env: func() []string { return real.Environ() },
			AllowEnv: []string{"CODEX_*", "OPENAI_*"},
		},
	})
	ask := func(resume cli.AgentSessionID, prompt string) cli.Result {
		t.Helper()
		req := cli.Request{Dir: o.Projects[0], Permission: cli.Bypass, Prompt: prompt, Resume: resume,
			Turn: cli.TurnID(prompt)}
		session, err := p.Open(t.Context(), cli.OneShot, req)
		if err != nil {
			t.Fatal(err)
		}
		result, _ := clitest.Play(t.Context(), session, req)
		if err := session.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if result.Err != nil {
			t.Fatalf("%+v", *result.Err)
		}
		return result
	}
	one := ask("", `about the lighthouse [[tool "echo written >made.txt"]][[text "Hello from inside"]]`)
	if !strings.HasSuffix(one.Text, "Hello from inside") {
		t.Errorf("it answered %q", one.Text)
	}
	if raw, err := os.ReadFile(filepath.Join(o.Projects[0], "made.txt")); err != nil || string(raw) != "written\n" {
		t.Errorf("through the mount %q, %v", raw, err)
	}
	two := ask(one.AgentSessionID, `[[history]]`)
	if !strings.Contains(two.Text, "lighthouse") || two.AgentSessionID != one.AgentSessionID {
		t.Errorf("resumed it answered %q in %q after %q", two.Text, two.AgentSessionID, one.AgentSessionID)
	}
}

// The real Gemini in a container continues a session in new processes, within the minute in which it began and after
// another session has begun. Either would destroy the session if ductor did not look after its files.
func TestRealGeminiGoesOnInAContainer(t *testing.T) {
	realagent.LongOnly(t)
	o := testOptions(t, needEngine(t))
	real := realagent.Gemini(t, "http://"+modelAddress)
	program := filepath.Join(t.TempDir(), "gemini")
	dockertest.Write(t, program, "#!/bin/sh\nexec /opt/node "+resolved(t, real.Path)+" \"$@\"\n", 0o755)
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	modules := resolved(t, filepath.Join(filepath.Dir(real.Path), ".."))
	for source, target := range map[string]string{program: "/opt/gemini", resolved(t, node): "/opt/node",
		resolved(t, "/lib"): "/lib", resolved(t, "/lib64"): "/lib64", modules: modules} {
		o.Mounts = append(o.Mounts, Mount{Source: source, Target: target})
	}
	o.Seeds = []Seed{{From: filepath.Join(real.Home, ".gemini"), To: ".gemini"}}
	l := open(t, o)
	startModel(t, l)
	p := gemini.New(gemini.Options{
		ProviderOptions: cli.ProviderOptions{Launcher: l, Path: "/opt/gemini", Env: real.Environ},
		StateDir:        filepath.Join(t.TempDir(), "state"),
	})
	ask := func(resume cli.AgentSessionID, prompt, want string) cli.AgentSessionID {
		t.Helper()
		req := cli.Request{
			Dir: o.Projects[0], Project: cli.EmptyProject, Permission: cli.Bypass,
			Prompt: prompt, Resume: resume, Model: "gemini-2.5-pro", Turn: cli.TurnID(prompt),
		}
		session, err := p.Open(t.Context(), cli.Live, req)
		if err != nil {
			t.Fatal(err)
		}
		result, _ := clitest.Play(t.Context(), session, req)
		if err := session.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if result.Err != nil || !strings.Contains(result.Text, want) {
			t.Fatalf("%s: %q, %+v", prompt, result.Text, result.Err)
		}
		return result.AgentSessionID
	}
	id := ask("", `about the windmill [[text "One."]]`, "One.")
	ask(id, `[[history]] at once`, "windmill")
	ask("", `[[text "Other."]]`, "Other.")
	ask(id, `[[history]] later`, "windmill")
}

// resolved returns the target of a link.
func resolved(t testing.TB, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return real
}
