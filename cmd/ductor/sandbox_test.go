package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ductor/cli"
	"ductor/docker"
	"ductor/docker/dockertest"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
)

// engineHost returns the address of this machine's engine, or skips the test.
func engineHost(t testing.TB) string {
	t.Helper()
	dockertest.Need(t)
	return dockertest.Host()
}

// boxes puts a town's projects into sandboxes of an image that it builds, and removes them after the test.
func boxes(t testing.TB, host string, c *config.Config) {
	t.Helper()
	s := &c.Sandbox.Settings
	s.Mode, s.Host, s.BuildDir, s.BuildNetwork, s.Network = orchestrator.SandboxDocker, host, dockertest.ImageDir(t), "none", "none"
	s.Runner = dockertest.Tool(t, dockertest.Runner)
	c.Permissions.Mode = "bypass"
	t.Cleanup(func() { wipe(t, *c) })
}

// wipe removes everything of a configuration from its engine.
func wipe(t testing.TB, cfg config.Config) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	owner := environment.Owner(cfg)
	e, err := docker.Connect(docker.EngineOptions{Host: dockertest.Host()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Clean(ctx, owner, nil); err != nil {
		t.Error(err)
	}
	homes, err := e.Homes(ctx, owner, "")
	if err != nil {
		t.Error(err)
	}
	for _, home := range homes {
		if err := e.Forget(ctx, owner, home.Name); err != nil {
			t.Error(err)
		}
	}
}

// hostCanary returns an agent of this machine that records every use except for its version.
func hostCanary(t testing.TB, c *config.Config) (sang func() string) {
	t.Helper()
	dir := t.TempDir()
	note := filepath.Join(dir, "note")
	c.Agents.Claude.Path = filepath.Join(dir, "claude")
	script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in --version) echo 2.1.0;; *) echo \"$*\" >>%q;; esac\n", note)
	if err := os.WriteFile(c.Agents.Claude.Path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() string {
		raw, err := os.ReadFile(note)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		return string(raw)
	}
}

func TestTheScriptedAgentInASandbox(t *testing.T) {
	host := engineHost(t)
	var sang func() string
	town := newTown(t, func(c *config.Config) {
		boxes(t, host, c)
		sang = hostCanary(t, c)
		c.Projects.Roots = append(c.Projects.Roots, filepath.Join(t.TempDir(), "not-there"))
	})
	project := town.cfg.Projects.DefaultDir
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("out-of-reach"), 0o644); err != nil {
		t.Fatal(err)
	}

	town.say(
		`hello [[tool cmd="tr '\\0' ' ' </proc/1/cmdline; echo made >made.txt; cat %s"]] [[text "It is **done**, " chunk=2 delay=60ms]] [[text "inside."]]`, secret)
	m := town.awaitDone(1)
	if !strings.Contains(m.Text, "It is done, inside.") || !hasEntity(m, "bold", "done") || len(m.Versions) < 4 {
		t.Errorf("after %d edits the card says %q", len(m.Versions), m.Text)
	}
	if strings.Contains(m.Text, "out-of-reach") {
		t.Errorf("it read a file of this machine: %q", m.Text)
	}
	if b, err := os.ReadFile(filepath.Join(project, "made.txt")); err != nil || string(b) != "made\n" {
		t.Errorf("what it wrote is %q, %v", b, err)
	}

	town.chat.Person().SendDocument(town.chat,
		telegram.File{Name: "notes.txt", MIME: "text/plain", Data: []byte("forty-two")},
		telegram.WithCaption(fmt.Sprintf(`read it [[tool cmd="find %s -name '*notes.txt' -exec cp {} copied.txt ';'"]]`,
			filepath.Join(town.cfg.Storage.Dir, environment.UploadsDir))))
	town.awaitDone(2)
	if b, err := os.ReadFile(filepath.Join(project, "copied.txt")); err != nil || string(b) != "forty-two" {
		t.Errorf("of the file that was sent it saw %q, %v", b, err)
	}

	town.stop()
	town.start()
	town.say("and after a restart? [[history]]")
	if m := town.awaitDone(3); !strings.Contains(m.Text, "hello") {
		t.Errorf("the session did not survive: %q", m.Text)
	}
	town.say("/status")
	town.await("default")

	town.say(`[[tool cmd="touch started; sleep 2"]] [[text "it went on without ductor"]]`)
	awaitFile(t, filepath.Join(project, "started"))
	town.leave()
	town.start()
	town.awaitAnswer("it went on without ductor")

	town.say(`[[tool cmd="touch again; trap '' TERM; sleep 600"]]`)
	awaitFile(t, filepath.Join(project, "again"))
	town.say("/abort")
	town.await("Aborted")
	eventually(t, "the tool to be gone", func() bool { // an agent may have been opened ahead of the next turn
		return !slices.ContainsFunc(livingIn(t, project), func(command string) bool {
			return strings.Contains(command, "sleep")
		})
	})
	if note := sang(); note != "" {
		t.Errorf("on this machine there was started: %s", note)
	}
}

func TestTheRealCodexInASandbox(t *testing.T) {
	const model = "127.0.0.1:8099"
	host := engineHost(t)
	real := realagent.Codex(t, "http://"+model)
	town := surroundings(t, func(c *config.Config) {
		boxes(t, host, c)
		c.Agents.Claude.Enabled, c.Agents.Gemini.Enabled, c.Agents.Copilot.Enabled = false, false, false
		c.Agents.Default, c.Agents.Codex.Path = "codex", real.Path
		c.Projects.DefaultDir, c.Projects.Roots = real.Work, []string{real.Work}
		c.Sandbox.Mounts = []string{filepath.Dir(real.Path) + ":/opt/codex"}
		real.Setenv(t)
	})
	town.start()
	modelInBox(t, town.cfg, model)
	town.say(
		`first question [[tool cmd="echo out-of-the-tool > made.txt; cat made.txt"]] [[text "A **streamed** answer, " chunk=3 delay=2ms]] [[text "whole."]]`)
	if m := town.awaitDone(1); !strings.Contains(m.Text, "A streamed answer, whole.") ||
		!strings.Contains(m.Text, "✓") {
		t.Errorf("the card says %q", m.Text)
	}
	if b, err := os.ReadFile(filepath.Join(real.Work, "made.txt")); err != nil || string(b) != "out-of-the-tool\n" {
		t.Errorf("the tool made %q, %v", b, err)
	}
	town.stop()
	town.start() // ends unknown runs
	modelInBox(t, town.cfg, model)
	town.say("second question [[history]]")
	if m := town.awaitDone(2); !strings.Contains(m.Text, "first question") {
		t.Errorf("a new process does not know the session: %q", m.Text)
	}
	town.say("/permissions auto")
	town.await("auto: ")
	town.say(`[[tool cmd="echo in-auto > auto.txt"]] [[text "unasked"]]`)
	town.awaitDone(3)
	if b, err := os.ReadFile(filepath.Join(real.Work, "auto.txt")); err != nil || string(b) != "in-auto\n" {
		t.Errorf("in the mode auto the tool made %q, %v", b, err)
	}
	town.say("/permissions ask")
	town.await("ask: ")
	town.say(`[[tool cmd="echo asked > asked.txt"]] [[text "asked for"]]`)
	town.press("✅ Allow once")
	town.awaitDone(4)
	if b, err := os.ReadFile(filepath.Join(real.Work, "asked.txt")); err != nil || string(b) != "asked\n" {
		t.Errorf("what was allowed made %q, %v", b, err)
	}
	town.say(
		`[[start]] [[call send_message args="{\"text\":\"out of the box\"}"]] [[call ask_user args="{\"question\":\"Which?\",\"options\":[\"Blue\"]}"]] [[call consult_with args="{\"model\":\"codex\",\"question\":\"What do you think of it?\"}"]] [[text "it was told"]]`)
	town.await("out of the box")
	town.pressOn(town.awaitButton("Blue"), "Blue")
	if m := town.awaitDone(5); !strings.Contains(m.Text, "it was told") {
		t.Errorf("after calls of tools it says %q", m.Text)
	}
	town.say("/model")
	if m := town.await("model of Codex"); len(m.Keyboard) < 3 {
		t.Errorf("the menu has no models of the Codex inside: %q %+v", m.Text, m.Keyboard)
	}
}

// modelInBox starts the simulated model inside a town's sandbox, which has no network.
func modelInBox(t testing.TB, cfg config.Config, address string) {
	t.Helper()
	s, err := environment.OpenSandboxes(cfg, environment.NewPolicy(cfg), testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	r := s.Configured()[0]
	if r.Launcher == nil {
		t.Fatal(r.Err)
	}
	p, err := r.Launcher.Start(t.Context(), cli.Command{Path: "model", Args: []string{address}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Stop(context.Background(), 0), s.Close()); err != nil {
			t.Error(err)
		}
	})
}

// door is an engine's socket that the test can close.
type door struct {
	t    testing.TB
	path string
	to   string

	mu     sync.Mutex
	listen net.Listener
	open   map[net.Conn]bool
	wg     sync.WaitGroup
}

func newDoor(t testing.TB, engine string) *door {
	t.Helper()
	dir, err := os.MkdirTemp("", "door-") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	d := &door{t: t, path: filepath.Join(dir, "sock"), to: strings.TrimPrefix(engine, "unix://"),
		open: map[net.Conn]bool{}}
	t.Cleanup(func() { d.shut(); d.wg.Wait(); _ = os.RemoveAll(dir) })
	return d
}

func (d *door) unlock() {
	d.t.Helper()
	l, err := net.Listen("unix", d.path)
	if err != nil {
		d.t.Fatal(err)
	}
	d.mu.Lock()
	d.listen = l
	d.mu.Unlock()
	d.wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			d.wg.Go(func() { d.pass(in) })
		}
	})
}

func (d *door) pass(in net.Conn) {
	out, err := net.Dial("unix", d.to)
	if err != nil {
		_ = in.Close()
		return
	}
	d.mu.Lock()
	d.open[in], d.open[out] = true, true
	shut := d.listen == nil
	d.mu.Unlock()
	defer func() {
		_, _ = in.Close(), out.Close()
		d.mu.Lock()
		delete(d.open, in)
		delete(d.open, out)
		d.mu.Unlock()
	}()
	if shut {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(out, in); _ = out.(*net.UnixConn).CloseWrite() })
	_, _ = io.Copy(in, out)
	_ = in.Close()
	both.Wait()
}

// shut closes every connection, and accepts no more.
func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.listen != nil {
		_ = d.listen.Close()
		d.listen = nil
	}
	for c := range d.open {
		_ = c.Close()
	}
}

func TestWithoutItsEngineATurnIsRefusedAndNeverRunsOnTheHost(t *testing.T) {
	d := newDoor(t, engineHost(t))
	var sang func() string
	town := surroundings(t, func(c *config.Config) {
		boxes(t, "unix://"+d.path, c)
		sang = hostCanary(t, c)
	})
	town.start()
	town.say(`[[text "not yet"]]`)
	m := town.await("cannot be reached")
	if !strings.Contains(m.Text, d.path) || !strings.Contains(m.Text, "tart it") {
		t.Errorf("the refusal has no reason or no fix: %q", m.Text)
	}
	d.unlock()
	town.say(`[[text "now it works"]]`)
	town.await("now it works")
	d.shut()
	town.say(`[[text "gone again"]]`)
	if _, err := town.chat.Await(town.soon(), func(v telegram.View) bool {
		n := 0
		for _, m := range v.FromBot() {
			if strings.Contains(m.Text, d.path) {
				n++
			}
		}
		return n == 2
	}); err != nil {
		town.fatal(err)
	}
	d.unlock()
	town.say(`[[text "and back"]]`)
	town.await("and back")
	if note := sang(); note != "" {
		t.Errorf("on this machine there was started: %s", note)
	}
}
