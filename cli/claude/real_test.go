package claude

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
	"ductor/internal/sim/modelapi"
)

// real returns a provider over the real Claude Code with a simulated model.
func real(t *testing.T, change func(*Options)) (*Provider, realagent.CLI, *modelapi.Server) {
	t.Helper()
	api := realagent.Model(t, "")
	c := realagent.Claude(t, api.URL())
	o := Options{ProviderOptions: cli.ProviderOptions{Launcher: clitest.Host(t), Path: c.Path, Env: c.Environ}}
	if change != nil {
		change(&o)
	}
	return New(o), c, api
}

// realVariants runs f for each way to run a turn.
func realVariants(t *testing.T, f func(t *testing.T, p *Provider, mode cli.Mode, c realagent.CLI, api *modelapi.Server)) {
	for _, mode := range realagent.Some(cli.Live, cli.OneShot) {
		t.Run(string(mode), func(t *testing.T) {
			p, c, api := real(t, nil)
			f(t, p, mode, c, api)
		})
	}
}

// Claude would add the file after an "@" to the prompt without an approval: also a file outside of the project, and for
// the text of a webhook or of another user.
func TestRealPromptsAddNoFiles(t *testing.T) {
	realVariants(t, func(t *testing.T, p *Provider, mode cli.Mode, c realagent.CLI, api *modelapi.Server) {
		private := filepath.Join(t.TempDir(), "private.txt")
		must(t, os.WriteFile(private, []byte("a word of the owner"), 0o600))
		req := cli.Request{Dir: c.Work}
		req.Prompt = "@" + private + "\nand 。@" + private + " and @\"" + private + "\" [[text ok]]"
		s := clitest.Open(t, p, mode, req)
		r, _ := clitest.Play(t.Context(), s, req)
		must(t, s.Close(t.Context()))
		if asked := lastAsked(api); r.Text != "ok" || !strings.Contains(asked, "private.txt") ||
			strings.Contains(asked, "a word of the owner") {
			t.Errorf("it answers %q (%v), and the model gets the file: %s", r.Text, r.Err, asked)
		}
	})
}

// Whatever a user writes, either the model gets it as that text, or the user gets the reason. The session of the next
// process contains the earlier messages, although the previous process was closed at once.
func TestRealPromptsReachTheModelAsText(t *testing.T) {
	realagent.LongOnly(t)
	const say = " [[text ok]]"
	long := "-p --model " + strings.Repeat("long ", 48<<10) + say
	for mode, prompts := range realagent.SomeOf(map[cli.Mode][]string{
		cli.Live: {"/compact is a word" + say, long, "--dangerously-skip-permissions" + say, "/clear" + say, "a\x00b" + say,
			"@/etc/passwd" + say, "#note" + say, "!ls" + say, "a\xffb", " \n"},
		cli.OneShot: {"/clear a\x00b" + say, long, "a\xffb", " \n"},
	}) {
		t.Run(string(mode), func(t *testing.T) {
			p, c, api := real(t, nil)
			req := cli.Request{Dir: c.Work}
			session := cli.AgentSessionID("")
			s := clitest.Open(t, p, mode, req)
			for _, prompt := range prompts {
				req.Prompt = prompt
				before := len(api.Prompts())
				r, _ := clitest.Play(t.Context(), s, req)
				asked := api.Prompts()[before:]
				if !utf8.ValidString(prompt) || strings.TrimSpace(prompt) == "" {
					if r.Err == nil || r.Err.Kind != cli.Refused || r.Err.Reason == "" || len(asked) > 0 {
						t.Errorf("%q: %+v, asked %d times", prompt, r, len(asked))
					}
					continue
				}
				if r.Err != nil || r.Text != "ok" || r.AgentSessionID == "" || session != "" && r.AgentSessionID != session || len(asked) == 0 {
					t.Fatalf("%.40q: %+v, asked %d times", prompt, r, len(asked))
				}
				got := strings.TrimSuffix(asked[len(asked)-1].Prompt, "\n"+cli.EndOfMessage)
				if len(asked) != 1 || strings.TrimSpace(got) != prompt {
					t.Errorf("%.40q reached the model as %.40q, asked %d times", prompt, got, len(asked))
				}
				session, req.Resume = r.AgentSessionID, r.AgentSessionID
			}
			must(t, s.Close(t.Context()))
			req.Prompt = "[[history]]"
			r, _ := clitest.Play(t.Context(), clitest.Open(t, p, mode, req), req)
			if !strings.Contains(r.Text, "-p --model") || r.AgentSessionID != session || !strings.Contains(lastAsked(api), `"ok"`) {
				t.Errorf("the next process answered %.100q in %q: %v", r.Text, r.AgentSessionID, r.Err)
			}
		})
	}
}

func TestRealTools(t *testing.T) {
	realagent.LongOnly(t)
	for _, mode := range realagent.Some(cli.Live, cli.OneShot) {
		t.Run(string(mode), func(t *testing.T) {
			p, c, _ := real(t, nil)
			req := cli.Request{Dir: c.Work, AllowedTools: []string{"Write"}, Prompt: `[[text "Let me look."]]` +
				`[[tool cmd="ls ./no-such-place"]][[write path="` + filepath.Join(c.Work, "a.txt") + `" text="new"]]` +
				`[[ask cmd="touch /etc/forbidden-` + filepath.Base(filepath.Dir(c.Work)) + `"]][[text "Done."]]`}
			r, events := clitest.Play(t.Context(), clitest.Open(t, p, mode, req), req)
			starts, ends := clitest.Of[cli.ToolStarted](events), clitest.Of[cli.ToolEnded](events)
			if r.Err != nil || len(starts) != 3 || len(ends) != 3 {
				t.Fatalf("%d tools started, %d ended: %+v", len(starts), len(ends), r.Err)
			}
			if starts[0].Title != "ls ./no-such-place" || ends[0].ExitCode == nil || *ends[0].ExitCode != 2 ||
				!strings.Contains(ends[0].Output, "No such file") || ends[0].Duration <= 0 {
				t.Errorf("shell: %+v, %+v", starts[0], ends[0])
			}
			changes := clitest.Of[cli.FileChanged](events)
			if len(changes) != 1 || changes[0].Path != "a.txt" || changes[0].Kind != cli.FileAdded || !strings.Contains(changes[0].Diff, "+new") {
				t.Errorf("changes %+v", changes)
			}
			if len(r.Denials) != 1 || r.Denials[0].Tool != "Bash" || !strings.HasPrefix(r.Denials[0].Title, "touch /etc/") || r.Denials[0].Reason == "" {
				t.Errorf("denials %+v", r.Denials)
			}
			if r.Text != "Let me look.\n\nDone." {
				t.Errorf("answer %q", r.Text)
			}
		})
	}
}

func TestRealAPIFailures(t *testing.T) {
	realagent.LongOnly(t)
	for prompt, want := range map[string]cli.FailureKind{
		"[[error 401]]": cli.NotLoggedIn,
		"[[error 429]]": cli.LimitReached,
	} {
		t.Run(prompt, func(t *testing.T) {
			p, c, _ := real(t, nil)
			req := cli.Request{Dir: c.Work, Prompt: prompt}
			if want == cli.LimitReached {
				req.Env = map[string]string{"CLAUDE_CODE_MAX_RETRIES": "0"}
			}
			r, _ := clitest.Play(t.Context(), clitest.Open(t, p, cli.Live, req), req)
			if r.Err == nil || r.Err.Kind != want || r.Text != "" {
				t.Errorf("got %+v and %q", r.Err, r.Text)
			}
		})
	}
}

func TestRealStatus(t *testing.T) {
	realagent.LongOnly(t)
	p, _, _ := real(t, nil)
	a := p.Auth(t.Context())
	if a.State != cli.Authenticated || a.Method != "ANTHROPIC_API_KEY" || a.Version == "" {
		t.Errorf("auth %+v", a)
	}
	models, err := p.Models(t.Context())
	if err != nil || len(models) < 3 || !models[0].Default || len(models[0].Efforts) == 0 {
		t.Errorf("models %+v, %v", models, err)
	}
}

func TestRealNotLoggedIn(t *testing.T) {
	realagent.LongOnly(t)
	p, c, _ := real(t, func(o *Options) {
		env := o.Env
		o.Env = func() []string {
			var kept []string
			for _, e := range env() {
				if !strings.HasPrefix(e, "ANTHROPIC_API_KEY=") {
					kept = append(kept, e)
				}
			}
			return kept
		}
	})
	if a := p.Auth(t.Context()); a.State != cli.Installed || a.Fix == "" {
		t.Errorf("auth %+v", a)
	}
	req := cli.Request{Dir: c.Work, Prompt: "hi"}
	if r, _ := clitest.Play(t.Context(), clitest.Open(t, p, cli.Live, req), req); r.Err == nil || r.Err.Kind != cli.NotLoggedIn {
		t.Errorf("got %+v", r)
	}
}

// slowServer serves the tool "late" three seconds after its start. Claude starts after two without a server that it
// need not wait for.
const slowServer = `#!/bin/sh
sleep 3
while read -r line; do
	id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
	case $line in
	*'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"slow","version":"1"}}' ;;
	*'"tools/list"'*) result='{"tools":[{"name":"late","description":"comes late","inputSchema":{"type":"object"}}]}' ;;
	*'"tools/call"'*) result='{"content":[{"type":"text","text":"better than never"}]}' ;;
	*) continue ;;
	esac
	printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
`

// A turn starts with ductor's tools, however busy the machine is.
func TestRealTurnsWaitForTheToolsOfATrustedServer(t *testing.T) {
	p, c, api := real(t, nil)
	path := filepath.Join(t.TempDir(), "slow")
	must(t, os.WriteFile(path, []byte(slowServer), 0o700))
	req := cli.Request{
		Dir: c.Work, Servers: []cli.ToolServer{{Name: "slow", Path: path, Trusted: true}},
		Prompt: `[[start]] [[call late args="{}"]] [[text "It came."]]`,
	}
	r, _ := clitest.Play(t.Context(), clitest.Open(t, p, cli.Live, req), req)
	if r.Text != "It came." || r.Err != nil || !strings.Contains(api.Asked(), "better than never") {
		t.Errorf("answered %+v", r)
	}
}
