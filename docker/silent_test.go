package docker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ductor/cli"
	"ductor/docker/dockertest"
)

// relay returns an engine behind a socket whose connections the test handles.
func relay(t testing.TB, wait time.Duration, handle func(net.Conn)) *Engine {
	t.Helper()
	dir, err := os.MkdirTemp("", "ds") // paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				handle(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close() // stops accepting; connections end with the engine's client
		serving.Wait()
		_ = os.RemoveAll(dir) // at worst a leftover in the temporary directory
	})
	return connectTo(t, EngineOptions{Host: "unix://" + dir + "/sock", Wait: wait})
}

// silentEngine accepts connections and data, and never answers.
func silentEngine(t testing.TB) *Engine {
	t.Helper()
	return relay(t, 50*time.Millisecond, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }) // until it is closed
}

// silentOn is the machine's engine, except that it never answers requests that contain a word. ductor waits for each of
// its answers for a second.
func silentOn(t testing.TB, word string) *Engine {
	t.Helper()
	return filteredEngine(t, time.Second, func(request []byte) (pass bool) {
		return !bytes.Contains(request, []byte(word))
	})
}

// filteredEngine is the machine's engine, with a function that checks each request first. After it rejects one, the
// connection stays silent. See EngineOptions.Wait for wait.
func filteredEngine(t testing.TB, wait time.Duration, look func(request []byte) (pass bool)) *Engine {
	t.Helper()
	return relay(t, wait, func(conn net.Conn) {
		engine, err := net.Dial("unix", strings.TrimPrefix(dockertest.Host(), "unix://"))
		if err != nil {
			return // closes without an answer
		}
		defer engine.Close()
		var answers sync.WaitGroup
		defer answers.Wait()
		answers.Go(func() {
			_, _ = io.Copy(conn, engine) // until either side closes
			_ = conn.Close()             // as the engine did
		})
		for buf := make([]byte, 64<<10); ; {
			n, err := conn.Read(buf)
			if !look(buf[:n]) {
				_, _ = io.Copy(io.Discard, conn)
				err = io.EOF
			}
			if err == nil {
				_, err = engine.Write(buf[:n])
			}
			if err != nil {
				_ = engine.Close() // ends the answers
				return
			}
		}
	})
}

// If an unused image is removed between its inspection and the creation of the container, it is made again.
func TestAnImageThatIsRemovedInBetweenIsMadeAgain(t *testing.T) {
	dockertest.Need(t)
	o := testOptions(t, connectTo(t, EngineOptions{Host: dockertest.Host()}))
	o.User = "1234:1234" // needs an image of its own
	images, err := open(t, o).Images(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	removed := 0
	o.Engine = filteredEngine(t, 0, func(request []byte) bool {
		if removed == 0 && bytes.Contains(request, []byte("/containers/create?name=")) {
			removed++
			if out, err := exec.Command("docker", "-H", dockertest.Host(), "rmi",
				images[len(images)-1]).CombinedOutput(); err != nil {
				t.Errorf("%s, %v", out, err)
			}
		}
		return true
	})
	if err := open(t, o).Prepare(t.Context()); err != nil || removed == 0 {
		t.Errorf("%d images were removed: %v", removed, err)
	}
}

// withDeadline returns the error of a function that must not block forever.
func withDeadline(t testing.TB, do func(ctx context.Context) error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do(context.Background()) }()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		t.Fatal("it waits for ever")
		return nil
	}
}

// An engine that accepts every request and answers none blocks no caller forever.
func TestEngineThatNeverAnswers(t *testing.T) {
	t.Parallel()
	for _, remote := range []bool{false, true} {
		e := silentEngine(t)
		e.remote = remote
		o := Options{
			Engine: e, Owner: "me", Name: "x", Dir: t.TempDir(),
			ContainerSettings: ContainerSettings{Runner: dockertest.Tool(t, dockertest.Runner), Image: "any"},
			Projects:          []string{t.TempDir()}, Shared: []string{t.TempDir()},
		}
		file := filepath.Join(o.Shared[0], "file")
		dockertest.Write(t, file, "x", 0o644)
		s := newSandbox(t, o)
		fails := func(name string, do func(ctx context.Context) error) {
			t.Run(name, func(t *testing.T) {
				s.forSubtest(t).expectFailure(withDeadline(t, do), "in time", "docker info")
			})
		}
		fails("start", func(ctx context.Context) error {
			_, err := s.Launcher.Start(ctx, shell(o, s.canary, "true"))
			return err
		})
		fails("left", func(ctx context.Context) error { _, err := s.Left(ctx); return err })
		fails("attach", func(ctx context.Context) error {
			_, err := s.Attach(ctx, cli.LeftRun{Run: "RUN"}, 0)
			return err
		})
		fails("prepare", s.Prepare)
		fails("retire", func(ctx context.Context) error { _, err := s.Retire(ctx, 0); return err })
		fails("home", func(ctx context.Context) error { _, err := s.Home(ctx, "one"); return err })
		fails("homes of sessions", func(ctx context.Context) error { _, err := s.SessionHomes(ctx); return err })
		fails("status", func(ctx context.Context) error { _, err := s.Status(ctx); return err })
		fails("images", func(ctx context.Context) error { _, err := s.Images(ctx); return err })
		fails("check", e.Check)
		fails("clean", func(ctx context.Context) error { _, err := e.Clean(ctx, "me", nil); return err })
		fails("clean images", func(ctx context.Context) error { _, err := e.CleanImages(ctx, "me", nil); return err })
		fails("homes", func(ctx context.Context) error { _, err := e.Homes(ctx, "me", ""); return err })
		fails("forget", func(ctx context.Context) error { return e.Forget(ctx, "me", "x") })
		fails("send", func(ctx context.Context) error { return e.Send(ctx, e, "any") })
		if remote {
			fails("bring", func(ctx context.Context) error { return s.Bring(ctx, []string{file}) })
		}
	}
}

// Neither does an engine that stops answering at any step of a start, and the next start works.
func TestEngineThatStopsAnswering(t *testing.T) {
	t.Parallel()
	machine := needEngine(t)
	for _, word := range []string{"/_ping", "/images/", "/containers/create", "/archive", "/start HTTP",
		"/exec HTTP", "/exec/"} {
		t.Run(strings.Trim(word, "/"), func(t *testing.T) {
			t.Parallel()
			o := testOptions(t, machine)
			key := t.TempDir() + "/key"
			dockertest.Write(t, key, "k3y", 0o600)
			o.Seeds = []Seed{{From: key, To: "key"}}
			hanging := o
			hanging.Engine = silentOn(t, word)
			s := newSandbox(t, hanging)
			s.expectFailure(withDeadline(t, func(ctx context.Context) error {
				_, err := s.Launcher.Start(ctx, shell(o, s.canary, "true"))
				return err
			}), "in time")
			newSandbox(t, o).runTurn()
		})
	}
}

// A timeout is reported as such, whether the context or the connection noticed it first.
func TestTimeoutsAreReportedAsTimeouts(t *testing.T) {
	e := &Engine{host: "unix:///x"}
	for _, late := range []error{
		context.DeadlineExceeded, fmt.Errorf("exec: %w", context.Canceled),
		fmt.Errorf("exec: %w", &net.OpError{Op: "read", Net: "unix", Err: os.ErrDeadlineExceeded}),
	} {
		if err := e.describe("start a program",
			late); !strings.Contains(err.Error(), "did not start a program in time") {
			t.Errorf("%v is told as %v", late, err)
		}
	}
	err := e.describe("start a program", &net.OpError{Op: "dial", Net: "unix", Err: syscall.ENOENT})
	if !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("a socket that is not there is told as %v", err)
	}
}
