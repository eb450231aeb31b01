package gemini

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/acp"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
)

const realModel = "gemini-2.5-pro"

// The second prompt of a conversation runs in the session of the first. The time to the first text of its answer is
// logged, without a limit.
func TestRealSecondTurn(t *testing.T) {
	realagent.LongOnly(t)
	took := map[cli.Mode]time.Duration{}
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		p, c, _ := real(t, nil)
		req := cli.Request{Dir: c.Work, Project: cli.EmptyProject, Permission: cli.Bypass, Model: realModel, Prompt: `about the lighthouse [[text "One."]]`}
		s := clitest.Open(t, p, mode, req)
		one, _ := clitest.Play(t.Context(), s, req)
		if one.Err != nil {
			t.Fatalf("%s: %v", mode, one.Err)
		}
		req.Resume, req.Prompt = one.AgentSessionID, `[[history]]`
		began := time.Now()
		s.Turn(t.Context(), req, func(ev cli.Event) {
			if _, ok := ev.(cli.TextDelta); ok && took[mode] == 0 {
				took[mode] = time.Since(began)
			}
			if r, ok := ev.(cli.Result); ok && (r.Err != nil || !strings.Contains(r.Text, "lighthouse")) {
				t.Errorf("%s: %q, %v", mode, r.Text, r.Err)
			}
		})
	}
	t.Logf("live %s, one-shot %s, ratio %.0f", took[cli.Live], took[cli.OneShot], float64(took[cli.OneShot])/float64(took[cli.Live]))
}

// A user's text reaches the model unchanged, whatever it starts with and however long it is.
func TestRealPromptsReachTheModelAsText(t *testing.T) {
	realagent.LongOnly(t)
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		t.Run(string(mode), func(t *testing.T) {
			p, c, api := real(t, nil)
			prompts := []string{"--yolo nul \x00 [[text ok]]", "/memory show [[text ok]]"}
			if mode == cli.Live {
				prompts = append(prompts, "- [[text ok]]", "$HOME [[text ok]]", strings.Repeat("long ", 48<<10)+"[[text ok]]")
			}
			req := cli.Request{Dir: c.Work, Project: cli.EmptyProject, Permission: cli.Bypass, Model: realModel}
			s := clitest.Open(t, p, mode, req)
			for _, prompt := range prompts {
				req.Prompt = prompt
				r, _ := clitest.Play(t.Context(), s, req)
				asked := api.Prompts()
				if r.Err != nil || r.Text != "ok" || len(asked) == 0 {
					t.Fatalf("%.40q: %q, %+v, asked %d times", prompt, r.Text, r.Err, len(asked))
				}
				got := strings.TrimPrefix(asked[len(asked)-1].Prompt, "\u2060")
				if strings.TrimSpace(got) != prompt {
					t.Errorf("%.40q reached the model as %.40q", prompt, got)
				}
				req.Resume = r.AgentSessionID
			}
		})
	}
}

// Gemini adds no file to a prompt that names the file.
func TestRealPromptsAddNoFiles(t *testing.T) {
	realagent.LongOnly(t)
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		t.Run(string(mode), func(t *testing.T) {
			p, c, api := real(t, nil)
			file := filepath.Join(c.Work, "notes.md")
			if err := os.WriteFile(file, []byte("a word of the owner"), 0o600); err != nil {
				t.Fatal(err)
			}
			req := cli.Request{Dir: c.Work, Project: cli.EmptyProject, Permission: cli.Ask, Model: realModel,
				Attended: mode == cli.Live, AppendPrompt: "See @notes.md",
				Prompt: "@notes.md see:@" + file + ` \@notes.md \\@notes.md "@notes.md" @"notes.md" ` +
					"@./notes.md\n> @notes.md\nuser@example.org [[text ok]]"}
			r, _ := clitest.Play(t.Context(), clitest.Open(t, p, mode, req), req)
			if r.Err != nil || r.Text != "ok" {
				t.Fatalf("%q, %v", r.Text, r.Err)
			}
			asked := api.Asked()
			if strings.Contains(asked, "a word of the owner") || !strings.Contains(asked, "notes.md") {
				t.Errorf("the model gets the file: %s", asked)
			}
		})
	}
}

// The user is asked about a command, and allows or denies it. A change is shown before it happens.
func TestRealApprovals(t *testing.T) {
	realagent.LongOnly(t)
	p, c, _ := real(t, nil)
	req := cli.Request{Dir: c.Work, Project: cli.EmptyProject, Attended: true, Model: realModel, Permission: cli.Ask}
	s := clitest.Open(t, p, cli.Live, req)
	for prompt, allow := range map[string]bool{
		`[[tool cmd="touch yes"]]`:               true,
		`[[tool cmd="touch no"]]`:                false,
		`[[write path="file.txt" text="one\n"]]`: true,
	} {
		req.Prompt = prompt
		var asked []cli.ApprovalAsked
		var r cli.Result
		s.Turn(t.Context(), req, func(ev cli.Event) {
			switch ev := ev.(type) {
			case cli.ApprovalAsked:
				asked = append(asked, ev)
				go func() { _ = s.(cli.Decider).Decide(context.Background(), ev.ID, cli.Decision{Allow: allow}) }()
			case cli.Result:
				r = ev
			}
		})
		if len(asked) != 1 || r.Err != nil || len(r.Denials) != map[bool]int{true: 0, false: 1}[allow] {
			t.Fatalf("%s: asked %+v, denials %+v, %v", prompt, asked, r.Denials, r.Err)
		}
		input := "" // the name alone makes a rule
		if strings.Contains(prompt, "touch") {
			input = `{"command":"` + asked[0].Title + `"}`
		}
		if string(asked[0].Input) != input {
			t.Errorf("input %s, want %s", asked[0].Input, input)
		}
		if strings.Contains(prompt, "touch") && !strings.HasPrefix(asked[0].Title, "touch ") {
			t.Errorf("title %q", asked[0].Title)
		}
		if strings.Contains(prompt, "write") && (len(asked[0].Changes) != 1 || !strings.Contains(asked[0].Changes[0].Diff, "+one")) {
			t.Errorf("changes %+v", asked[0].Changes)
		}
		req.Resume = r.AgentSessionID
	}
	for file, want := range map[string]bool{"yes": true, "no": false, "file.txt": true} {
		if _, err := os.Stat(filepath.Join(c.Work, file)); (err == nil) != want {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestRealStatus(t *testing.T) {
	realagent.LongOnly(t)
	p, _, _ := real(t, nil)
	a := p.Auth(t.Context())
	if a.State != cli.Authenticated || a.Method != "GEMINI_API_KEY" || a.Version == "" {
		t.Errorf("auth %+v", a)
	}
	models, err := p.Models(t.Context())
	if err != nil || len(models) < 3 {
		t.Errorf("models %+v, %v", models, err)
	}
}

// A session can be resumed any number of times, even within the minute in which it began.
func TestRealSessionsSurviveResume(t *testing.T) {
	realagent.LongOnly(t)
	p, c, _ := real(t, nil)
	req := cli.Request{Dir: c.Work, Project: cli.EmptyProject, Permission: cli.Bypass, Model: realModel, Prompt: `about the windmill [[text "One."]]`}
	var id cli.AgentSessionID
	for _, round := range []struct {
		prompt, want string
		goesOn       bool
	}{{req.Prompt, "One.", false}, {"[[history]]", "windmill", true}, {`[[text "Other."]]`, "Other.", false}, {"[[history]]", "windmill", true}} {
		req.Prompt, req.Resume = round.prompt, ""
		if round.goesOn {
			req.Resume = id
		}
		s := clitest.Open(t, p, cli.Live, req)
		r, _ := clitest.Play(t.Context(), s, req)
		if r.Err != nil || !strings.Contains(r.Text, round.want) {
			t.Fatalf("%q: %q, %v", round.prompt, r.Text, r.Err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if id == "" {
			id = r.AgentSessionID
		}
	}
}

// A configured agent creates files through ductor.
func TestRealGeminiAsAConfiguredAgentCreatesAFile(t *testing.T) {
	realagent.LongOnly(t)
	_, c, _ := real(t, nil)
	p := acp.New(acp.Options{
		ProviderOptions: cli.ProviderOptions{Launcher: clitest.Host(t), Path: c.Path, Env: c.Environ, AllowEnv: EnvKeys()},
		Agent:           "tame", Args: []string{"--acp"}, ExtraEnv: New(Options{}).ownEnv, Programs: Programs(),
	})
	req := cli.Request{Dir: c.Work, Project: cli.WithProject, Permission: cli.Bypass, Model: realModel, Prompt: `[[write path="new.txt" text="one\n"]]`}
	r, _ := clitest.Play(t.Context(), clitest.Open(t, p, cli.Live, req), req)
	if got, err := os.ReadFile(filepath.Join(c.Work, "new.txt")); r.Err != nil || err != nil || string(got) != "one\n" {
		t.Errorf("%q, %v, %+v", got, err, r)
	}
}

// Gemini reports the same end for an answer that its model completed, for a truncated one, and for one that the model
// broke off. So ductor cannot show the difference. If this fails, Gemini reports it now, and package acp should use
// that.
func TestRealGeminiDoesNotSayWhyAnAnswerEnded(t *testing.T) {
	realagent.LongOnly(t)
	_, c, _ := real(t, nil)
	cmd := exec.CommandContext(t.Context(), c.Path, "--acp", "-m", realModel)
	cmd.Dir, cmd.Env = c.Work, append(c.Environ(), "GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_CLI_NO_RELAUNCH=true")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	lines := bufio.NewReader(out)
	// call returns everything that Gemini prints until the answer.
	call := func(method, params string) (said string) {
		t.Helper()
		if _, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`+"\n", method, params); err != nil {
			t.Fatal(err)
		}
		for !strings.Contains(said, `"id":1`) {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(line, "available_commands_update") {
				said += line
			}
		}
		return said
	}
	call("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
	_, id, _ := strings.Cut(call("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, c.Work)), `"sessionId":"`)
	id, _, _ = strings.Cut(id, `"`)
	ends := map[string]string{}
	for _, reason := range []string{"", "[[end max-tokens]]", "[[end refusal]]"} {
		ends[reason] = call("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, id, `[[start]][[text "so"]]`+reason))
		if ends[reason] != ends[""] || !strings.Contains(ends[""], `"end_turn"`) {
			t.Errorf("after %q it says\n%s\nand else\n%s", reason, ends[reason], ends[""])
		}
	}
}
