package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/modelapi"
	"ductor/internal/sim/telegram"
	"ductor/mcp/relay"
	"ductor/orchestrator/handoff"
)

// toolCaller calls ductor's tools as the agent of a running turn.
type toolCaller struct {
	*town
	token string
}

// holdTurn starts a turn that runs until release. The permission mode must be bypass.
func (town *town) holdTurn() (c toolCaller, release func()) {
	town.t.Helper()
	work := town.cfg.Projects.DefaultDir
	for _, name := range []string{"token", "go"} {
		_ = os.Remove(filepath.Join(work, name)) // of an earlier call
	}
	town.say(`[[start]] [[tool cmd="printenv DUCTOR_MCP_TOKEN > token.new; mv token.new token; ` +
		`until [ -e go ]; do sleep 0.05; done"]] [[text "that was all"]]`)
	awaitFile(town.t, filepath.Join(work, "token"))
	raw, err := os.ReadFile(filepath.Join(work, "token"))
	if err != nil {
		town.t.Fatal(err)
	}
	return toolCaller{town, strings.TrimSpace(string(raw))}, func() {
		if err := os.WriteFile(filepath.Join(work, "go"), nil, 0o600); err != nil {
			town.t.Fatal(err)
		}
	}
}

// call returns the result of a tool, or its error.
func (c toolCaller) call(tool string, args map[string]any) string {
	c.t.Helper()
	r := &relay.Relay{Token: c.token, Dial: func(ctx context.Context) (net.Conn, error) {
		return relay.Dial(ctx, c.cfg.Storage.Dir)
	}}
	text, err := r.Call(c.soon(), tool, args)
	if err != nil {
		return err.Error()
	}
	return text
}

// openSession resumes the session with a title in the chat.
func (town *town) openSession(title string) {
	town.t.Helper()
	town.say("/sessions")
	var button string
	list := town.awaitMessage(func(m telegram.Message) bool {
		for _, row := range m.Keyboard {
			for _, b := range row {
				if strings.Contains(b.Text, title) {
					button = b.Text
				}
			}
		}
		return button != ""
	})
	town.pressOn(list, button)
	town.press("▶ Continue")
	town.await("Your next message continues it.")
}

// In one session Codex advises, Claude works, Gemini reviews in a turn, and Claude continues. Each agent is told the
// others' words once.
func TestAgentsShareOneSession(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	c, release := town.holdTurn()
	if out := c.call("consult_with", map[string]any{"model": "codex", "session_id": "auth-789",
		"question": `which lock? [[text "the advice"]]`}); !strings.Contains(out, "the advice") ||
		!strings.Contains(out, "answered; session_id auth-789") {
		t.Errorf("the advice: %s", out)
	}
	work := make(chan string, 1)
	go func() {
		work <- c.call("work_with", map[string]any{"agent": "claude", "session_id": "auth-789",
			"task": `do it [[start]] [[text "the report"]]`})
	}()
	town.press("✅ Allow once")
	if out := <-work; !strings.Contains(out, "the report") || !strings.Contains(out, "session_id auth-789") {
		t.Errorf("the report: %s", out)
	}
	if out := c.call("consult_with", map[string]any{"session_id": "auth-789",
		"question": `and now? [[start]] [[text "as said"]]`}); !strings.Contains(out, "as said\n\n(codex") {
		t.Errorf("the adviser, asked on: %s", out)
	}
	release()
	town.awaitDone(1)
	town.openSession("auth-789")
	town.say("/model gemini")
	town.await("Gemini · its default model")
	town.say(`review it [[start]] [[text "the review"]]`)
	if m := town.awaitDone(2); !strings.Contains(m.Text, "handed 3 turns to Gemini") {
		t.Errorf("the review says %q", m.Text)
	}
	town.say("/model claude")
	town.await("Claude · its default model")
	town.say(`go on [[start]] [[text "so it is"]]`)
	if m := town.awaitDone(3); !strings.Contains(m.Text, "handed 4 turns to Claude") {
		t.Errorf("going on says %q", m.Text)
	}
	town.say(`what was said? [[start]] [[history]]`)
	said := town.awaitDone(4).Text
	for _, part := range []string{"Question to codex: which lock?", "Report of claude",
		"Assistant (gemini): the review", "and now?"} {
		if strings.Count(said, part) != 1 {
			t.Errorf("%q is not there once: %s", part, said)
		}
	}
	if strings.Contains(said, "handed") {
		t.Errorf("something was handed over again: %s", said)
	}
}

// Calls with bad ids and files get the reason. Two questions at the same moment in a session both get an answer.
func TestBadInputOfQuestions(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	work, outside := town.cfg.Projects.DefaultDir, filepath.Join(t.TempDir(), "secret")
	for path, text := range map[string]string{outside: "private words", filepath.Join(work, "notes"): "the notes say"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	huge := filepath.Join(work, "huge")
	if err := errors.Join(os.Symlink(outside, filepath.Join(work, "link")), os.WriteFile(huge, nil, 0o600),
		os.Truncate(huge, 100<<20)); err != nil {
		t.Fatal(err)
	}
	c, release := town.holdTurn()
	for name, bad := range map[string]struct {
		args map[string]any
		want string
	}{
		"control characters": {map[string]any{"session_id": "a\x1b[2Jb"}, "control character"},
		"10 kB":              {map[string]any{"session_id": strings.Repeat("x", 10_000)}, "128 are the limit"},
		"outside":            {map[string]any{"context": []string{outside}}, "outside"},
		"a link":             {map[string]any{"context": []string{"link"}}, "link"},
		"100 MB":             {map[string]any{"context": []string{"huge"}}, "100"},
		"no such model":      {map[string]any{"model": "codx", "session_id": "auth-789"}, `did you mean \"codex\"`},
	} {
		args := map[string]any{"model": "codex", "question": `Why? [[text "never"]]`}
		maps.Copy(args, bad.args)
		if out := c.call("consult_with", args); strings.Contains(out, "never") ||
			strings.Contains(out, "private words") ||
			!strings.Contains(out, strings.ReplaceAll(bad.want, `\`, "")) {
			t.Errorf("%s: %s", name, out)
		}
	}
	if out := c.call("consult_with", map[string]any{"model": "codex", "question": `Why? [[text "so"]]`,
		"context": []string{"notes"}}); !strings.Contains(out, "so") {
		t.Errorf("with a file: %s", out)
	}
	var both sync.WaitGroup
	for _, word := range []string{"first", "second"} {
		both.Go(func() {
			question := fmt.Sprintf(`Why %s? [[start]] [[sleep 100ms]] [[text "answer %s"]]`, word, word)
			if out := c.call("consult_with", map[string]any{"model": "codex", "session_id": "same",
				"question": question}); !strings.Contains(out, "answer "+word) {
				t.Errorf("two at the same moment: %s", out)
			}
		})
	}
	both.Wait()
	c.call("consult_with", map[string]any{"session_id": "same", "question": `and now? [[start]] [[text "now"]]`})
	out := c.call("consult_with", map[string]any{"session_id": "same", "question": `all? [[start]] [[history]]`})
	if strings.Count(out, "Why first?") != 1 || strings.Count(out, "Why second?") != 1 {
		t.Errorf("after two at the same moment: %s", out)
	}
	release()
	town.awaitDone(1)
}

// The same as TestAgentsShareOneSession with the real agents: the requests at their models' APIs contain the others'
// words once, within the budget.
func TestRealAgentsShareOneSession(t *testing.T) {
	realagent.LongOnly(t)
	api := realagent.Model(t, realagent.Key)
	town := surroundings(t, func(cfg *config.Config) {
		cfg.Permissions.Mode = "bypass"
		a := &cfg.Agents
		a.Default, a.Copilot.Enabled = "claude", false
		claude, codex, gemini := realagent.Claude(t, api.URL()), realagent.Codex(t, api.URL()),
			realagent.Gemini(t, api.URL())
		claude.Setenv(t)
		codex.Setenv(t)
		gemini.Setenv(t) // last: the home has its settings
		a.Claude.Path, a.Codex.Path, a.Gemini.Path = claude.Path, codex.Path, gemini.Path
		cfg.Projects.DefaultDir, cfg.Projects.Roots = gemini.Work, []string{filepath.Dir(gemini.Work)}
	})
	town.start()
	// told returns what the last request to a model's API tells before the prompt with which it ends. It checks that
	// the entries of the session in it are exactly the wanted ones.
	told := func(prompt string, want ...string) string {
		t.Helper()
		requests := api.Requests()
		slices.Reverse(requests)
		last := slices.IndexFunc(requests, func(r modelapi.Request) bool { return strings.HasSuffix(r.Prompt, prompt) })
		if last < 0 {
			t.Fatalf("no request ends with %q", prompt)
		}
		text := strings.TrimSuffix(requests[last].Prompt, prompt)
		entries := toldEntry.FindAllString(text, -1)
		if !slices.EqualFunc(entries, want, func(entry, want string) bool {
			return regexp.MustCompile("^" + want).MatchString(entry)
		}) {
			t.Errorf("%q comes after the entries %.99q, want %q", prompt, entries, want)
		}
		return text
	}
	call := func(tool string, args map[string]string) string {
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("[[call %s args=%q]]", tool, raw)
	}
	const (
		build  = `please build [[start]] [[text "it is built"]]`
		review = `please review [[start]] [[text "looks good"]]`
		merge  = `please merge [[start]] [[text "merged"]]`
		goOn   = `please go on [[start]] [[text "over"]]`
	)
	town.say("%s", "please begin [[start]] "+call("consult_with", map[string]string{"model": "codex",
		"session_id": "auth-789", "question": `please advise [[start]] [[text "the advice begins"]] ` +
			`[[text n=2500 size=20]] [[text " the advice ends"]]`})+
		call("work_with", map[string]string{"agent": "claude", "session_id": "auth-789", "task": build})+
		`[[text "all of it"]]`)
	town.press("✅ Allow once")
	town.awaitDone(1)
	entries := []string{"Question to codex: please advise", `Advice of codex \S+: the advice begins`}
	advice := told(build, entries...)
	for _, part := range []string{" the advice ends\n", "tokens are left out here"} {
		if n := strings.Count(advice, part); n != 1 {
			t.Errorf("the worker is told %q %d times", part, n)
		}
	}
	if n := handoff.Tokens(advice); n > town.cfg.Sessions.HandoffTokens || n < town.cfg.Sessions.HandoffTokens/2 {
		t.Errorf("%d tokens are handed over, and %d may be", n, town.cfg.Sessions.HandoffTokens)
	}
	if !strings.Contains(api.Asked(), "1 earlier entries of the session did not fit") {
		t.Error("the caller is not told that the advice was shortened")
	}
	town.openSession("auth-789")
	town.say("/model gemini")
	town.await("Gemini · its default model")
	town.say("%s", review)
	town.awaitDone(2)
	entries = append(entries, "Task for claude: please build", `Report of claude \S+: it is built`)
	told(review, entries...)
	town.say("/model claude")
	town.await("Claude · its default model")
	town.say("%s", merge)
	town.awaitDone(3)
	told(merge, append(entries, "User: please review", `Assistant \(gemini\): looks good`)...)
	town.say("%s", goOn)
	town.awaitDone(4)
	told(goOn)
}

// toldEntry matches the first line of an entry of a session that an agent is told.
var toldEntry = regexp.MustCompile(`(?m)^(User|Assistant|Question|Advice|Task|Report)\b.*`)

// A session that is continued goes on with the agent that answered last in it, and not by a hand-off to another one.
func TestAContinuedSessionKeepsItsAgent(t *testing.T) {
	town := newTown(t, nil)
	town.say(`the parser [[start]] [[text "by Claude"]]`)
	town.awaitDone(1)
	town.say("/model codex")
	town.await("Codex · its default model")
	town.say("/new")
	town.await("New session")
	town.say(`the docs [[start]] [[text "by Codex"]]`)
	town.awaitDone(2)
	town.openSession("the parser")
	if page := town.await("Your next message continues it."); !strings.Contains(page.Text, "With Claude\n") {
		t.Errorf("the page is %q", page.Text)
	}
	town.say(`on [[start]] [[text "again"]]`)
	if m := town.awaitDone(3); !strings.Contains(m.Text, "claude") || strings.Contains(m.Text, "handed") {
		t.Errorf("the answer is %q", m.Text)
	}
}
