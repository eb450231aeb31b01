package environment

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/container"

	"ductor/cli"
	"ductor/docker"
	"ductor/docker/dockertest"
	"ductor/internal/config"
	"ductor/lang"
	"ductor/orchestrator"
)

// fakeEngine answers like an engine that has every image and no container. It starts no programs.
type fakeEngine struct {
	host string

	mu     sync.Mutex
	mounts []string // "source target" of each writable directory that it was told to mount
}

func newFakeEngine(t *testing.T) *fakeEngine {
	t.Helper()
	dir, err := os.MkdirTemp("", "fe") // paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // at worst a leftover in the temporary directory
	e := &fakeEngine{host: "unix://" + filepath.Join(dir, "sock")}
	l, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(e.serve)}}
	server.Start()
	t.Cleanup(server.Close)
	return e
}

func (e *fakeEngine) serve(out http.ResponseWriter, r *http.Request) {
	answer := `{}`
	switch path := r.URL.Path; {
	case strings.Contains(path, "/images/"):
		answer = `{"Id":"sha256:1"}`
	case strings.HasSuffix(path, "/containers/create"):
		var c struct{ HostConfig container.HostConfig }
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		e.mu.Lock()
		for _, m := range c.HostConfig.Mounts {
			if mount := m.Source + " " + m.Target; filepath.IsAbs(m.Source) && !slices.Contains(e.mounts, mount) {
				e.mounts = append(e.mounts, mount) // ductor may create the container twice, because it never starts
			}
		}
		e.mu.Unlock()
		out.WriteHeader(http.StatusCreated)
		answer = `{"Id":"c1"}`
	case strings.Contains(path, "/containers/") && strings.HasSuffix(path, "/json"):
		out.WriteHeader(http.StatusNotFound)
		answer = `{"message":"no such container"}`
	case strings.HasSuffix(path, "/exec"):
		out.WriteHeader(http.StatusInternalServerError)
		answer = `{"message":"this engine starts no programs"}`
	}
	_, _ = io.WriteString(out, answer) // the client reports a broken answer
}

// mounted returns the mounts of the containers that the engine created since the last call.
func (e *fakeEngine) mounted() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.mounts
	e.mounts = nil
	return all
}

// fixture is a configuration with projects in a temporary directory, in which an agent replaces directories.
type fixture struct {
	t      *testing.T
	base   string
	cfg    config.Config
	engine *fakeEngine
}

// newFixture creates a configuration with the root "src" and these projects, by name. Each has the path of its directory
// and perhaps the word "off" after it. general is the mode of all other directories.
func newFixture(t *testing.T, general string, projects map[string]string) *fixture {
	t.Helper()
	w := &fixture{t: t, base: cli.RealPath(t.TempDir()), cfg: config.Default(), engine: newFakeEngine(t)}
	w.mkdir("src", "home")
	w.cfg.Projects.Roots, w.cfg.Storage.Dir = []string{w.at("src")}, t.TempDir()
	set := &w.cfg.Sandbox.Settings
	set.Mode, set.Host, set.Image, set.Runner = general, w.engine.host, "any", dockertest.Tool(t, dockertest.Runner)
	w.cfg.Sandbox.Projects = map[string]config.SandboxProject{}
	for name, dir := range projects {
		dir, off, _ := strings.Cut(dir, " ")
		p := config.SandboxProject{Dir: w.at(dir), Settings: w.cfg.Sandbox.Settings}
		p.Mode = cmp.Or(off, orchestrator.SandboxDocker)
		w.cfg.Sandbox.Projects[name] = p
	}
	return w
}

func (w *fixture) at(path string) string { return filepath.Join(w.base, path) }

func (w *fixture) mkdir(dirs ...string) {
	w.t.Helper()
	for _, dir := range dirs {
		if err := os.MkdirAll(w.at(dir), 0o700); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *fixture) link(at, to string) {
	w.t.Helper()
	if err := os.Symlink(w.at(to), w.at(at)); err != nil {
		w.t.Fatal(err)
	}
}

// replace puts a link in place of a directory, as an agent can that may write beside it.
func (w *fixture) replace(dir, to string) {
	w.t.Helper()
	if err := os.Rename(w.at(dir), w.at(dir)+".moved"); err != nil {
		w.t.Fatal(err)
	}
	w.link(dir, to)
}

// open starts ductor with the configuration.
func (w *fixture) open() *Sandboxes {
	w.t.Helper()
	s, err := OpenSandboxes(w.cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return s
}

// wantMounts expects that the next container of a sandbox gets these mounts, each "source target".
func (w *fixture) wantMounts(s *Sandboxes, sandbox string, mounts ...string) {
	w.t.Helper()
	err := s.Find(cli.Sandbox(sandbox)).Launcher.Prepare(w.t.Context())
	for i, m := range mounts {
		source, target, _ := strings.Cut(m, " ")
		mounts[i] = w.at(source) + " " + w.at(cmp.Or(target, source))
	}
	if got := w.engine.mounted(); !slices.Equal(got, mounts) {
		w.t.Errorf("the sandbox %s mounts %q, want %q: %v", sandbox, got, mounts, err)
	}
}

// wantRefusal expects that a sandbox gets no container, because a link leads a directory to another one.
func (w *fixture) wantRefusal(s *Sandboxes, sandbox, dir, to string) {
	w.t.Helper()
	err := s.Find(cli.Sandbox(sandbox)).Launcher.Prepare(w.t.Context())
	if got := w.engine.mounted(); len(got) > 0 {
		w.t.Errorf("the sandbox %s mounts %q", sandbox, got)
	}
	var f *cli.Failure
	if !errors.As(err, &f) || f.Kind != cli.NoSandbox {
		w.t.Fatalf("the sandbox %s is refused with %v", sandbox, err)
	}
	for _, language := range lang.Languages() {
		sentence := f.Sentence(language.Printer())
		for _, part := range []string{w.at(dir) + " ", w.at(to), "ductor"} {
			if !strings.Contains(sentence, part) {
				w.t.Errorf("%q does not say %q", sentence, part)
			}
		}
	}
}

// An agent that may write beside the directory of a project replaces it by a link to the user's home, while ductor runs
// or before it starts. The home is not mounted, and the project works again once its directory is back.
func TestAttackALinkInPlaceOfAProjectsDirectory(t *testing.T) {
	w := newFixture(t, orchestrator.SandboxDocker, map[string]string{"web": "src/web", "inner": "src/web/inner"})
	w.mkdir("src/web/inner", "home/inner")
	running := w.open()
	w.wantMounts(running, "web", "src/web")
	w.wantMounts(running, "inner", "src/web/inner")
	w.replace("src/web", "home")
	for _, s := range []*Sandboxes{running, w.open()} {
		w.wantRefusal(s, "web", "src/web", "home")
		w.wantRefusal(s, "inner", "src/web/inner", "home/inner")
		w.wantMounts(s, "default", "src")
	}
	restarted := w.open()
	if err := errors.Join(os.Remove(w.at("src/web")), os.Rename(w.at("src/web.moved"), w.at("src/web"))); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Sandboxes{running, restarted} {
		w.wantMounts(s, "web", "src/web")
		w.wantMounts(s, "inner", "src/web/inner")
	}
}

// An agent replaces a directory above the project, or a root, or plants a link where a directory was missing.
func TestAttackALinkAboveAProject(t *testing.T) {
	w := newFixture(t, orchestrator.SandboxDocker, map[string]string{"web": "src/a/web", "new": "src/a/new"})
	w.mkdir("src/a/web", "home/web", "home/new", "other")
	w.cfg.Projects.Roots = append(w.cfg.Projects.Roots, w.at("other"))
	s := w.open()
	w.wantMounts(s, "default", "src", "other")
	w.link("src/a/new", "home")
	w.wantRefusal(s, "new", "src/a/new", "home")
	w.replace("src/a", "home")
	w.wantRefusal(s, "web", "src/a/web", "home/web")
	if err := os.Remove(w.at("src/a")); err != nil {
		t.Fatal(err)
	}
	w.link("src/a", "src/a")
	w.wantRefusal(s, "web", "src/a/web", "src/a/web") // ductor cannot see where the link leads
	w.replace("other", "home")
	w.wantRefusal(s, "default", "other", "home")
}

// A root may be a link, and so may a project and a directory above it, if the link was there when ductor started and
// leads inside the roots. A link that changes later has its effect at the next start.
func TestLinksOfTheOwner(t *testing.T) {
	w := newFixture(t, orchestrator.SandboxOff, map[string]string{
		"web": "work/web", "inner": "work/web/inner", "open": "work/web/open off", "app": "work/current",
		"new": "work/new", "moved": "work/moved", "below": "work/moved/below",
	})
	w.mkdir("data/web/inner", "data/web/open", "data/v1", "data/v2", "data/old/below")
	w.link("work", "data")
	w.link("data/current", "data/v1")
	w.link("data/moved", "data/old")
	w.cfg.Projects.Roots = []string{w.at("work")}
	s := w.open()
	w.wantMounts(s, "default", "data", "data work")
	w.wantMounts(s, "web", "data/web", "data/web work/web")
	w.wantMounts(s, "inner", "data/web/inner", "data/web/inner work/web/inner")
	w.wantMounts(s, "app", "data/v1", "data/v1 work/current")
	w.wantMounts(s, "below", "data/old/below", "data/old/below work/moved/below")
	w.mkdir("data/new")
	w.wantMounts(s, "new", "data/new", "data/new work/new")
	for dir, want := range map[string]cli.Sandbox{
		"work/web": "web", "data/web": "web", "data/web/inner": "inner", "data/web/open": "", "data/v1": "app",
		"work/current": "app", "data/v2": "", "data/old": "moved", "data/old/below": "below", "data/new": "new",
	} {
		if got := s.Policy().Of(w.at(dir), orchestrator.ConversationID{}); got != want {
			t.Errorf("%s is in %q, want %q", dir, got, want)
		}
	}
	if err := os.Remove(w.at("data/current")); err != nil {
		t.Fatal(err)
	}
	w.link("data/current", "data/v2")
	w.wantRefusal(s, "app", "work/current", "data/v2")
	w.wantMounts(w.open(), "app", "data/v2", "data/v2 work/current")
}

// A link that an agent planted before the start neither moves a project into another environment nor takes a directory
// out of its sandbox.
func TestAttackALinkIntoAnotherEnvironment(t *testing.T) {
	const box, off = orchestrator.SandboxDocker, orchestrator.SandboxOff
	for _, c := range []struct {
		name, general string
		replaced, to  string
		refused       string                 // the sandbox that gets no container
		environmentOf map[string]cli.Sandbox // after the start, by path
	}{
		{name: "into another project", general: off, replaced: "src/web", to: "src/box", refused: "web",
			environmentOf: map[string]cli.Sandbox{"src/web": "web", "src/box": "box"}},
		{name: "into a project without a sandbox", general: off, replaced: "src/web", to: "src/open", refused: "web",
			environmentOf: map[string]cli.Sandbox{"src/web": "web", "src/open": ""}},
		{name: "below another project", general: box, replaced: "src/web", to: "src/box/sub", refused: "web",
			environmentOf: map[string]cli.Sandbox{"src/box/sub": "box"}},
		{name: "around another project", general: box, replaced: "src/web", to: "src/more", refused: "web",
			environmentOf: map[string]cli.Sandbox{"src/more": "default", "src/more/deep": "deep"}},
		{name: "to the root", general: box, replaced: "src/web", to: "src", refused: "web",
			environmentOf: map[string]cli.Sandbox{"src": "default", "src/other": "default"}},
		{name: "from a project to the default environment", general: box, replaced: "src/web/inner",
			to: "src/other", refused: "inner",
			environmentOf: map[string]cli.Sandbox{"src/other": "default", "src/web": "web"}},
		{name: "from a project to this host", general: off, replaced: "src/web/inner", to: "src/other",
			refused:       "inner",
			environmentOf: map[string]cli.Sandbox{"src/web/inner": "inner", "src/other": "inner", "src": ""}},
		{name: "all directories leave the sandbox", general: box, replaced: "src/open", to: "src",
			environmentOf: map[string]cli.Sandbox{"src": "default", "src/other": "default", "src/web": "web"}},
		{name: "a directory leaves the sandbox", general: box, replaced: "src/open", to: "src/other",
			environmentOf: map[string]cli.Sandbox{"src/other": "default", "src/open": "default"}},
		{name: "a project leaves its sandbox", general: off, replaced: "src/open", to: "src/web",
			environmentOf: map[string]cli.Sandbox{"src/web": "web", "src/web/inner": "inner"}},
		{name: "a part of a project leaves its sandbox", general: off, replaced: "src/web/out", to: "src/web/inner",
			environmentOf: map[string]cli.Sandbox{"src/web/inner": "inner", "src/web": "web"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFixture(t, c.general, map[string]string{
				"web": "src/web", "inner": "src/web/inner", "box": "src/box", "deep": "src/more/deep",
				"open": "src/open off", "out": "src/web/out off",
			})
			w.mkdir("src/web/inner", "src/web/out", "src/box/sub", "src/more/deep", "src/open", "src/other")
			w.replace(c.replaced, c.to)
			s := w.open()
			for dir, want := range c.environmentOf {
				if got := s.Policy().Of(w.at(dir), orchestrator.ConversationID{}); got != want {
					t.Errorf("%s is in %q, want %q", dir, got, want)
				}
			}
			if c.refused != "" {
				w.wantRefusal(s, c.refused, c.replaced, c.to)
			}
			for _, b := range s.Configured() {
				if linked := cli.Lies(b.folders[0].dir, w.at(c.replaced)); linked != (b.CheckFolders() != nil) {
					t.Errorf("the folder of %s: %v", b.Name, b.CheckFolders())
				}
			}
		})
	}
}

// An engine on another machine does not see the directories of this machine. So its mounts have the configured paths, and
// no link on this machine stops it.
func TestLinksOfAnotherMachine(t *testing.T) {
	w := newFixture(t, orchestrator.SandboxDocker, map[string]string{"web": "src/web"})
	w.mkdir("src/web")
	s := w.open()
	b := *s.Find("web")
	engine, err := docker.Connect(docker.EngineOptions{Host: "tcp://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	b.Engine = engine
	b.folders = []folder{{dir: w.at("src/web"), real: w.at("data/web")}}
	o, err := s.options(&b)
	if err != nil || o.CheckMounts != nil || !slices.Equal(o.Projects, []string{w.at("data/web"), w.at("src/web")}) ||
		len(o.Mounts) > 0 {
		t.Errorf("it mounts %q and %v: %v", o.Projects, o.Mounts, err)
	}
}
