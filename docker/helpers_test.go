package docker

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// localImage is the files of an image that is made without any network: a shell and the scripted agents. They are
// put together once.
func localImage(t testing.TB) *Build {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		leaveOut(t, "busybox is not installed (Debian: busybox-static)")
	}
	dir := filepath.Join(filepath.Dir(tool(t, "program")), "image")
	imageFiles.once.Do(func() {
		if imageFiles.err = os.Mkdir(dir, 0o700); imageFiles.err != nil {
			return
		}
		for name, from := range map[string]string{"busybox": busybox, "program": tool(t, "program")} {
			raw, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, name), string(raw), 0o755)
		}
		write(t, filepath.Join(dir, "Dockerfile"), dockerfile, 0o644)
	})
	if imageFiles.err != nil {
		t.Fatal(imageFiles.err)
	}
	return &Build{Dir: dir, Network: NetworkNone}
}

var imageFiles, imageThere struct {
	once sync.Once
	err  error
}

const dockerfile = `FROM scratch
COPY busybox /bin/busybox
RUN ["/bin/busybox", "--install", "-s", "/bin"]
COPY program /usr/local/bin/claude
COPY program /usr/local/bin/codex
COPY program /usr/local/bin/model
RUN mkdir -p /tmp /var/tmp /run /etc && chmod 1777 /tmp /var/tmp && echo "root:x:0:0::/:/bin/sh" >/etc/passwd
ENV PATH=/usr/local/bin:/bin
`

// machineImage is that image in the engine of this machine, where it is built once.
func machineImage(t testing.TB, e *Engine) string {
	t.Helper()
	b := localImage(t)
	tag, err := b.tag()
	if err != nil {
		t.Fatal(err)
	}
	imageThere.once.Do(func() {
		_, imageThere.err = e.base(t.Context(), Options{Build: b, Owner: "test"}, tag)
	})
	if imageThere.err != nil {
		t.Fatal(imageThere.err)
	}
	return tag
}

func write(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	when := time.Unix(1, 0) // an engine's cache looks at times
	if err := os.Chtimes(path, when, when); err != nil {
		t.Fatal(err)
	}
}

// testOptions are those of a sandbox of its own, which is gone with the test.
func testOptions(t testing.TB, e *Engine) Options {
	t.Helper()
	project := t.TempDir()
	if err := os.Chmod(project, 0o755); err != nil {
		t.Fatal(err)
	}
	o := Options{
		Engine: e, Owner: strings.ReplaceAll(uuid.NewString(), "-", "")[:12], Name: t.Name(), Dir: t.TempDir(),
		Supervisor: tool(t, "ductor-supervisor"), Projects: []string{project}, Network: NetworkNone,
		Grace: time.Second, OrphanAfter: time.Minute,
	}
	if e.host == machineHost() {
		o.Image = machineImage(t, e)
	} else {
		o.Build = localImage(t)
	}
	t.Cleanup(func() { wipe(t, e, o) })
	return o
}

// wipe removes all that is of an owner.
func wipe(t testing.TB, e *Engine, o Options) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := e.Clean(ctx, o.Owner, nil); err != nil {
		t.Error(err)
	}
	homes, err := e.Homes(ctx, o.Owner, "")
	if err != nil {
		t.Error(err)
	}
	for _, home := range homes {
		if err := e.Forget(ctx, o.Owner, home.Name); err != nil {
			t.Error(err)
		}
	}
}

// open opens a launcher that is closed with the test.
func open(t testing.TB, o Options) *Launcher {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// inDocker runs docker's own program: what a person does behind ductor's back.
func inDocker(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	nap := 10 * time.Millisecond
	for until := time.Now().Add(30 * time.Second); !ok(); time.Sleep(nap) {
		nap = min(2*nap, 200*time.Millisecond) // what is asked for is dear, and many ask
		if time.Now().After(until) {
			t.Fatalf("%s: not in 30 s", what)
		}
	}
}
