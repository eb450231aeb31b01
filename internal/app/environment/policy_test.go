package environment

import (
	"os"
	"path/filepath"
	"testing"

	"ductor/cli"
	"ductor/docker"
	"ductor/internal/config"
	"ductor/orchestrator"
)

func TestPolicyByDirectory(t *testing.T) {
	here := orchestrator.ConversationID{Chat: -7, Topic: 3}
	base := cli.RealPath(t.TempDir())
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
