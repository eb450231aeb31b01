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

// The contents of a file that the diff makes are not shown again; any others are.
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

// Every value of a request is in its approval.
func TestLawAnApprovalTellsEveryField(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		input := clitest.Inputs("fullCommandText", "intention", "warning", "fileName", "resolvedPath", "diff", "newFileContents", "path", "serverName",
			"toolName", "args", "toolArgs", "url", "fact", "hookMessage", "commandSegments", "workingDirectory").Draw(rt, "input")
		var asked permissionAsked
		_ = json.Unmarshal(input, &asked) // as a parser does
		asked.Kind = rapid.SampledFrom([]string{"shell", "write", "read", "mcp", "url", "memory", "new"}).Draw(rt, "kind")
		p := newParser(turn.NewEmitter(Agent, time.Now, func(cli.Event) {}), cli.Request{Dir: "/srv/proj"})
		ev := approval(p, "a", asked, input)
		if left := clitest.Unshown(input, clitest.Shown(ev), nil); len(left) > 0 {
			rt.Fatalf("%s %s does not tell %q: %+v", asked.Kind, input, left, ev)
		}
		plan := planApproval("p", asked.Intention, asked.Diff, input)
		if left := clitest.Unshown(input, clitest.Shown(plan), nil); len(left) > 0 {
			rt.Fatalf("a plan %s does not tell %q: %+v", input, left, plan)
		}
	})
}
