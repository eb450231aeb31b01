package dockertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// Programs that tests put into containers; see Tool.
const (
	Runner  = "ductor-runner"
	Program = "program" // the scripted agents and the scripted model
)

// built contains the programs that Tool returns. A test binary builds them once.
var built tools

// environ is the environment at the start of the test binary. Tests change HOME, but a build needs the cache in the
// original HOME.
var environ = os.Environ()

type tools struct {
	once sync.Once
	dir  string
	err  error
}

func (b *tools) make() {
	b.dir, b.err = os.MkdirTemp("", "ductor-docker-test-")
	for name, from := range map[string]string{Runner: "ductor/cmd/ductor-runner", Program: "ductor/docker/testdata/program"} {
		if b.err != nil {
			return
		}
		build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(b.dir, name), from)
		build.Env = append(slices.Clip(environ), "CGO_ENABLED=0")
		build.Stderr = os.Stderr
		b.err = build.Run()
	}
}

// Tool builds a static program and returns its path. name is Runner or Program.
func Tool(t testing.TB, name string) string {
	t.Helper()
	built.once.Do(built.make)
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, name)
}

// Clean removes the files that Tool created. Call it at the end of TestMain.
func Clean() {
	if built.dir != "" {
		_ = os.RemoveAll(built.dir) // an error only leaves files in the temporary directory
	}
}

// ImageDir returns a directory from which an engine can build an image without network access. The image contains a
// shell and the scripted agents. If a test mounts a real Codex at /opt/codex, the image uses it instead of the scripted
// Codex. A test binary creates the directory once.
func ImageDir(t testing.TB) string {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		LeaveOut(t, "busybox is not installed (Debian: busybox-static)")
	}
	dir := filepath.Join(filepath.Dir(Tool(t, Program)), "image")
	image.once.Do(func() {
		image.err = fillImage(dir,
			map[string]string{"busybox": busybox, "program": Tool(t, Program)})
	})
	if image.err != nil {
		t.Fatal(image.err)
	}
	return dir
}

var image struct {
	once sync.Once
	err  error
}

func fillImage(dir string, programs map[string]string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for name, from := range programs {
		raw, err := os.ReadFile(from)
		if err == nil {
			err = writeOld(filepath.Join(dir, name), string(raw), 0o755)
		}
		if err != nil {
			return err
		}
	}
	return writeOld(filepath.Join(dir, "Dockerfile"), dockerfile, 0o644)
}

const dockerfile = `FROM scratch
COPY busybox /bin/busybox
RUN ["/bin/busybox", "--install", "-s", "/bin"]
COPY program /usr/local/bin/claude
COPY program /usr/local/bin/codex
COPY program /usr/local/bin/model
RUN mkdir -p /tmp /var/tmp /run /etc && chmod 1777 /tmp /var/tmp && echo "root:x:0:0::/:/bin/sh" >/etc/passwd
ENV PATH=/opt/codex:/usr/local/bin:/bin
`

// Build builds the image of ImageDir in the engine at host, with additional steps in the Dockerfile. At the end of the
// test, it removes the image with this name.
func Build(t testing.TB, host, name, steps string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "Dockerfile")
	Write(t, file, dockerfile+steps, 0o644)
	On(t, host, "build", "--quiet", "--network", "none", "--tag", name, "--file", file, ImageDir(t))
	t.Cleanup(func() { _, _ = runDocker(host, "rmi", "--force", name) }) // the image may have been removed
}

// Write creates a file with a fixed modification time, so that an engine can use its build cache.
func Write(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	if err := writeOld(path, text, mode); err != nil {
		t.Fatal(err)
	}
}

func writeOld(path, text string, mode os.FileMode) error {
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		return err
	}
	when := time.Unix(1, 0)
	return os.Chtimes(path, when, when)
}
