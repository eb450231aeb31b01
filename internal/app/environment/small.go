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

// smallName is the name of the small program that runs agents, in containers and on this machine. The program needs
// less memory than ductor.
const smallName = "ductor-runner"

const embeddedDir = "program"

// smallProgram is the location of ductor-runner, and how to install it.
type smallProgram struct {
	path string
	make func(context.Context) error // installs the program; nil if it is installed already
	slow bool                        // whether make compiles the program, which takes long
}

// findSmall finds ductor-runner. It tries these places in order: the copy embedded in a release, the directory of this
// program, PATH, and the storage directory. The storage directory is the place for a ductor-runner that ductor itself
// compiles. So if findSmall finds the program nowhere else, its result contains the function that compiles it.
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

// installedSmall returns the path of a ductor-runner beside this program or in PATH. It returns "" if none exists or
// its version differs.
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

// besideOwn returns the path for a ductor-runner in the directory of this program.
func besideOwn() string {
	own, err := os.Executable()
	if err != nil {
		return smallName
	}
	return filepath.Join(filepath.Dir(own), smallName)
}

// maker installs a program in a directory. The name of the program's file depends on its content or source. A symbolic
// link with a fixed name leads to the file. Safe for concurrent use, even by several processes.
type maker struct {
	dir   string
	file  string
	write func(ctx context.Context, path string) error
	mu    sync.Mutex
}

func (m *maker) path() string { return filepath.Join(m.dir, smallName) }

func (m *maker) made() bool {
	to, err := os.Readlink(m.path())
	_, gone := os.Stat(m.path())
	return err == nil && gone == nil && to == m.file
}

// make installs the program if necessary, and removes the previous version.
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
	defer func() { _ = os.RemoveAll(work) }()
	program, link := filepath.Join(work, "program"), filepath.Join(work, "link")
	if err := m.write(ctx, program); err != nil {
		return err
	}
	if err := syncFile(program); err != nil { // after a crash, the next start must not find an incomplete file
		return fmt.Errorf("keep %s: %w", smallName, err)
	}
	before, _ := os.Readlink(m.path()) // empty if nothing was installed
	if err := errors.Join(os.Rename(program, filepath.Join(m.dir, m.file)), os.Symlink(m.file, link),
		os.Rename(link, m.path())); err != nil {
		return fmt.Errorf("keep %s: %w", smallName, err)
	}
	if before != "" && before != m.file {
		_ = os.Remove(filepath.Join(m.dir, filepath.Base(before)))
	}
	return nil
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

type builder struct {
	source   string   // source directory of ductor; empty if unknown
	projects []string // directories in which agents may write
}

const (
	goPlace   = "/usr/local/go/bin/go" // tried after PATH, because the PATH of systemd services is short
	endOfPipe = 5 * time.Second        // how long children of the Go tool may write output after the tool has exited
)

// build compiles ductor-runner without using the network. All its errors are of type *docker.Error, and describe how a
// user can fix the problem.
func (b builder) build(ctx context.Context, path string) error {
	const args = "build ./cmd/" + smallName
	byHand := "run in the source of ductor: CGO_ENABLED=0 go build -o " + besideOwn() + " ./cmd/" + smallName
	if b.source == "" {
		return &docker.Error{Reason: "the program " + smallName + ", which every container needs, is missing",
			Fix: byHand}
	}
	source := cli.RealPath(b.source)
	if slices.ContainsFunc(b.projects, func(dir string) bool { return cli.Lies(source, cli.RealPath(dir)) }) {
		return &docker.Error{Reason: "ductor does not build a program from " + b.source + ", where agents may write",
			Fix: byHand}
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		tool = goPlace
	}
	cmd := exec.CommandContext(ctx, tool, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path,
		"./cmd/"+smallName)
	cmd.Dir, cmd.Env, cmd.WaitDelay = b.source, goEnv(), endOfPipe
	out, err := cmd.CombinedOutput()
	if err == nil {
		if err = runner.CheckVersion(ctx, path); err != nil {
			out = []byte("the source in " + b.source + " changed since ductor was built: rebuild ductor")
		}
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return &docker.Error{Reason: strings.TrimSuffix("go "+args+" fails: "+lines[len(lines)-1], ": "), Fix: byHand,
			Err: err}
	}
	return nil
}

// goEnv returns an environment for the Go tool. In this environment, the tool compiles static programs and does not
// download modules.
func goEnv() []string {
	env := []string{"CGO_ENABLED=0", "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOWORK=off"}
	for _, name := range []string{"PATH", "HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR", "GOCACHE",
		"GOMODCACHE", "GOPATH", "GOTOOLCHAIN"} {
		if value, is := os.LookupEnv(name); is {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// sourceDir returns the directory with the source of this program. It returns "" if that directory no longer
// exists, or if the program was compiled with -trimpath.
func sourceDir() string {
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(file), "../../..")
	if _, err := os.Stat(filepath.Join(dir, "cmd", smallName)); err != nil || !filepath.IsAbs(dir) {
		return ""
	}
	return dir
}

// ownID returns an ID that differs between builds of this program.
func ownID() string {
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		return runtime.Version()
	}
	defer f.Close()
	var note []byte
	if s := f.Section(".note.go.buildid"); s != nil {
		note, _ = s.Data()
	}
	sum := sha256.Sum256(note)
	return hex.EncodeToString(sum[:6])
}

// HostRunner returns how to start the runner on this machine. It uses ductor-runner if that is available in the same
// version. Otherwise it uses ductor itself, which needs more memory.
func HostRunner(ctx context.Context, cfg config.Config, log *slog.Logger) runner.Options {
	small := findSmall(cfg)
	if small.make != nil {
		if small.slow {
			return runner.Options{} // do not compile ductor-runner now, because that takes long
		}
		if err := small.make(ctx); err != nil {
			log.Warn("ductor itself runs the agents, since ductor-runner failed", "err", err)
			return runner.Options{}
		}
	}
	options, err := runner.Small(ctx, small.path)
	if err != nil {
		log.Warn("ductor itself runs the agents, since ductor-runner failed; build both from the same version", "err",
			err)
		return runner.Options{}
	}
	return options
}
