package environment

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"ductor/cli"
	"ductor/docker"
	"ductor/internal/config"
	"ductor/internal/runner"
)

// smallName is the program that owns agents in containers, and on this machine in less memory than ductor does.
const smallName = "ductor-runner"

// embeddedDir is the directory of embedded.
const embeddedDir = "program"

// smallProgram says where ductor-runner is.
type smallProgram struct {
	path string
	make func(context.Context) error // sees that it is there; nil where it is
	slow bool                        // make takes long the first time
}

// findSmall finds ductor-runner in this program, which a release is built with, beside it, or by name. Elsewhere it is to be built
// from the source that this program was built from.
func findSmall(cfg config.Config) smallProgram {
	dir := filepath.Join(cfg.Storage.Dir, programDir)
	if files, err := fs.Glob(embedded, embeddedDir+"/"+smallName+"-*"); err == nil && len(files) == 1 {
		m := &maker{dir: dir, file: filepath.Base(files[0]), write: func(_ context.Context, path string) error {
			program, err := embedded.ReadFile(files[0])
			if err != nil {
				return err
			}
			return os.WriteFile(path, program, 0o700)
		}}
		return smallProgram{path: m.path(), make: m.make}
	}
	if path := installedSmall(); path != "" {
		return smallProgram{path: path}
	}
	b := builder{source: sourceDir(), projects: slices.Clone(cfg.Projects.Roots)}
	for _, p := range cfg.Sandbox.Projects {
		b.projects = append(b.projects, p.Dir)
	}
	m := &maker{dir: dir, file: smallName + "-" + ownID(), write: b.build}
	if m.made() {
		return smallProgram{path: m.path()}
	}
	return smallProgram{path: m.path(), make: m.make, slow: true}
}

// installedSmall is the path of ductor-runner beside ductor or by name; empty where it is not there, or speaks another version.
func installedSmall() string {
	path := besideOwn()
	if _, err := os.Stat(path); err != nil {
		if path, err = exec.LookPath(smallName); err != nil {
			return ""
		}
	}
	var other *runner.VersionError
	if err := runner.CheckVersion(context.Background(), path); errors.As(err, &other) {
		return ""
	}
	return path
}

// besideOwn is the path of ductor-runner beside this program.
func besideOwn() string {
	own, err := os.Executable()
	if err != nil {
		return smallName
	}
	return filepath.Join(filepath.Dir(own), smallName)
}

// maker keeps a program in a directory: a file named by what it was made of, and a link to it whose name stays. Safe for
// concurrent use, also by several processes.
type maker struct {
	dir   string
	file  string // its name
	write func(ctx context.Context, path string) error
	mu    sync.Mutex
}

func (m *maker) path() string { return filepath.Join(m.dir, smallName) }

// made says whether the program is there.
func (m *maker) made() bool {
	to, err := os.Readlink(m.path())
	_, gone := os.Stat(m.path())
	return err == nil && gone == nil && to == m.file
}

// make makes the program if it is not there, and removes the one before.
func (m *maker) make(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made() {
		return nil
	}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return fmt.Errorf("make a directory for %s: %w", smallName, err)
	}
	work, err := os.MkdirTemp(m.dir, "making-")
	if err != nil {
		return fmt.Errorf("make a directory for %s: %w", smallName, err)
	}
	defer func() { _ = os.RemoveAll(work) }() // what is left takes room alone
	program, link := filepath.Join(work, "program"), filepath.Join(work, "link")
	if err := m.write(ctx, program); err != nil {
		return err
	}
	if err := syncFile(program); err != nil { // it is not looked at again once it has its name
		return fmt.Errorf("keep %s: %w", smallName, err)
	}
	before, _ := os.Readlink(m.path()) // none: there is nothing to remove
	if err := errors.Join(os.Rename(program, filepath.Join(m.dir, m.file)), os.Symlink(m.file, link), os.Rename(link, m.path())); err != nil {
		return fmt.Errorf("keep %s: %w", smallName, err)
	}
	if before != "" && before != m.file {
		_ = os.Remove(filepath.Join(m.dir, filepath.Base(before)))
	}
	return nil
}

// syncFile brings a file to the disk.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// builder builds ductor-runner.
type builder struct {
	source   string   // the source of ductor; empty where this program does not know it
	projects []string // where agents write
}

const (
	goPlace   = "/usr/local/go/bin/go" // for services, whose PATH is short
	endOfPipe = 5 * time.Second        // how long programs that the Go tool started may hold its output after its end
)

// build builds ductor-runner without the network. Its errors are of *docker.Error, and say what to do.
func (b builder) build(ctx context.Context, path string) error {
	const args = "build ./cmd/" + smallName
	byHand := "run in the source of ductor: CGO_ENABLED=0 go build -o " + besideOwn() + " ./cmd/" + smallName
	if b.source == "" {
		return &docker.Error{Reason: "the program " + smallName + " is not there, which runs in every container", Fix: byHand}
	}
	if slices.ContainsFunc(b.projects, func(dir string) bool { return cli.Lies(realDir(b.source), realDir(dir)) }) {
		return &docker.Error{Reason: "ductor builds no program from " + b.source + ", where agents may write", Fix: byHand}
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		tool = goPlace
	}
	cmd := exec.CommandContext(ctx, tool, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path, "./cmd/"+smallName)
	cmd.Dir, cmd.Env, cmd.WaitDelay = b.source, goEnv(), endOfPipe
	out, err := cmd.CombinedOutput()
	if err == nil {
		if err = runner.CheckVersion(ctx, path); err != nil {
			out = []byte("the source in " + b.source + " changed since ductor was built of it: build ductor anew")
		}
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return &docker.Error{Reason: strings.TrimSuffix("go "+args+" fails: "+lines[len(lines)-1], ": "), Fix: byHand, Err: err}
	}
	return nil
}

// goEnv is the environment of the Go tool: a static program, of modules that are on this machine.
func goEnv() []string {
	env := []string{"CGO_ENABLED=0", "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOWORK=off"}
	for _, name := range []string{"PATH", "HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR", "GOCACHE", "GOMODCACHE", "GOPATH", "GOTOOLCHAIN"} {
		if value, is := os.LookupEnv(name); is {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// sourceDir is the directory of the source that this program was built from; empty where it is not there or -trimpath removed its name.
func sourceDir() string {
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(file), "../../..")
	if _, err := os.Stat(filepath.Join(dir, "cmd", smallName)); err != nil || !filepath.IsAbs(dir) {
		return ""
	}
	return dir
}

// ownID names the build of this program.
func ownID() string {
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		return runtime.Version()
	}
	defer f.Close()
	var note []byte
	if s := f.Section(".note.go.buildid"); s != nil {
		note, _ = s.Data() // what cannot be read is as if it were not there
	}
	sum := sha256.Sum256(note)
	return hex.EncodeToString(sum[:6])
}

// HostRunner says how the runner of this machine is started: by ductor-runner where it is there and of this version, otherwise by
// ductor itself, which does the same in more memory.
func HostRunner(ctx context.Context, cfg config.Config, log *slog.Logger) runner.Options {
	small := findSmall(cfg)
	if small.make != nil {
		if small.slow {
			return runner.Options{} // sandboxes alone are worth a build
		}
		if err := small.make(ctx); err != nil {
			log.Warn("ductor is the runner of its agents, since ductor-runner cannot be", "err", err)
			return runner.Options{}
		}
	}
	options, err := runner.Small(ctx, small.path)
	if err != nil {
		log.Warn("ductor is the runner of its agents, since ductor-runner cannot be; build both of one version", "err", err)
		return runner.Options{}
	}
	return options
}
