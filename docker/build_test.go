package docker

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// instructions returns the lines of a Dockerfile, with continued lines joined and without comments.
func instructions(raw string) []string {
	var all []string
	joined := regexp.MustCompile(`\\\n\s*`).ReplaceAllString(regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(raw, ""),
		"")
	for line := range strings.Lines(joined) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// The shipped image contains the same agents as the tests, and nothing else determines its contents.
func TestShippedDockerfile(t *testing.T) {
	raw, err := os.ReadFile("../test/agents/package.json")
	if err != nil {
		t.Fatal(err)
	}
	var tested struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	if err := json.Unmarshal(raw, &tested); err != nil {
		t.Fatal(err)
	}
	all := instructions(string(shipped))
	if len(all) < 8 || !strings.HasPrefix(all[0], "ARG BASE=") || all[1] != "FROM ${BASE}" {
		t.Fatalf("it begins with %q", all)
	}
	args := map[string]string{}
	installed := ""
	for _, line := range all {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "ARG":
			name, value, _ := strings.Cut(rest, "=")
			args[name] = value
		case "RUN":
			if strings.Contains(rest, "npm install") {
				installed = rest
			}
		case "FROM", "ENV", "USER":
		default:
			t.Errorf("%q: the image is made of a base and of packages, there is nothing to copy from", line)
		}
	}
	if len(tested.Dependencies) < 4 {
		t.Fatalf("the tests drive %v", tested.Dependencies)
	}
	for _, word := range strings.Fields(installed) {
		name, arg, ok := strings.Cut(word, "@${")
		if !ok {
			continue
		}
		if got := args[strings.TrimSuffix(arg, "}")]; got == "" || got != tested.Dependencies[name] {
			t.Errorf("the image has %s in version %q, the tests have %q", name, got, tested.Dependencies[name])
		}
		delete(tested.Dependencies, name)
	}
	if len(tested.Dependencies) > 0 {
		t.Errorf("the image does not have %v", tested.Dependencies)
	}
	if last := all[len(all)-1]; last != "USER node" {
		t.Errorf("it ends with %q", last)
	}
}

// An engine accepts the shipped Dockerfile with a custom base, up to the first step that needs a network.
func TestShippedDockerfileIsUnderstood(t *testing.T) {
	t.Parallel()
	e := needEngine(t)
	o := testOptions(t, e)
	o.Build = &Build{Args: map[string]string{"BASE": o.Image}, Network: NetworkNone}
	o.Image = ""
	s := newSandbox(t, o)
	_, err := s.Launcher.Start(t.Context(), shell(o, s.canary, "true"))
	s.expectFailure(err, "build the image of Dockerfile: ", "apt-get: not found", "apt-get update",
		"reaches the network")
}

// The name of a built image changes with its sources and with nothing else.
func TestTagOfABuild(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/Dockerfile", "FROM scratch\n", 0o644)
	tag := func(b Build) string {
		t.Helper()
		tag, err := b.tag()
		if err != nil {
			t.Fatal(err)
		}
		return tag
	}
	one := tag(Build{Dir: dir})
	all := []string{one, tag(Build{Dir: dir, Args: map[string]string{"A": "1"}}),
		tag(Build{Dir: dir, Args: map[string]string{"A": "2"}}), tag(Build{})}
	if slices.Sort(all); len(slices.Compact(all)) != 4 {
		t.Errorf("the tags are %q", all)
	}
	if again := tag(Build{Dir: dir, Network: NetworkNone}); again != one {
		t.Errorf("%q is now %q", one, again)
	}
	var from sources
	o := Options{Build: &Build{Dir: dir}}
	for _, text := range []string{"FROM scratch\n", "FROM scratch\nENV A=1\n"} {
		if err := os.WriteFile(dir+"/Dockerfile", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := from.baseName(o); err != nil || got != tag(*o.Build) {
			t.Errorf("of %q it is %q, %v", text, got, err)
		}
	}
}
