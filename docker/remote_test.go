package docker

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/docker/dockertest"
)

// After a restart of an engine with live restore, the turn continues without noticing.
func TestEngineRestartsUnderATurn(t *testing.T) {
	t.Parallel()
	own := startEngine(t, "--live-restore")
	o := testOptions(t, own.connect())
	o.MaxAway = 5 * time.Minute // a restart may take a minute or two
	s := newSandbox(t, o)
	stopped := filepath.Join(o.Projects[0], "stopped")
	p := s.startReady(`until [ -e ` + stopped + ` ]; do sleep 0.1; done; echo after; cat; echo bye`)
	own.Stop()
	write(t, stopped, "", 0o644)
	own.Start()
	line := make([]byte, 6)
	if _, err := io.ReadFull(p.Stdout(), line); err != nil || string(line) != "after\n" {
		t.Fatalf("after the engine's restart it says %q, %v", line, err)
	}
	if _, err := io.WriteString(p.Stdin(), "more\n"); err != nil {
		t.Error(err)
	}
	if err := p.Stdin().Close(); err != nil {
		t.Error(err)
	}
	rest, err := io.ReadAll(p.Stdout())
	<-p.Done()
	if err != nil || string(rest) != "more\nbye\n" || p.Exit() != (cli.ExitStatus{}) {
		t.Errorf("then %q, %v, %+v", rest, err, p.Exit())
	}
	s.stop(p)
	s.runTurn()
}

// A second engine, reached through TLS and ssh, gets its image by save and load. When that engine is lost,
// conversations on the first one continue.
func TestSecondEngine(t *testing.T) {
	t.Parallel()
	first := needEngine(t)
	here := newSandbox(t, testOptions(t, first))
	here.runTurn()
	certs := dockertest.Certs(t)
	address := fmt.Sprintf("127.0.0.1:%d", dockertest.FreePort(t))
	own := &ownEngine{dockertest.Start(t, dockertest.Options{Address: address, Args: []string{"--tlsverify",
		"--tlscacert", certs + "/ca.pem", "--tlscert", certs + "/server.pem", "--tlskey", certs + "/server-key.pem",
	}}), t}
	tlsOptions := EngineOptions{
		Host: "tcp://" + address, CA: certs + "/ca.pem", Cert: certs + "/client.pem", Key: certs + "/client-key.pem",
	}
	t.Run("tls", func(t *testing.T) {
		second := connectTo(t, tlsOptions)
		o := here.o
		tag := o.Image
		for range 2 { // the second time nothing is sent
			if err := first.Send(t.Context(), second, tag); err != nil {
				t.Fatal(err)
			}
		}
		o.Engine = second
		there := newSandbox(t, o)
		there.runTurn()
		p := there.startReady("cat")
		mine := here.startReady("cat")
		own.Stop()
		there.awaitEngineEnd(p)
		_, err := there.Launcher.Start(t.Context(), shell(o, there.canary, "true"))
		there.expectFailure(err, "cannot be reached")
		if _, err := io.WriteString(mine.Stdin(), "still here\n"); err != nil {
			t.Error(err)
		}
		line := make([]byte, 11)
		if _, err := io.ReadFull(mine.Stdout(), line); err != nil || string(line) != "still here\n" {
			t.Errorf("on the first engine %q, %v", line, err)
		}
		here.stop(mine)
		own.Start()
		there.stop(p)
		there.runTurn()
	})
	// If an engine ends during a turn, the turn reports the reason. The next turn works once the engine is back.
	t.Run("ends in mid-turn", func(t *testing.T) {
		s := newSandbox(t, testOptions(t, own.connect()))
		p := s.startReady(deaf)
		own.Stop()
		s.awaitEngineEnd(p)
		_, err := s.Launcher.Start(t.Context(), shell(s.o, s.canary, "true"))
		s.expectFailure(err, "cannot be reached", "start it")
		own.Start()
		s.stop(p)
		s.runTurn()
	})
	t.Run("tls without our certificate", func(t *testing.T) {
		o := tlsOptions
		o.Cert, o.Key = "", ""
		if err := connectTo(t, o).Check(t.Context()); err == nil {
			t.Error("the engine let a stranger in")
		}
	})
	t.Run("ssh", func(t *testing.T) {
		host, config := dockertest.SSH(t)
		second := connectTo(t, EngineOptions{Host: "ssh://" + host + own.Socket(), SSHConfig: config})
		o := testOptions(t, second)
		there := newSandbox(t, o)
		there.runTurn()
		p := there.startReady(deaf)
		there.stop(p)
		there.runTurn()
	})
	t.Run("ssh to an unknown host", func(t *testing.T) {
		err := connectTo(t, EngineOptions{Host: "ssh://127.0.0.1:1"}).Check(t.Context())
		here.forSubtest(t).expectFailure(err, "cannot be reached", "ssh")
	})
}

// awaitEngineEnd waits for the end of a program whose engine shuts down, containers first. The runner or the engine may
// still report how it ended.
func (s *sandbox) awaitEngineEnd(p cli.Process) {
	s.Helper()
	if _, err := io.ReadAll(p.Stdout()); err != nil &&
		!strings.Contains(err.Error(), "the sandbox's container was stopped") &&
		!strings.Contains(err.Error(), "in time") { // while it shuts down
		s.expectFailure(err, "cannot be reached")
	}
	<-p.Done()
}

func connectTo(t testing.TB, o EngineOptions) *Engine {
	t.Helper()
	e, err := Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}
