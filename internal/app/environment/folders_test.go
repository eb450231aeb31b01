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

// fakeEngine answers like an engine that has every image. It starts no programs.
type fakeEngine struct {
	host string

	mu     sync.Mutex
	mounts []string                   // "source target" of each directory that it was told to mount
	start  func() bool                // starts a container; false breaks the connection; nil if none is kept
	kept   *container.InspectResponse // the container that exists; nil if none does
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
		var c struct {
			*container.Config
			HostConfig container.HostConfig
		}
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
		if e.start != nil {
			e.kept = &container.InspectResponse{Config: c.Config, ContainerJSONBase: &container.ContainerJSONBase{
				ID: "c1", HostConfig: &c.HostConfig, State: &container.State{Status: container.StateExited}}}
		}
		e.mu.Unlock()
		out.WriteHeader(http.StatusCreated)
		answer = `{"Id":"c1"}`
	case r.Method == http.MethodDelete:
		e.mu.Lock()
		e.kept = nil
		e.mu.Unlock()
		out.WriteHeader(http.StatusNoContent)
	case strings.HasSuffix(path, "/start"):
		if start := e.starts(); start != nil && !start() {
			panic(http.ErrAbortHandler)
		}
	case e.existing() != nil && strings.HasSuffix(path, "/json"):
		answer = string(e.existing())
	case strings.Contains(path, "/containers/") && strings.HasSuffix(path, "/json"):
		out.WriteHeader(http.StatusNotFound)
		answer = `{"message":"no such container"}`
	case strings.HasSuffix(path, "/exec"):
		out.WriteHeader(http.StatusInternalServerError)
		answer = `{"message":"this engine starts no programs"}`
	}
	_, _ = io.WriteString(out, answer) // the client reports a broken answer
}

func (e *fakeEngine) starts() func() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.kept != nil {
		e.kept.State.Running = true
	}
	return e.start
}

// onStart stops the container, keeps containers from now on, and calls start when one starts.
func (e *fakeEngine) onStart(start func() bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.start = start
	if e.kept != nil {
		e.kept.State.Running = false
	}
}

// existing returns the container as the engine describes it, or nil if none exists.
func (e *fakeEngine) existing() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.kept == nil {
		return nil
	}
	raw, _ := json.Marshal(e.kept) // it can always be encoded
	return raw
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
	s, err := OpenSandboxes(w.cfg, NewPolicy(w.cfg), slog.New(slog.DiscardHandler))
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
		{name: "into the default sandbox", general: box, replaced: "src/web", to: "src/other", refused: "web",
			environmentOf: map[string]cli.Sandbox{"src/web": "web", "src/other": "default"}},
		{name: "to all directories", general: off, replaced: "src/web/inner", to: "", refused: "inner",
			environmentOf: map[string]cli.Sandbox{"": "", "src": "", "src/other": "", "elsewhere": ""}},
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

// An agent replaces a mount or a seed of a sandbox by a link, while ductor runs or before it starts: one inside the roots,
// or one inside a mount in which agents may write.
func TestAttackALinkInPlaceOfAMount(t *testing.T) {
	for _, replaced := range []string{"src/assets", "src/web/cache", "pool/sub", "src/netrc"} {
		w := newFixture(t, orchestrator.SandboxDocker, map[string]string{"web": "src/web"})
		w.mkdir("src/assets", "src/web/cache", "pool/sub", "src/other")
		web := w.cfg.Sandbox.Projects["web"]
		web.Mounts = []string{w.at("src/assets"), w.at("src/web/cache") + ":/cache:rw", w.at("pool") + ":rw",
			w.at("pool/sub") + ":/sub"}
		web.Logins, web.Seeds = "none", []string{w.at("src/netrc") + ":.netrc"}
		w.cfg.Sandbox.Projects["web"] = web
		for _, file := range []string{"src/netrc", "home/netrc"} {
			if err := os.WriteFile(w.at(file), []byte("key"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		running := w.open()
		w.wantMount(running, "web", "src/assets")
		to := map[string]string{"src/web/cache": "src/other", "src/netrc": "home/netrc"}[replaced]
		w.replace(replaced, cmp.Or(to, "home"))
		for _, s := range []*Sandboxes{running, w.open()} {
			w.wantRefusal(s, "web", replaced, cmp.Or(to, "home"))
		}
		dir := w.at(replaced)
		if err := errors.Join(os.Remove(dir), os.Rename(dir+".moved", dir)); err != nil {
			t.Fatal(err)
		}
		w.wantMount(running, "web", "src/assets")
	}
}

// A mount and a seed may be links of the owner. Links inside the roots work if they stay in the same project, and links
// outside of the roots may even change while ductor runs.
func TestMountsBehindLinksOfTheOwner(t *testing.T) {
	w := newFixture(t, orchestrator.SandboxOff, map[string]string{"web": "src/web"})
	w.mkdir("src/web/v1", "src/v1", "lib1", "lib2")
	w.link("src/current", "src/v1")
	w.link("src/web/current", "src/web/v1")
	w.link("lib", "lib1")
	web := w.cfg.Sandbox.Projects["web"]
	web.Mounts = []string{w.at("src/current"), w.at("src/web/current") + ":/current", w.at("lib")}
	w.cfg.Sandbox.Projects["web"] = web
	s := w.open()
	w.wantMount(s, "web", "src/v1 src/current")
	if err := os.Remove(w.at("lib")); err != nil {
		t.Fatal(err)
	}
	w.link("lib", "lib2")
	w.wantMount(s, "web", "lib")
}

// wantMount expects that the next container of a sandbox gets this mount, "source target".
func (w *fixture) wantMount(s *Sandboxes, sandbox, mount string) {
	w.t.Helper()
	err := s.Find(cli.Sandbox(sandbox)).Launcher.Prepare(w.t.Context())
	source, target, _ := strings.Cut(mount, " ")
	mount = w.at(source) + " " + w.at(cmp.Or(target, source))
	if got := w.engine.mounted(); !slices.Contains(got, mount) {
		w.t.Errorf("the sandbox %s mounts %q, not %q: %v", sandbox, got, mount, err)
	}
}

// An agent replaces a root inside of another root by a link before ductor starts.
func TestAttackALinkInPlaceOfANestedRoot(t *testing.T) {
	w := newFixture(t, orchestrator.SandboxDocker, map[string]string{"web": "src/a/repo/web"})
	w.mkdir("src/a/repo/web", "src/other/web", "home/web")
	w.cfg.Projects.Roots = []string{w.at("src/a/repo"), w.at("src")}
	w.wantMounts(w.open(), "default", "src/a/repo", "src")
	w.replace("src/a/repo", "home")
	s := w.open()
	w.wantRefusal(s, "default", "src/a/repo", "home")
	w.wantRefusal(s, "web", "src/a/repo/web", "home/web")
	if got := s.Policy().Real(w.at("src/a/repo/web")); got != w.at("src/a/repo/web") {
		t.Errorf("a job of web works in %s", got)
	}
	if err := os.Remove(w.at("src/a/repo")); err != nil {
		t.Fatal(err)
	}
	w.link("src/a/repo", "src/other") // all of it is in the sandbox anyway
	s = w.open()
	w.wantMounts(s, "default", "src/other", "src", "src/other src/a/repo")
	w.wantRefusal(s, "web", "src/a/repo/web", "src/other/web")
}

// The target of a link that ductor does not follow may belong to no project, but no job moves there.
func TestAttackAJobBehindALink(t *testing.T) {
	w := newFixture(t, orchestrator.SandboxOff, map[string]string{"web": "src/web", "inner": "src/web/inner"})
	w.mkdir("src/web/inner", "src/other")
	w.replace("src/web/inner", "src/other")
	p := w.open().Policy()
	if got := p.Real(w.at("src/web/inner")); got != w.at("src/web/inner") {
		t.Errorf("a job of inner works in %s", got)
	}
	if got := p.Of(w.at("src/other"), orchestrator.ConversationID{}); got != "inner" {
		t.Errorf("a session that worked behind the link is in %q now", got)
	}
}

// A root may be missing for a time, such as one on a disk. A container of a conversation gets the roots that are there
// when the conversation first needs it.
func TestRootsThatAreMissing(t *testing.T) {
	w := newFixture(t, orchestrator.SandboxDocker, nil)
	w.cfg.Sandbox.Isolation = docker.IsolationConversation
	w.cfg.Projects.Roots = append(w.cfg.Projects.Roots, w.at("disk"), w.at("loop"))
	w.link("loop", "loop")
	s := w.open()
	w.wantMounts(s, "default/1/0", "src")
	w.mkdir("disk")
	w.wantMounts(s, "default/2/0", "src", "disk")
	if err := os.Remove(w.at("disk")); err != nil {
		t.Fatal(err)
	}
	w.wantMounts(s, "default/3/0", "src")
}

// The container of a conversation mounts the folder of its project, and not the roots.
func TestFoldersOfAConversation(t *testing.T) {
	w := newFixture(t, orchestrator.SandboxOff, map[string]string{"web": "src/web"})
	w.mkdir("src/web", "src/other")
	project := w.cfg.Sandbox.Projects["web"]
	project.Isolation = docker.IsolationConversation
	w.cfg.Sandbox.Projects["web"] = project
	w.wantMounts(w.open(), "web/1/0", "src/web")
}

// The connection to the engine breaks while it starts a container, and an agent has just replaced the project. The
// container does not stay.
func TestAttackALinkDuringAStartThatFails(t *testing.T) {
	w := newFixture(t, orchestrator.SandboxDocker, map[string]string{"web": "src/web"})
	w.mkdir("src/web")
	s := w.open()
	w.engine.onStart(func() bool { return true })
	w.wantMounts(s, "web", "src/web")
	if w.engine.existing() == nil {
		t.Fatal("the sandbox has no container")
	}
	w.engine.onStart(func() bool { w.replace("src/web", "home"); return false })
	w.wantRefusal(s, "web", "src/web", "home")
	if w.engine.existing() != nil {
		t.Error("the container stays")
	}
}

// ductor doctor does not prepare a container whose folders led elsewhere when ductor started.
func TestWhetherAContainerIsCurrent(t *testing.T) {
	w := newFixture(t, orchestrator.SandboxOff, map[string]string{"web": "src/current"})
	w.mkdir("src/v1", "src/v2")
	w.link("src/current", "src/v1")
	s := w.open()
	current := func(of *Sandboxes, want bool) {
		t.Helper()
		if got := of.Find("web").Launcher.Current(t.Context()); got != want {
			t.Errorf("the container is current: %v", got)
		}
	}
	current(s, false)
	w.engine.onStart(func() bool { return true })
	w.wantMounts(s, "web", "src/v1", "src/v1 src/current")
	current(s, true)
	if err := os.Remove(w.at("src/current")); err != nil {
		t.Fatal(err)
	}
	w.link("src/current", "src/v2")
	current(w.open(), false)
	current(s, true)
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
	for dir, want := range map[string][]string{
		"src/web":     {w.at("data/web"), w.at("src/web")},
		"src/missing": {w.at("src/missing")}, // the link that leads there may not exist on the other machine
	} {
		s.policy.folders["web"] = folder{dir: w.at(dir), real: w.at("data/web")}
		o := s.options(&b)
		if err := o.CheckMounts(); err != nil || !slices.Equal(o.Projects, want) || len(o.Mounts) > 0 {
			t.Errorf("it mounts %q and %v: %v", o.Projects, o.Mounts, err)
		}
	}
}
