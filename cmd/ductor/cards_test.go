package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// write is a request for permission to write a file, as a real ACP agent sends it.
type write struct {
	params string
	file   string // relative to the working directory
	shows  []string
}

// acpWrites returns the requests that OpenCode 1.18.33, Qwen Code 0.24.4, Copilot 1.0.102 and Gemini 0.61.0 send as
// ACP agents, for files in dir.
func acpWrites(t *testing.T, dir string) map[string]write {
	t.Helper()
	long := strings.Repeat("another line of a long file\n", 12)
	text := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	type fields = map[string]any
	diff := func(path, before, after string) []fields {
		return []fields{{"type": "diff", "path": path, "oldText": before, "newText": after}}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	patch := func(path, hunk string) string {
		return "Index: " + path + "\n" + strings.Repeat("=", 67) + "\n--- " + path + "\n+++ " + path + "\n" + hunk
	}
	middle := "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
	return map[string]write{
		"opencode, a new file": {text(fields{"title": at("x.txt"), "locations": []fields{{"path": at("x.txt")}},
			"rawInput": fields{"filepath": at("x.txt"),
				"diff": patch(at("x.txt"), "@@ -0,0 +1,1 @@\n+x\n\\ No newline at end of file\n")},
			"content": diff(at("x.txt"), "", "x")}), "x.txt", []string{"➕ x.txt +1", "+x"}},
		"opencode, a line in the middle": {text(fields{"title": at("old.txt"),
			"locations": []fields{{"path": at("old.txt")}},
			"rawInput":  fields{"filepath": at("old.txt"), "diff": patch(at("old.txt"), middle)},
			"content":   diff(at("old.txt"), "one\ntwo\nthree\n", "one\n2\nthree\n")}), "old.txt",
			[]string{"✎ old.txt +1 −1", "-two\n+2"}},
		"opencode, an indented line, whose diff fits no file": {
			text(fields{"title": at("old.txt"), "locations": []fields{{"path": at("old.txt")}},
				"rawInput": fields{"filepath": at("old.txt"), "diff": patch(at("old.txt"), middle)}}), "old.txt",
			[]string{"✎ old.txt +1 −1", "-two\n+2"}},
		"copilot, a new file": {text(fields{"title": "Create file", "locations": []fields{{"path": at("n.txt")}},
			"rawInput": fields{"fileName": at("n.txt"), "diff": "\ndiff --git a" + at("n.txt") + " b" + at("n.txt") +
				"\ncreate file mode 100644\nindex 0000000..0000000\n--- a/dev/null\n+++ b" + at("n.txt") +
				"\n@@ -1,0 +1,1 @@\n+hey\n"}}),
			"n.txt", []string{"➕ n.txt +1", "+hey"}},
		"qwen, a long file": {text(fields{"title": "Writing to q.txt", "locations": []fields{{"path": at("q.txt")}},
			"_meta":    fields{"toolName": "write_file"},
			"rawInput": fields{"file_path": at("q.txt"), "content": long}, "content": diff(at("q.txt"), "", long)}),
			"q.txt", []string{"➕ q.txt +12"}},
		"qwen, a line in the middle": {text(fields{"title": "old.txt: two => 2",
			"locations": []fields{{"path": at("old.txt")}}, "_meta": fields{"toolName": "edit"},
			"rawInput": fields{"file_path": at("old.txt"), "old_string": "two", "new_string": "2"},
			"content":  diff(at("old.txt"), "one\ntwo\nthree\n", "one\n2\nthree\n")}), "old.txt",
			[]string{"✎ old.txt +1 −1", "-two\n+2"}},
		"gemini, a new file": {text(fields{"title": "Writing to g.txt", "locations": []fields{{"path": at("g.txt")}},
			"content": []fields{{"type": "diff", "path": at("g.txt"), "oldText": "", "newText": "hey",
				"_meta": fields{"kind": "add"}}}}), "g.txt", []string{"➕ g.txt +1", "+hey"}},
	}
}

// acpAttack returns a town whose agent is configured in [agents.acp.gem], in a permission mode. Its project contains
// old.txt.
func acpAttack(t *testing.T, mode string) *approvalTown {
	t.Helper()
	town := newTown(t, func(cfg *config.Config) {
		cfg.Permissions.Mode = cli.PermissionMode(mode)
		cfg.Agents.ACP = overACP("gem", cfg.Agents.Gemini.Path, "DUCTOR_SIM_HOME")
		cfg.Agents.Default, cfg.Agents.Fallback = "gem", nil
	})
	if err := os.WriteFile(filepath.Join(town.cfg.Projects.DefaultDir, "old.txt"), []byte("one\ntwo\nthree\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	return &approvalTown{ordeal: &ordeal{town: town}}
}

// A card that shows the whole change of a file can be allowed at once, and offers to accept edits, even if the
// request repeats the change.
func TestAWriteThatTheCardShowsIsAllowedAtOnce(t *testing.T) {
	a := acpAttack(t, "ask")
	writes := acpWrites(t, a.cfg.Projects.DefaultDir)
	for _, name := range slices.Sorted(maps.Keys(writes)) {
		w := writes[name]
		card := a.request("edit", w.params)
		title := "🔐 May Gem change this file?"
		if strings.HasPrefix(w.shows[0], "➕") {
			title = "🔐 May Gem create this file?"
		}
		for _, part := range append(w.shows, title) {
			if !strings.Contains(card.Text, part) {
				t.Errorf("%s: the card does not show %q: %q", name, part, card.Text)
			}
		}
		for _, noise := range []string{"This is cut off here", "rawInput", "toolCall", "_meta", "Create file"} {
			if strings.Contains(card.Text, noise) {
				t.Errorf("%s: the card shows %q: %q", name, noise, card.Text)
			}
		}
		if card.HasButton("📄 Full text") || !card.HasButton("✅ Accept edits from now on") {
			t.Errorf("%s: the buttons are %v", name, card.Keyboard)
		}
		if answer := a.pressOn(card, "✅ Allow once"); answer.Text != "Allowed." {
			t.Errorf("%s: Allow once answers %q", name, answer.Text)
		}
		a.awaitEnd("[allowed]")
	}
}

// In accept-edits, a write of any ACP agent is allowed, unless the request contains more than the change.
func TestWritesOfACPAgentsGoThroughWhereEditsAreAccepted(t *testing.T) {
	a := acpAttack(t, "accept-edits")
	dir := a.cfg.Projects.DefaultDir
	writes := acpWrites(t, dir)
	for _, name := range slices.Sorted(maps.Keys(writes)) {
		a.say(`[[start]] [[request edit params="%s"]] [[text "end"]]`, quotedParams(writes[name].params))
		a.awaitEnd("[allowed]")
	}
	if cards := slices.DeleteFunc(a.chat.View().FromBot(), func(m telegram.Message) bool {
		return !strings.Contains(m.Text, "🔐 May")
	}); len(cards) > 0 {
		t.Errorf("%d cards: %q", len(cards), cards[0].Text)
	}
	change := fmt.Sprintf(`"content":[{"type":"diff","path":"%s/x","oldText":"","newText":"x"}]`, dir)
	for name, params := range map[string]string{
		"another text": `{"title":"x","rawInput":{"file_path":"` + dir + `/x","content":"y"},` + change + `}`,
		"another file": `{"title":"x","rawInput":{"file_path":"/etc/passwd","content":"x"},` + change + `}`,
		"a file mode": `{"title":"x","rawInput":{"file_path":"` + dir +
			`/x","diff":"create file mode 100755\n@@ -0,0 +1 @@\n+x\n"},` + change + `}`,
		"an unknown field": `{"title":"x","rawInput":{"then":"run it"},` + change + `}`,
		"a warning": `{"title":"x","content":[{"type":"content","content":{"type":"text","text":"careful"}},` +
			strings.TrimPrefix(change, `"content":[`) + `}`,
		"outside": `{"title":"x","content":[{"type":"diff","path":"/etc/passwd","oldText":"","newText":"x"}]}`,
		"a hidden file": `{"title":"x","content":[{"type":"diff","path":"` + dir +
			`/.envrc","oldText":"","newText":"x"}]}`,
		"no diff, no texts": `{"title":"x","rawInput":{"file_path":"` + dir + `/x"}}`,
	} {
		t.Log(name)
		card := a.request("edit", params)
		a.pressOn(card, "⛔ Deny")
		a.awaitEnd("[denied]")
	}
}

// agentTown returns a town with one agent in the mode ask. "gem" is Gemini, configured in [agents.acp.gem].
func agentTown(t *testing.T, agent string) *approvalTown {
	t.Helper()
	if agent == "gem" {
		return acpAttack(t, "ask")
	}
	town := newTown(t, func(cfg *config.Config) {
		cfg.Permissions.Mode, cfg.Agents.Default, cfg.Agents.Fallback = "ask", cli.Agent(agent), nil
	})
	return &approvalTown{ordeal: &ordeal{town: town}}
}

// With every agent, the card of a command shows the command and the agent's own description, and no terms of a
// protocol.
func TestTheCardOfACommandShowsTheCommand(t *testing.T) {
	for agent, c := range map[string]struct{ kind, params string }{
		"claude": {"Bash", `{"command":"make x","description":"Build it","run_in_background":false}`},
		"codex": {"item/commandExecution/requestApproval",
			`{"kind":"command","environmentId":"local","reason":"Build it","command":"/bin/bash -lc 'make x'","commandActions":[{"type":"unknown","command":"make x"}],"availableDecisions":["accept","cancel"]}`},
		"copilot": {"shell",
			`{"fullCommandText":"make x","shellType":"bash","intention":"Build it","commands":[{"identifier":"make x","readOnly":false}],"possiblePaths":["x"],"hasWriteFileRedirection":false}`},
		"gemini": {"execute",
			`{"title":"make x","content":[{"type":"content","content":{"type":"text","text":"[current working directory DIR] (Build it)"}}],"locations":[]}`},
		"gem": {"execute",
			`{"title":"make x (Build it)","content":[],"locations":[],"rawInput":{"command":"make x","description":"Build it","is_background":false},"_meta":{"toolName":"run_shell_command"}}`},
	} {
		t.Run(agent, func(t *testing.T) {
			a := agentTown(t, agent)
			c.params = strings.ReplaceAll(c.params, "DIR", a.cfg.Projects.DefaultDir)
			want := "🔐 May " + strings.ToUpper(agent[:1]) + agent[1:] +
				" run this command?\nmake x\nIt says: Build it\nIf you don't answer by "
			card := a.request(c.kind, c.params)
			if !strings.HasPrefix(card.Text, want) || strings.Count(card.Text, "\n") != 3 ||
				card.HasButton("📄 Full text") {
				t.Errorf("the card shows %q with %v, want %q", card.Text, card.Keyboard, want)
			}
			a.pressOn(card, "⛔ Deny")
			a.awaitEnd("[denied]")
			if card = a.request(c.kind, strings.ReplaceAll(c.params, "Build it",
				"Run a command")); strings.Contains(strings.ToLower(card.Text), "run a command") {
				t.Errorf("the card shows %q", card.Text)
			}
			a.pressOn(card, "⛔ Deny")
			a.awaitEnd("[denied]")
		})
	}
}

// A card distinguishes new files from changed ones, even if the agent does not.
func TestACardTellsANewFileFromAChangedOne(t *testing.T) {
	write := func(path string) string { return `{"file_path":"` + path + `","content":"x\n"}` }
	edit := func(path string) string {
		return `{"fileName":"` + path +
			`","intention":"Edit file","diff":"@@ -1 +1 @@\n-y\n+x\n","newFileContents":"x\n","canOfferSessionApproval":true,` +
			`"fileEdits":[{"before":{"path":"` + path + `","content":"y\n"},"after":{"path":"` + path +
			`","content":"x\n"}}]}`
	}
	for agent, c := range map[string]struct {
		kind   string
		params func(path string) string
		files  map[string]string
	}{
		"claude": {"Write", write, map[string]string{"new.txt": "➕ new.txt +1", "old.txt": "✎ old.txt +1",
			"empty.txt": "✎ empty.txt +1"}},
		"copilot": {"write", edit, map[string]string{"old.txt": "✎ old.txt +1 −1"}},
	} {
		t.Run(agent, func(t *testing.T) {
			a := agentTown(t, agent)
			a.makeFile("old.txt", []byte("y\n"))
			a.makeFile("empty.txt", nil)
			for name, shows := range c.files {
				card := a.request(c.kind, c.params(filepath.Join(a.cfg.Projects.DefaultDir, name)))
				verb := "change"
				if strings.HasPrefix(shows, "➕") {
					verb = "create"
				}
				if want := verb + " this file?\n" + shows; !strings.Contains(card.Text, want) {
					t.Errorf("%s: the card shows %q, want %q", name, card.Text, want)
				}
				a.pressOn(card, "⛔ Deny")
				a.awaitEnd("[denied]")
			}
		})
	}
}
