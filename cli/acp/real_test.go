package acp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
)

// usersAgent returns a provider over a real agent that users configure, with a simulated model, and its working
// directory.
func usersAgent(t *testing.T, name string) (*Provider, string) {
	t.Helper()
	c := realagent.OfProtocol()[name](t, realagent.Model(t, realagent.Key).URL())
	return New(Options{
		ProviderOptions: cli.ProviderOptions{
			Path: c.Path, Launcher: clitest.Host(t), Env: c.Environ, AllowEnv: c.Names(),
			Timing: cli.Timing{Start: 3 * time.Minute},
		},
		Agent: cli.Agent(name), Args: c.ACPArgs,
	}), c.Work
}

// Some agents add the file after an "@" to a prompt without an approval: also a file outside of the project, and for the
// text of a webhook or of another user.
func TestRealPromptsAddNoFiles(t *testing.T) {
	for name, of := range realagent.OfProtocol() {
		t.Run(name, func(t *testing.T) {
			if name != "claude-agent-acp" {
				realagent.LongOnly(t)
			}
			api := realagent.Model(t, realagent.Key)
			c := of(t, api.URL())
			p := New(Options{
				ProviderOptions: cli.ProviderOptions{
					Path: c.Path, Launcher: clitest.Host(t), Env: c.Environ, AllowEnv: c.Names(),
					Timing: cli.Timing{Start: 3 * time.Minute},
				},
				Agent: cli.Agent(name), Args: c.ACPArgs,
			})
			private := filepath.Join(t.TempDir(), "private.txt")
			if err := os.WriteFile(private, []byte("a word of the owner"), 0o600); err != nil {
				t.Fatal(err)
			}
			req := cli.Request{Dir: c.Work, Turn: "1", Permission: cli.Ask, Attended: true}
			req.Prompt = "@" + private + "\nand @\"" + private + "\" [[text \"It is done.\"]]"
			s := clitest.Open(t, p, cli.Live, req)
			r, _ := clitest.Play(t.Context(), s, req)
			all := api.Prompts()
			if r.Text != "It is done." || len(all) == 0 {
				t.Errorf("it answers %q, %+v", r.Text, r.Err)
			}
			for _, asked := range all {
				if strings.Contains(string(asked.Body), "a word of the owner") {
					t.Errorf("the model gets the file: %s", asked.Body)
				}
			}
		})
	}
}

// One turn of each real agent in ask: it asks before it runs a command, although its own default is to run it, and
// answers.
func TestRealAgentsAnswer(t *testing.T) {
	for name := range realagent.OfProtocol() {
		t.Run(name, func(t *testing.T) {
			p, dir := usersAgent(t, name)
			req := cli.Request{Dir: dir, Turn: "1", Permission: cli.Ask, Attended: true}
			req.Prompt = `[[start]] [[ask cmd="touch made; echo of the tool"]] [[text "It is done."]]`
			s := clitest.Open(t, p, cli.Live, req)
			asked := 0
			var started cli.ToolStarted
			var ended cli.ToolEnded
			var r cli.Result
			s.Turn(t.Context(), req, func(ev cli.Event) {
				switch ev := ev.(type) {
				case cli.ApprovalAsked:
					_, err := os.Stat(filepath.Join(dir, "made"))
					if err == nil || !strings.Contains(string(ev.Input), "touch made") {
						t.Errorf("it asks for %s, and has done it: %v", ev.Input, err == nil)
					}
					asked++
					go func() { _ = s.(cli.Decider).Decide(t.Context(), ev.ID, cli.Decision{Allow: true}) }()
				case cli.ToolStarted:
					started = ev
				case cli.ToolEnded:
					ended = ev
				case cli.Result:
					r = ev
				}
			})
			switch {
			case asked != 1:
				t.Errorf("it asks %d times, and answers %q, %+v", asked, r.Text, r.Err)
			case !strings.Contains(started.Title, "echo of the tool") || ended.Failed() ||
				!strings.Contains(ended.Output, "of the tool"):
				t.Errorf("the tool is %+v and %+v", started, ended)
			case r.Err != nil || !strings.HasSuffix(r.Text, "It is done."):
				t.Errorf("it answers %q, %+v", r.Text, r.Err)
			}
		})
	}
}

// These are the cases of the suite for real agents. The other cases are impossible with them, or cost seconds of CPU
// time each.
func TestRealConformance(t *testing.T) {
	realagent.LongOnly(t)
	const (
		fault  = "the real agent has no such fault on demand"
		asSaid = "the same lines as the scripted agent's, and seconds of processor"
	)
	for name := range realagent.OfProtocol() {
		cannot := clitest.Cannot{}
		cannot.Leave(fault, clitest.CrashInText, clitest.SilentExit, clitest.LongLine, clitest.AbortDeaf)
		cannot.Leave(asSaid, clitest.AbortBefore, clitest.AbortAway, clitest.CloseUnused, clitest.Deadline,
			clitest.AdoptUnsent)
		if strings.HasSuffix(name, "-acp") {
			cannot.Leave("the parent of its shells is the agent, whose end the adapter survives", clitest.CrashInTool)
		}
		if name == "codex-acp" {
			cannot.Leave("it shows its model's error as its answer", clitest.ModelError)
		}
		t.Run(name, func(t *testing.T) {
			clitest.Conformance(t, clitest.Harness{
				Real: true, Mode: cli.Live, Over: over, Cannot: cannot, Patience: time.Minute,
				New: func(t *testing.T) (cli.Provider, cli.Request) {
					p, dir := usersAgent(t, name)
					return p, cli.Request{Dir: dir, Permission: cli.Bypass}
				},
			})
		})
	}
}
