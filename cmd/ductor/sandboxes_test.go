package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/docker"
	"ductor/heartbeat"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
)

// awaitAnswer waits for a complete answer that contains part.
func (town *town) awaitAnswer(part string) telegram.Message {
	town.t.Helper()
	var found telegram.Message
	_, err := town.chat.Await(town.soon(), func(v telegram.View) bool {
		for _, m := range ended(v) {
			if strings.Contains(m.Text, part) {
				found = m
				return true
			}
		}
		return false
	})
	if err != nil {
		town.fatal(err)
	}
	return found
}

// made returns a file that the agent wrote in its directory.
func made(t testing.TB, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(string(raw))
}

// Each project's agents run where its settings say, a task that requires a sandbox gets one, and a sandbox's excess
// data is removed.
func TestEachProjectRunsWhereItsSettingsSay(t *testing.T) {
	host := engineHost(t)
	const note = `[[tool cmd="if [ -d /opt/ductor ]; then echo inside $HOME; else echo outside; fi >where.txt"]]`
	var web, open string
	town, _ := dueTown(t, func(c *config.Config, schedule string) {
		boxes(t, host, c)
		web, open = filepath.Join(c.Projects.DefaultDir, "web"), filepath.Join(c.Projects.DefaultDir, "open")
		if err := errors.Join(os.Mkdir(web, 0o755), os.Mkdir(open, 0o755)); err != nil {
			t.Fatal(err)
		}
		p := config.SandboxProject{Dir: web, Settings: c.Sandbox.Settings}
		p.Home = docker.HomeSession
		c.Sandbox.Projects = map[string]config.SandboxProject{"web": p}
		c.Sandbox.Mode = orchestrator.SandboxOff
		c.Projects.DefaultDir = open
		task := job(schedule, `[[tool cmd="test -d /opt/ductor && echo inside >task.txt"]][[text "the task is done"]]`)
		task.Dir, task.Sandbox = open, orchestrator.SandboxDocker
		c.Jobs = map[string]heartbeat.JobSettings{"boxed": task}
	})
	town.say(note + `[[text "first"]]`)
	town.awaitAnswer("first")
	if got := made(t, filepath.Join(open, "where.txt")); got != "outside" {
		t.Errorf("without a sandbox it ran %s", got)
	}
	town.say("/cwd %s", web)
	town.await("web")
	town.say(note + `[[text "second"]]`)
	town.awaitAnswer("second")
	first := made(t, filepath.Join(web, "where.txt"))
	if !strings.HasPrefix(first, "inside /ductor/home/sessions/") {
		t.Errorf("in the project with a sandbox it ran %s", first)
	}
	town.say("/status")
	town.await("web")
	town.say("/new")
	town.say(note + `[[tool cmd="head -c 3000000 /dev/zero >/var/tmp/big"]] [[text "third"]]`)
	town.awaitAnswer("third")
	if again := made(t, filepath.Join(web, "where.txt")); again == first ||
		!strings.HasPrefix(again, "inside /ductor/home/sessions/") {
		t.Errorf("another session ran %s, as %s did", again, first)
	}
	town.awaitAnswer("the task is done")
	if got := made(t, filepath.Join(open, "task.txt")); got != "inside" {
		t.Errorf("the task ran %s", got)
	}
	town.stop()
	town.forgets(t, "containers", (*environment.Environments).ContainersDataset, 1, 3_000_000)
	town.forgets(t, "homes of sessions, which only a container can see", (*environment.Environments).HomesDataset, 2, 1)
}

// forgets prunes a shelf to almost nothing, as if hours later, and checks the number and the bytes of the removed
// things against the plan.
func (town *town) forgets(t *testing.T, what string, shelf func(*environment.Environments) heartbeat.Items, items,
	bytes int64) {
	t.Helper()
	cfg := town.cfg
	cfg.Agents.IdleLimit = time.Nanosecond // it counts as idle
	envs, err := environment.Open(cfg, environment.NewPolicy(cfg), testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	defer envs.Close()
	s, all := shelf(&envs), heartbeat.Cutoff{Bytes: 1}
	if early, err := s.Plan(town.soon(), all); what != "containers" && (err != nil || early.Items != 0) {
		t.Errorf("%s: what was used just now would go: %+v, %v", what, early, err)
	}
	s.InUse = func() time.Time { return time.Now().Add(24 * time.Hour) }
	plan, err := s.Plan(town.soon(), all)
	if err != nil || plan.Items != items || plan.Bytes < bytes {
		t.Errorf("%s: %+v would go, %v; want %d", what, plan, err, items)
	}
	if done, err := s.Trim(town.soon(), all); err != nil || done != plan {
		t.Errorf("%s: planned %+v, done %+v, %v", what, plan, done, err)
	}
	if left, err := s.Plan(town.soon(), all); err != nil || left.Items != 0 {
		t.Errorf("%s: afterwards %+v would go, %v", what, left, err)
	}
}

// On this machine too, sessions can have their own homes.
func TestSessionsHaveTheirOwnHomesOnThisMachine(t *testing.T) {
	town := newTown(t, func(c *config.Config) {
		c.Permissions.Mode = "bypass"
		c.Sandbox.Home = docker.HomeSession
	})
	where := filepath.Join(town.cfg.Projects.DefaultDir, "home.txt")
	var homes []string
	for i := range 3 {
		town.say(`[[tool cmd="echo $HOME >home.txt"]] [[text "turn %d"]]`, i)
		town.awaitAnswer(fmt.Sprint("turn ", i))
		homes = append(homes, made(t, where))
		if i == 1 {
			town.say("/new")
			town.await("New session")
		}
	}
	if homes[0] != homes[1] || homes[1] == homes[2] ||
		filepath.Dir(homes[0]) != filepath.Join(town.cfg.Storage.Dir, "homes") {
		t.Errorf("two turns of a session and one of another have the homes %q", homes)
	}
}

// ps, attach, kill, doctor and /doctor cover sandboxes, and do not interrupt their agents.
func TestCommandsLookIntoSandboxes(t *testing.T) {
	host := engineHost(t)
	town := newTown(t, func(c *config.Config) {
		boxes(t, host, c)
		c.Sandbox.Network = "none"
	})
	path := town.writeConfig()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := town.cfg.Sandbox
	_, err = fmt.Fprintf(f, "[sandbox]\nmode = \"docker\"\nhost = %q\nbuild_dir = %q\nbuild_network = \"none\"\nnetwork = \"none\"\nrunner = %q\n",
		s.Host, s.BuildDir, s.Runner)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	town.say(`[[start]] [[text "to be read along"]] [[tool cmd="touch started; sleep 600"]]`)
	awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "started"))
	_, stdout, stderr := runDuctor(t, "ps", "-c", path)
	id := ""
	for line := range strings.Lines(stdout) {
		if strings.Contains(line, "claude live") && strings.Contains(line, "default") &&
			strings.Contains(line, "attached by ductor") {
			id, _, _ = strings.Cut(line, " ")
		}
	}
	if id == "" {
		t.Fatalf("ps does not know the run in the sandbox: %s%s", stdout, stderr)
	}
	if code, stdout, stderr := runDuctor(t, "doctor", "-c", path); !strings.Contains(stdout,
		"ok   sandbox default: Docker ") ||
		!strings.Contains(stdout, "ok   sandbox default, agent claude: /usr/local/bin/claude") ||
		!strings.Contains(stdout, "sandbox default, agent gemini: not found") {
		t.Errorf("doctor: exit %d: %s%s", code, stdout, stderr)
	}
	town.say("/doctor")
	if report := town.await("checks passed."); strings.Contains(report.Text, "sandbox default: ") ||
		!strings.Contains(report.Text, "sandbox default, agent gemini: not found") {
		t.Errorf("/doctor says\n%s", report.Text)
	}
	if code, stdout, stderr := runDuctor(t, "kill", id[:6], "-c", path); code != exitOK ||
		!strings.Contains(stdout, "in the sandbox default") {
		t.Errorf("kill: exit %d: %s%s", code, stdout, stderr)
	}
	town.awaitDone(1)
}

// The next start removes the containers in an engine that no sandbox uses any more.
func TestASandboxThatIsNoLongerConfiguredGoes(t *testing.T) {
	host := engineHost(t)
	town := newTown(t, func(c *config.Config) { boxes(t, host, c) })
	town.say(`[[text "inside"]]`)
	town.awaitAnswer("inside")
	town.stop()
	e, err := docker.Connect(docker.EngineOptions{Host: host})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	names := func() []string {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		homes, err := e.Homes(ctx, environment.Owner(town.cfg), "")
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, h := range homes {
			all = append(all, h.Name)
		}
		return all
	}
	if got := names(); len(got) != 1 {
		t.Fatalf("there are homes of %q", got)
	}
	town.cfg.Sandbox = config.Default().Sandbox
	town.start()
	notes := filepath.Join(town.cfg.Storage.Dir, "docker", "engines.json")
	eventually(t, "the engine is forgotten", func() bool {
		raw, err := os.ReadFile(notes)
		return err == nil && strings.TrimSpace(string(raw)) == "null"
	})
	town.say(`[[text "outside"]]`)
	town.awaitAnswer("outside")
	if got := names(); len(got) != 1 {
		t.Errorf("the home went with the container: %q", got)
	}
}
