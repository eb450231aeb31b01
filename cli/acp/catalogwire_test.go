package acp

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ductor/cli"
)

// TestTheCatalogue tests that the embedded file is valid and has the agents that the issue asks for.
func TestTheCatalogue(t *testing.T) {
	entries, err := parseCatalogue(catalogueFile)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < 15 {
		t.Errorf("the catalogue has %d agents", len(entries))
	}
	commands := map[string]string{}
	for _, e := range entries {
		if other := commands[e.Command]; other != "" {
			t.Errorf("%s and %s are the same program", e.ID, other)
		}
		commands[e.Command] = e.ID
		if slices.Contains([]string{"claude", "codex", "gemini", "copilot"}, e.ID) {
			t.Errorf("%s is an agent of ductor's own", e.ID)
		}
		if got, known := EntryOf("/usr/bin/" + e.Command); !known || got.ID != e.ID {
			t.Errorf("the program %s is %q", e.Command, got.ID)
		}
	}
	for line := range strings.Lines(catalogueFile[:strings.Index(catalogueFile, "[agents.")]) {
		name, _, found := strings.Cut(line, " = ")
		used := func(e Entry) bool { return slices.Contains(slices.Collect(maps.Values(e.Source)), name) }
		if found && !slices.ContainsFunc(entries, used) {
			t.Errorf("no field has the source %s", name)
		}
	}
	if !reflect.DeepEqual(Catalogue(), entries) {
		t.Error("Catalogue returns other entries")
	}
	e, _ := FindEntry("opencode")
	own := map[cli.PermissionMode]Holding{cli.Ask: {}}
	p := New(Options{ProviderOptions: cli.ProviderOptions{Path: "/opt/bin/opencode"}, Agent: "mine", Holds: own})
	if got := p.ResumeCommand("ses_1"); !slices.Equal(got, []string{"/opt/bin/opencode", "--session", "ses_1"}) {
		t.Errorf("a session resumes by %q", got)
	}
	if !reflect.DeepEqual(p.opts.Holds[cli.Plan], e.Holds[cli.Plan]) ||
		!reflect.DeepEqual(p.opts.Holds[cli.Ask], Holding{}) || e.Holds[cli.Ask].Mode != "build" {
		t.Errorf("it is held by %+v", p.opts.Holds)
	}
	unknown := New(Options{ProviderOptions: cli.ProviderOptions{Path: "/opt/bin/other"}, Agent: "opencode"})
	if got := unknown.ResumeCommand("ses_1"); got != nil || len(unknown.opts.Holds) > 0 {
		t.Errorf("another program resumes by %q, and is held by %+v", got, unknown.opts.Holds)
	}
}

func TestAWrongCatalogue(t *testing.T) {
	good := `[sources]
web = "https://example.org"
[agents.one]
name = "One"
command = "one"
site = "https://example.org"
source = { name = "web", command = "web", site = "web" }
`
	with := func(line, source string) string {
		return strings.Replace(strings.Replace(good, "site =", line+"\nsite =", 1), "{ name", "{ "+source+"name", 1)
	}
	if _, err := parseCatalogue(good); err != nil {
		t.Fatal(err)
	}
	if _, err := parseCatalogue(with(`install = "npm"`, `install = "web", `)); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"[agents":                           "read the catalogue",
		strings.ReplaceAll(good, "One", ""): "needs a name",
		strings.ReplaceAll(good, `"one"`, `"/bin/one"`):                            "without a directory",
		with(`install = "npm"`, ""):                                                "install needs a source",
		with("", `install = "web", `):                                              "a field that it lacks",
		with(`install = "npm"`, `install = "x", `):                                 "install needs a source",
		with("", `colour = "web", `):                                               "a field that it lacks",
		with(`colour = "red"`, ""):                                                 "read the catalogue",
		with(`loads = "maybe"`, `loads = "web", `):                                 "are yes or no",
		with(`resume = ["one"]`, `resume = "web", `):                               "does not name the session",
		with(`holds.plan = {}`, `holds = "web", `):                                 "holds.plan",
		with(`holds.sleep = { mode = "x" }`, `holds = "web", `):                    "holds.sleep",
		with(`holds.plan = { option = "x" }`, `holds = "web", `):                   "holds.plan",
		with(`install = "`+strings.Repeat("x", maxText)+`y"`, `install = "web", `): "too long",
	} {
		if got, err := parseCatalogue(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.300s\nhas %v, %v, want %q", text, got, err, want)
		}
	}
}

func FuzzParseCatalogue(f *testing.F) {
	f.Add(catalogueFile[:2000])
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := parseCatalogue(text)
		for _, e := range entries {
			if err != nil || e.Name == "" || e.Command == "" || len(e.Source) == 0 {
				t.Errorf("%v: %+v", err, e)
			}
		}
	})
}
