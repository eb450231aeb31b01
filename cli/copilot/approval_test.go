package copilot

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/turn"
)

// File contents that result from the diff are not shown again. All others are.
func TestTheContentsOfAFileAndItsDiff(t *testing.T) {
	for diff, shown := range map[string]bool{`@@ -1,2 +1,2 @@\n a\n-b\n+c`: false, `@@ -1,2 +1,2 @@\n a\n-b\n+d`: true} {
		raw := json.RawMessage(`{"kind":"write","fileName":"/srv/proj/x","diff":"` + diff + `","newFileContents":"a\nc\n","fileEdits":[` +
			`{"before":{"path":"/srv/proj/x","content":"a\nb\n"},"after":{"path":"/srv/proj/x","content":"a\nc\n"}}]}`)
		var asked permissionAsked
		if err := json.Unmarshal(raw, &asked); err != nil {
			t.Fatal(err)
		}
		p := newParser(turn.NewEmitter(Agent, time.Now, func(cli.Event) {}), cli.Request{Dir: "/srv/proj"})
		ev := approval(p, "a", asked, raw)
		plain := slices.ContainsFunc(ev.Fields, func(f cli.Field) bool { return f.Weight == cli.PlainField })
		if plain != shown {
			t.Errorf("%s: %+v", diff, ev.Fields)
		}
	}
}

// An approval contains every value of a request.
func TestLawAnApprovalTellsEveryField(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		input := clitest.Inputs("fullCommandText", "intention", "warning", "fileName", "resolvedPath", "diff", "newFileContents", "path", "serverName",
			"toolName", "args", "toolArgs", "url", "fact", "hookMessage", "commandSegments", "workingDirectory").Draw(rt, "input")
		var asked permissionAsked
		_ = json.Unmarshal(input, &asked) // like a parser
		asked.Kind = rapid.SampledFrom([]string{"shell", "write", "read", "mcp", "url", "memory", "new"}).Draw(rt, "kind")
		p := newParser(turn.NewEmitter(Agent, time.Now, func(cli.Event) {}), cli.Request{Dir: "/srv/proj"})
		ev := approval(p, "a", asked, input)
		if left := clitest.Unshown(input, clitest.Shown(ev), nil); len(left) > 0 {
			rt.Fatalf("%s %s does not tell %q: %+v", asked.Kind, input, left, ev)
		}
		if hidden := clitest.Hidden("copilot", ev, "/srv/proj"); len(hidden) > 0 {
			rt.Fatalf("%s %s hides %q", asked.Kind, input, hidden)
		}
		plan := planApproval("p", asked.Intention, asked.Diff, input)
		if left := clitest.Unshown(input, clitest.Shown(plan), nil); len(left) > 0 {
			rt.Fatalf("a plan %s does not tell %q: %+v", input, left, plan)
		}
	})
}

// A write is only an edit if no field contains more than the diff. A file is new if no edit has its old content.
func TestWhatIsAnEdit(t *testing.T) {
	dir := t.TempDir()
	const diff = `"diff":"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+x\n","newFileContents":"x\n","canOfferSessionApproval":true`
	const whole = `"fileEdits":[{"before":{"path":"a","content":"a\n"},"after":{"path":"a","content":"x\n"}}],` + diff
	for fields, want := range map[string]bool{
		`"fileName":"a",` + whole:                                                       true,
		`"fileName":"a","resolvedPath":"a",` + whole:                                    true,
		`"fileName":"a","resolvedPath":"sub/a",` + whole:                                true, // a link inside
		`"fileName":"a","diff":"@@ -0,0 +1 @@\n+x\n","newFileContents":"x"`:             true,
		`"fileName":"a","diff":"@@ -0,0 +1 @@\n+x\n","newFileContents":"y"`:             false,
		`"fileName":"a","fileEdits":[{"before":{"path":"a"},"after":{"path":"b"}}]`:     false,
		`"fileName":"a","fileEdits":[{"before":{"path":"a"},"after":{"path":"out/b"}}]`: false,
		`"fileName":"a","fileEdits":[{"before":{"path":"a"}}]`:                          false,
		`"fileName":"a","fileEdits":[{"after":{"path":"a"},"links":["/"]}]`:             false,
		`"fileName":"a","fileEdits":[{"after":{"content":"x"}}]`:                        false,
		`"fileName":"a","fileEdits":"a"`:                                                false,
		`"fileName":"a","resolvedPath":"/etc/passwd",` + whole:                          false,
		`"fileName":"a","warning":"it is a link",` + whole:                              false,
		`"fileName":"a","hookMessage":"it is a link",` + whole:                          false,
		`"fileName":"a","managedApprovalRequired":true,` + whole:                        false,
		`"fileName":"a","requestSandboxBypass":true,` + whole:                           false,
	} {
		raw := json.RawMessage(`{"kind":"write","intention":"why",` + fields + `}`)
		var asked permissionAsked
		_ = json.Unmarshal(raw, &asked) // like a parser
		p := newParser(turn.NewEmitter(Agent, time.Now, func(cli.Event) {}), cli.Request{Dir: dir})
		ev := approval(p, "a", asked, raw)
		if ev.OnlyEdits() != want {
			t.Errorf("%s is only an edit: %v, %+v", raw, ev.OnlyEdits(), ev.Fields)
		}
		if added := ev.Changes[0].Kind == cli.FileAdded; added == (len(asked.Edits) > 0 && asked.Edits[0].Before != nil) && asked.NewFile != "" {
			t.Errorf("%s adds a file: %v", raw, added)
		}
	}
}

// Rules decide by the effect of a request. A search in a directory reads hidden files too, so it is not the reading of
// one file. Copilot's intention is no reason for asking.
func TestTheEffectOfARequest(t *testing.T) {
	shell := "|cat a.txt||routine|tool"
	other := "|||routine|tool"
	reads := "||a.txt||exact"
	named := "||||exact"
	for _, c := range []struct {
		tool, input, want string
	}{
		{"bash", `{"kind":"shell","fullCommandText":"cat a.txt","intention":"x","toolCallId":"1"}`, shell},
		{"", `{"kind":"shell","fullCommandText":"cat a.txt"}`, shell},
		{"mcp", `{"kind":"shell","fullCommandText":"cat a.txt"}`, "|cat a.txt|||tool"},
		{"powershell", `{"kind":"shell","fullCommandText":"cat a.txt"}`, "|cat a.txt||explained|tool"},
		{"bash", `{"kind":"shell","fullCommandText":"cat a.txt","hasWriteFileRedirection":true}`, other},
		{"bash", `{"kind":"shell","fullCommandText":"cat a.txt","fullCommandText":"id"}`, "|||routine|"},
		{"bash", `{"kind":"shell","fullCommandText":"cat a.txt","x":"y"}`, other},
		{"bash", `{"kind":"shell","fullCommandText":"cat a.txt","warning":"x"}`, "|||explained|tool"},
		{"view", `{"kind":"read","path":"a.txt","intention":"Search in file: x"}`, reads},
		{"glob", `{"kind":"read","path":"a.txt","intention":"x"}`, reads},
		{"grep", `{"kind":"read","path":"a.txt","intention":"Search in file: x"}`, reads},
		{"grep", `{"kind":"read","path":"a.txt","intention":"Search in directory: x"}`, named},
		{"edit", `{"kind":"read","path":"a.txt","intention":"x"}`, named},
		{"view", `{"warning":"x","kind":"read","path":"a.txt","intention":"x"}`, named},
		{"view", `{"to":"b","kind":"read","path":"a.txt","intention":"x"}`, named},
		{"view", `{"path":"b","kind":"read","path":"a.txt","intention":"x"}`, "||||"},
		{"view", `{"kind":"write","path":"a.txt","intention":"x"}`, named},
		{"view", `{"managedApprovalRequired":true,"kind":"read","path":"a.txt","intention":"x"}`, named},
	} {
		var asked permissionAsked
		if err := json.Unmarshal([]byte(c.input), &asked); err != nil {
			t.Fatal(err)
		}
		p := newParser(turn.NewEmitter(Agent, time.Now, func(cli.Event) {}), cli.Request{Dir: "/w"})
		if c.tool != "" {
			asked.ToolCallID, p.tools["1"] = "1", cli.ToolStarted{ID: "1", Name: c.tool}
		}
		if got := clitest.EffectLine(approval(p, "a", asked, json.RawMessage(c.input)).Effect, "/w"); got != c.want {
			t.Errorf("%s %s: %s", c.tool, c.input, got)
		}
	}
}

// A plan is shown once, as it was written, even if its summary is the plan on one line.
func TestAPlanIsShownOnce(t *testing.T) {
	for summary, want := range map[string]string{
		"# Plan 1. Look 2. Do": "# Plan\n\n1. Look\n2. Do",
		"Look first":           "Look first\n\n# Plan\n\n1. Look\n2. Do",
		"":                     "# Plan\n\n1. Look\n2. Do",
	} {
		raw, err := json.Marshal(map[string]string{"summary": summary, "planContent": "# Plan\n\n1. Look\n2. Do"})
		if err != nil {
			t.Fatal(err)
		}
		if ev := planApproval("p", summary, "# Plan\n\n1. Look\n2. Do", raw); ev.Detail != want || ev.SaysMore() {
			t.Errorf("%q: the plan is %q, with %+v", summary, ev.Detail, ev.Fields)
		}
	}
}
