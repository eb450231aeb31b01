package environment

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/docker"
	"ductor/internal/config"
	"ductor/orchestrator"
)

func TestPolicyByDirectory(t *testing.T) {
	here := orchestrator.ConversationID{Chat: -7, Topic: 3}
	base := realDir(t.TempDir())
	at := func(path string) string { return filepath.Join(base, path) }
	for _, dir := range []string{"web/shop/inner", "open/x", "other", "data/linked/sub"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(at("data/linked"), at("linked")); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	project := func(dir, mode string) config.SandboxProject {
		p := config.SandboxProject{Dir: at(dir), Settings: cfg.Sandbox.Settings}
		p.Mode = mode
		return p
	}
	cfg.Projects.Roots = []string{base}
	cfg.Sandbox.Projects = map[string]config.SandboxProject{
		"web": project("web", "docker"), "inner": project("web/shop/inner", "off"), "open": project("open", "off"),
		"linked": project("linked", "docker"), "missing": project("missing", "docker"),
	}
	// Links that an agent inside the sandbox web can plant.
	for link, to := range map[string]string{"web/out": "other", "web/open": "open", "other/in": "web"} {
		if err := os.Symlink(at(to), at(link)); err != nil {
			t.Fatal(err)
		}
	}
	off := NewPolicy(cfg)
	cfg.Sandbox.Mode = orchestrator.SandboxDocker
	on := NewPolicy(cfg)
	for _, c := range []struct {
		dir      string
		off, on  cli.Sandbox // by the mode of [sandbox]
		onDemand cli.Sandbox
	}{
		{"web", "web", "web", "web"},
		{"web/shop", "web", "web", "web"},
		{"website", "", "default", "default"},
		{"web/shop/inner", "", "", "inner"},
		{"open/x", "", "", "open"},
		{"open/../web", "web", "web", "web"},
		{"other", "", "default", "default"},
		{"linked", "linked", "linked", "linked"},
		{"data/linked/sub", "linked", "linked", "linked"},
		{"data", "", "default", "default"},
		{"missing/x", "missing", "missing", "missing"},
		{"web/out", "web", "web", "web"},
		{"web/open/x", "web", "web", "web"},
		{"web/out/nothing/there", "web", "web", "web"},
		{"other/in", "web", "default", "web"},
	} {
		if got := off.Of(at(c.dir), here); got != c.off {
			t.Errorf("without a general sandbox %s is in %q, want %q", c.dir, got, c.off)
		}
		if got := on.Of(at(c.dir), here); got != c.on {
			t.Errorf("with a general sandbox %s is in %q, want %q", c.dir, got, c.on)
		}
		if got, err := off.Forced(at(c.dir), here); got != c.onDemand || err != nil {
			t.Errorf("%s is forced into %q, %v, want %q", c.dir, got, err, c.onDemand)
		}
	}
	cfg.Sandbox.Isolation = docker.IsolationConversation
	alone := NewPolicy(cfg)
	if got := alone.Of(at("other"), here); got != "default/-7/3" {
		t.Errorf("with a container for each conversation other is in %q", got)
	}
	if got := alone.Of(at("web"), here); got != "web" {
		t.Errorf("web says that all share it, and is in %q", got)
	}
	cfg.Sandbox = config.Default().Sandbox
	none := NewPolicy(cfg)
	if got := none.Of(at("web"), here); got != "" {
		t.Errorf("without any sandbox web is in %q", got)
	}
	if got, err := none.Forced(at("web"), here); err == nil {
		t.Errorf("without any sandbox web is forced into %q", got)
	}
}

func TestWhetherAnythingRunsOnThisMachine(t *testing.T) {
	cfg := config.Default()
	for _, c := range []struct {
		general string
		project string
		want    bool
	}{{"off", "off", true}, {"off", "docker", true}, {"docker", "off", true}, {"docker", "docker", false}} {
		cfg.Sandbox.Mode = c.general
		p := config.SandboxProject{Dir: "/web", Settings: cfg.Sandbox.Settings}
		p.Mode = c.project
		cfg.Sandbox.Projects = map[string]config.SandboxProject{"web": p}
		if got := NewPolicy(cfg).OnHost(); got != c.want {
			t.Errorf("%+v gives %v", c, got)
		}
	}
}

// An agent in a sandbox replaces the directory of a project by a link, and ductor starts again. The target of the link
// gets no other environment: it neither loses its sandbox nor is mounted into the sandbox of the project.
func TestAttackALinkInPlaceOfAProjectOfTheSandbox(t *testing.T) {
	const docker, off = orchestrator.SandboxDocker, orchestrator.SandboxOff
	for _, c := range []struct {
		name, general string
		replaced, to  string            // paths; the root of projects is src
		refused       string            // names of the projects whose links ductor does not follow
		environmentOf map[string]string // after the attack, by path
	}{
		{name: "the root leaves its sandbox", general: docker, replaced: "src/open", to: "src", refused: "open",
			environmentOf: map[string]string{"src": "default", "src/other": "default", "src/web": "web"}},
		{name: "a directory leaves its sandbox", general: docker, replaced: "src/open", to: "src/other",
			refused: "open", environmentOf: map[string]string{"src/other": "default", "src/open": "default"}},
		{name: "a project leaves its sandbox", general: docker, replaced: "src/open", to: "src/web", refused: "open",
			environmentOf: map[string]string{"src/web": "web", "src/web/inner": "inner"}},
		{name: "a project gets the directory of another", general: docker, replaced: "src/web", to: "src/open",
			refused: "web inner", environmentOf: map[string]string{"src/open": "web", "src/open/inner": "inner"}},
		{name: "a project gets the user's home", general: docker, replaced: "src/web", to: "home",
			refused: "web inner", environmentOf: map[string]string{"src/web": "web", "src/other": "default"}},
		{name: "a project gets a directory of this host", general: off, replaced: "src/web/inner", to: "src/other",
			refused: "inner", environmentOf: map[string]string{"src/other": "inner", "src/web": "web", "src": ""}},
		{name: "a project gets another project", general: off, replaced: "src/web/inner", to: "src/box",
			refused: "inner", environmentOf: map[string]string{"src/box": "box"}},
		{name: "the owner moves a project", general: off, replaced: "src/web", to: "src/other",
			environmentOf: map[string]string{"src/web": "web", "src/other": "web", "src": ""}},
		{name: "the owner moves a project inside a sandbox", general: docker, replaced: "src/web", to: "src/other",
			environmentOf: map[string]string{"src/web": "web", "src/other": "web", "src": "default"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := realDir(t.TempDir())
			at := func(path string) string { return filepath.Join(base, path) }
			cfg := config.Default()
			cfg.Projects.Roots, cfg.Storage.Dir = []string{at("src")}, t.TempDir()
			cfg.Sandbox.Mode, cfg.Sandbox.Projects = c.general, map[string]config.SandboxProject{}
			for name, dir := range map[string]string{
				"web": "src/web", "inner": "src/web/inner", "box": "src/box", "open": "src/open",
			} {
				p := config.SandboxProject{Dir: at(dir), Settings: cfg.Sandbox.Settings}
				p.Mode = docker
				if name == "open" {
					p.Mode = off
				}
				cfg.Sandbox.Projects[name] = p
			}
			for _, dir := range []string{"src/web/inner", "src/box", "src/open", "src/other", "home"} {
				if err := os.MkdirAll(at(dir), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(os.Rename(at(c.replaced), at("moved")),
				os.Symlink(at(c.to), at(c.replaced))); err != nil {
				t.Fatal(err)
			}
			s, err := OpenSandboxes(cfg, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for _, b := range s.Configured() {
				refused := slices.Contains(strings.Fields(c.refused), b.Name)
				if err := s.Policy().CheckLink(b.Name); refused != (err != nil) {
					t.Errorf("the link of %s: %v", b.Name, err)
				}
				if refused && (b.Launcher != nil || !strings.Contains(fmt.Sprint(b.Err), at(c.to))) {
					t.Errorf("the sandbox %s mounts the target of the link: %v", b.Name, b.Err)
				}
			}
			for dir, want := range c.environmentOf {
				if got := s.Policy().Of(at(dir), orchestrator.ConversationID{Chat: 1}); got != cli.Sandbox(want) {
					t.Errorf("%s is in %q, want %q", dir, got, want)
				}
			}
		})
	}
}

// The owner may link a project and a directory around it. The inner project belongs to the sandbox of neither.
func TestAProjectInsideALinkedProject(t *testing.T) {
	base := realDir(t.TempDir())
	at := func(path string) string { return filepath.Join(base, path) }
	if err := errors.Join(os.MkdirAll(at("src/data/web/inner"), 0o700),
		os.Symlink("data/web", at("src/web"))); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Projects.Roots, cfg.Sandbox.Projects = []string{at("src")}, map[string]config.SandboxProject{}
	for name, dir := range map[string]string{"web": "src/web", "a-inner": "src/web/inner"} {
		p := config.SandboxProject{Dir: at(dir), Settings: cfg.Sandbox.Settings}
		p.Mode = orchestrator.SandboxDocker
		cfg.Sandbox.Projects[name] = p
	}
	p := NewPolicy(cfg)
	for dir, want := range map[string]cli.Sandbox{
		"src/data/web": "web", "src/data/web/inner": "a-inner", "src/data": "",
	} {
		err := p.CheckLink(string(want))
		if got := p.Of(at(dir), orchestrator.ConversationID{}); got != want || err != nil {
			t.Errorf("%s is in %q, want %q: %v", dir, got, want, err)
		}
	}
}
