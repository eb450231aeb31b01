package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/docker/dockertest"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
)

// The test uses two engines: this machine's, and another one that one project reaches by TLS and another by ssh. It
// observes the chats of the projects' users, two of whom share the second engine.
func TestTwoEngines(t *testing.T) {
	realagent.LongOnly(t)
	e := newEngines(t)
	e.part("each project runs on its engine", e.checkEachRunsInItsEngine)
	e.part("a file reaches another machine", e.checkFileReachesOtherMachine)
	e.part("a line that breaks for a moment", e.checkShortInterruption)
	e.part("a line that breaks for long", e.checkLongInterruption)
	e.part("an engine that is lost and comes back", e.theSecondIsLost)
}

// engines is a ductor that uses two engines.
type engines struct {
	*town
	here, byTLS, bySSH *seat
	besides            *seat // in a directory below byTLS's
	line               *line // the connection to byTLS
	second             *dockertest.Engine
}

// part runs a part of the test, and stops the test if it fails, since later ones need it.
func (e *engines) part(name string, do func()) {
	began := time.Now()
	do()
	e.t.Logf("%s: %.1f s", name, time.Since(began).Seconds())
	if e.t.Failed() {
		e.t.FailNow()
	}
}

func newEngines(t *testing.T) *engines {
	t.Helper()
	dockertest.Need(t)
	image, runner := dockertest.ImageDir(t), dockertest.Tool(t, dockertest.Runner)
	certs, at := dockertest.Certs(t), fmt.Sprintf("127.0.0.1:%d", dockertest.FreePort(t))
	e := &engines{line: newLine(t, at)}
	e.second = dockertest.Start(t, dockertest.Options{Address: at, Args: []string{"--tlsverify", "--shutdown-timeout", "5",
		"--tlscacert", certs + "/ca.pem", "--tlscert", certs + "/server.pem", "--tlskey", certs + "/server-key.pem",
	}})
	ssh, sshConfig := dockertest.SSH(t)
	here, byTLS, bySSH := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("PATH", canaries(t)+":"+os.Getenv("PATH"))
	t.Cleanup(func() { wipeSandboxes(t, e.cfg) }) // when ductor has ended
	e.town = newTown(t, func(c *config.Config) {
		a := &c.Agents
		a.Claude.Path, a.Codex.Path, a.Gemini.Enabled, a.Copilot.Enabled = "", "", false, false
		a.Grace = time.Second
		c.Telegram.AllowedUsers = []int64{owner, neighbour, friend, colleague}
		c.Permissions.Mode = "bypass"
		c.Projects.Roots, c.Projects.DefaultDir = []string{here, byTLS, bySSH}, here
		box := &c.Sandbox
		box.Mode, box.BuildDir, box.BuildNetwork, box.Network = orchestrator.SandboxDocker, image, "none", "none"
		box.Runner = runner
		tls, ssh2 := box.Settings, box.Settings
		tls.Host, tls.CA, tls.Cert, tls.Key = "tcp://"+e.line.addr, certs+"/ca.pem", certs+"/client.pem", certs+"/client-key.pem"
		ssh2.BuildDir = anotherImage(t, image)
		ssh2.Host, ssh2.SSHConfig = "ssh://"+ssh+e.second.Socket(), sshConfig
		box.Projects = map[string]config.SandboxProject{"tls": {Dir: byTLS, Settings: tls}, "ssh": {Dir: bySSH, Settings: ssh2}}
	})
	e.here = e.seat(e.chat, here)
	e.byTLS = e.seat(e.srv.Private(neighbour, "Neighbour"), byTLS)
	e.bySSH = e.seat(e.srv.Private(friend, "Friend"), bySSH)
	below := filepath.Join(byTLS, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	e.besides = e.seat(e.srv.Private(colleague, "Colleague"), below)
	return e
}

// Additional users.
const (
	friend    = neighbour + 1
	colleague = neighbour + 2
)

// anotherImage returns a directory for an image with another name. If two addresses lead to the same engine, it
// builds each image once.
func anotherImage(t *testing.T, of string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(of)); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(of, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	dockertest.Write(t, filepath.Join(dir, "Dockerfile"), string(raw)+"ENV WAY=another\n", 0o644)
	return dir
}

// canaries returns a directory with agents that leave a mark when they start: none may run on this machine.
func canaries(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	mark := filepath.Join(dir, "ran")
	for _, agent := range []string{"claude", "codex"} {
		script := "#!/bin/sh\necho \"$0 $*\" >>" + mark + "\n"
		if err := os.WriteFile(filepath.Join(dir, agent), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if raw, err := os.ReadFile(mark); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("on this machine ran %s, %v", raw, err)
		}
	})
	return dir
}

// wipeSandboxes removes everything that a ductor leaves in engines.
func wipeSandboxes(t *testing.T, cfg config.Config) {
	t.Helper()
	boxes, err := environment.OpenSandboxes(cfg, environment.NewPolicy(cfg), testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, r := range boxes.Configured() {
		err := r.Engine.Forget(ctx, environment.Owner(cfg), r.Name)
		// A starting container of another engine briefly holds the file system of this one.
		for err != nil && strings.Contains(err.Error(), "device or resource busy") && ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
			err = r.Engine.Forget(ctx, environment.Owner(cfg), r.Name)
		}
		if err != nil {
			t.Errorf("forget the sandbox %s: %v", r.Name, err)
		}
	}
	if err := boxes.Close(); err != nil {
		t.Error(err)
	}
}

// seat is a user with a project.
type seat struct {
	*town
	dir   string
	asked telegram.Message // the last prompt
}

func (e *engines) seat(chat *telegram.Chat, dir string) *seat {
	town := *e.town
	town.chat = chat
	s := &seat{town: &town, dir: dir}
	s.say("/cwd %s", dir)
	s.await(dir)
	return s
}

func (e *engines) all() []*seat { return []*seat{e.here, e.byTLS, e.bySSH, e.besides} }
func (e *engines) far() []*seat { return []*seat{e.byTLS, e.bySSH} }

// ask sends a prompt.
func (s *seat) ask(format string, args ...any) { s.asked = s.say(format, args...) }

// awaitAnswered waits for the answer to the last prompt, with its footer.
func (s *seat) awaitAnswered() telegram.Message {
	s.t.Helper()
	var m telegram.Message
	_, err := s.chat.Await(s.soon(), func(v telegram.View) bool {
		for _, m = range ended(v) {
			if m.ID > s.asked.ID {
				return true
			}
		}
		return false
	})
	if err != nil {
		s.t.Fatalf("%v\n%s", err, said(s.chat.View()))
	}
	return m
}

// awaitRefusal waits until the last prompt is answered with a reason that contains these words.
func (s *seat) awaitRefusal(words ...string) {
	s.t.Helper()
	m, err := s.chat.AwaitMessage(s.soon(), func(m telegram.Message) bool {
		return m.ID > s.asked.ID && strings.Contains(m.Text, "I run nothing outside of it")
	})
	if err != nil {
		s.t.Fatalf("%v\n%s", err, said(s.chat.View()))
	}
	s.t.Logf("%s: %q", s.chat.Person().Name(), m.Text)
	for _, word := range words {
		if !strings.Contains(m.Text, word) {
			s.t.Errorf("%q does not say %q", m.Text, word)
		}
	}
}

// readFile returns a file that agents left in the project.
func (s *seat) readFile(name string) string {
	s.t.Helper()
	awaitFile(s.t, filepath.Join(s.dir, name))
	raw, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Error(err)
	}
	return strings.TrimSpace(string(raw))
}

// createFile creates a file for which agents wait.
func (s *seat) createFile(name string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), nil, 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// checkEachRunsInItsEngine checks that each seat runs in its own engine: a container's host name is its id, which only its
// engine knows.
func (e *engines) checkEachRunsInItsEngine() {
	for _, s := range e.all() {
		s.ask(`my name is %s [[tool cmd="hostname >where"]] [[text "done"]]`, s.chat.Person().Name())
	}
	names := map[string]bool{}
	for _, s := range e.all() {
		s.awaitAnswered()
		engine, name := e.second.Docker, s.readFile("where")
		if s == e.here {
			engine = func(args ...string) string { return dockertest.Docker(e.t, args...) }
		}
		if !slices.Contains(strings.Fields(engine("ps", "--format", "{{.ID}}")), name) {
			s.t.Errorf("%s ran on %q, which its engine does not know", s.chat.Person().Name(), name)
		}
		names[name] = true
	}
	if len(names) != 3 || e.besides.readFile("where") != e.byTLS.readFile("where") {
		e.t.Errorf("three projects ran in %v", names)
	}
}

// checkFileReachesOtherMachine checks that ductor's files are not visible on another machine, except files of the
// user's message.
func (e *engines) checkFileReachesOtherMachine() {
	uploads := filepath.Join(e.cfg.Storage.Dir, environment.UploadsDir)
	if err := os.WriteFile(filepath.Join(uploads, "nobodys"), []byte("not for agents"), 0o644); err != nil {
		e.t.Fatal(err)
	}
	for _, s := range e.far() {
		s.asked = s.chat.Person().SendDocument(s.chat,
			telegram.File{Name: "notes.txt", MIME: "text/plain", Data: []byte("from " + s.dir)},
			telegram.WithCaption(
				fmt.Sprintf(`read it [[tool cmd="find %s -type f -exec cat {} + >read"]] [[text "done"]]`, uploads)))
	}
	for _, s := range e.far() {
		s.awaitAnswered()
		if got := s.readFile("read"); got != "from "+s.dir {
			s.t.Errorf("the files there say %q", got)
		}
		s.ask("what was I told? [[history]]")
		if m := s.awaitAnswered(); !strings.Contains(m.Text, uploads+"/") {
			s.t.Errorf("the agent is not told where the file is: %q", m.Text)
		}
	}
}

// long is a prompt that streams text, runs a tool until the file go exists, and streams again. The tool ignores
// signals: when its container is stopped, the agent ends before the tool and cannot continue.
const long = `[[tool cmd="rm -f go; echo $$ >>begun"]] [[text "%s before " delay=5ms chunk=3]] [[tool cmd="trap '' TERM; touch ready; until [ -e go ]; do sleep 0.05; done; rm ready"]] [[text "and after" delay=5ms chunk=3]]`

func (s *seat) begin(words string) {
	s.t.Helper()
	if err := os.RemoveAll(filepath.Join(s.dir, "ready")); err != nil { // of a lost turn
		s.t.Fatal(err)
	}
	s.ask(long, words)
	awaitFile(s.t, filepath.Join(s.dir, "ready"))
}

// finish lets a turn of long end, and checks that it ran once and that its chat shows no interruption.
func (s *seat) finish(words string) {
	s.t.Helper()
	s.createFile("go")
	m := s.awaitAnswered()
	if strings.Count(m.Text, words) != 1 || strings.Count(m.Text, "and after") != 1 || strings.Contains(m.Text, "✗") {
		s.t.Errorf("%s sees %q", s.chat.Person().Name(), m.Text)
	}
	for _, other := range s.chat.View().FromBot() {
		if other.ID > s.asked.ID && other.ID != m.ID {
			s.t.Errorf("%s was told %q", s.chat.Person().Name(), other.Text)
		}
	}
}

// checkShortInterruption checks that users notice nothing: neither during a turn, nor when they start one with an
// idle agent.
func (e *engines) checkShortInterruption() {
	e.byTLS.begin("a moment")
	e.line.cut()
	e.besides.ask(`who is there? [[text "me"]]`)
	time.Sleep(time.Second)
	e.line.mend()
	e.byTLS.finish("a moment")
	if m := e.besides.awaitAnswered(); !strings.Contains(m.Text, "me") || strings.Contains(m.Text, "second attempt") {
		e.t.Errorf("who asked while the line was cut was told %q", m.Text)
	}
}

// checkLongInterruption checks that a turn that cannot be ended is not reported as ended, and does not continue when
// another turn begins. Users of other connections notice nothing.
func (e *engines) checkLongInterruption() {
	for _, s := range e.all() {
		s.begin("for long")
	}
	e.line.cut()
	e.besides.say("/abort")
	e.byTLS.awaitRefusal("sandbox tls of Claude", "cannot be reached")
	e.besides.awaitRefusal("sandbox tls of Claude", "goes on there until it can be reached")
	e.byTLS.ask("meanwhile")
	e.byTLS.awaitRefusal("sandbox tls of Claude", e.line.addr, "cannot be reached", "start it")
	e.line.mend()
	e.runTurn(e.byTLS)
	e.runTurn(e.besides)
	e.checkNoTurnLeft(e.byTLS)
	e.here.finish("for long")
	e.bySSH.finish("for long")
}

// checkNoTurnLeft checks that no turn of long is left in a seat's container on the second engine.
func (e *engines) checkNoTurnLeft(s *seat) {
	s.t.Helper()
	if left := e.second.Docker("top", s.readFile("where"), "-eo", "pid,args"); strings.Contains(left, "until") {
		s.t.Errorf("the turn that was lost goes on:\n%s", left)
	}
}

func (e *engines) theSecondIsLost() {
	for _, s := range e.all() {
		s.begin("lost")
	}
	e.second.Stop()
	for _, s := range e.far() {
		s.awaitRefusal("sandbox ", "of Claude is missing")
		s.ask("meanwhile")
		s.awaitRefusal("sandbox ", "cannot be reached", "start it")
	}
	e.here.finish("lost")
	e.runTurn(e.here)
	e.second.Start()
	for _, s := range e.far() {
		e.runTurn(s)
	}
	e.runTurn(e.here)
}

// runTurn runs a turn successfully, in the earlier session.
func (e *engines) runTurn(s *seat) {
	s.t.Helper()
	s.ask(`and now? [[history]] [[text "fine"]]`)
	if m := s.awaitAnswered(); !strings.Contains(m.Text, "my name is "+s.chat.Person().Name()) {
		s.t.Errorf("the session was lost: %q", m.Text)
	}
}
