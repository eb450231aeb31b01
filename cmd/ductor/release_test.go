package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.yaml.in/yaml/v3"

	"ductor/docker/dockertest"
	"ductor/internal/sim/agent"
	"ductor/internal/sim/telegram"
)

// shipped is a release with the Debian image for its tests. scripts/test --long creates and names both.
type shipped struct{ dir, debian string }

func release(t *testing.T) shipped {
	t.Helper()
	dockertest.Need(t)
	s := shipped{os.Getenv("DUCTOR_TEST_RELEASE"), os.Getenv("DUCTOR_TEST_DEBIAN")}
	if s.dir == "" || s.debian == "" {
		t.Skip("scripts/test --long builds a release, and an image of Debian to test it in")
	}
	return s
}

// deb returns the package for this machine.
func (s shipped) deb(t *testing.T) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(s.dir, "ductor_*_"+runtime.GOARCH+".deb"))
	if err != nil || len(all) != 1 {
		t.Fatalf("%s has the packages %q: %v", s.dir, all, err)
	}
	return all[0]
}

// container starts a container that is removed after the test, and returns its name.
func container(t *testing.T, args ...string) string {
	t.Helper()
	name := "ductor-test-" + uuid.NewString()
	t.Cleanup(func() {
		if t.Failed() {
			out, err := exec.Command("docker", "logs", "--tail", "50", name).CombinedOutput()
			t.Logf("the container said %s (%v)", out, err)
		}
		dockertest.Docker(t, "rm", "--force", "--volumes", name)
	})
	dockertest.Docker(t, append([]string{"run", "--detach", "--name", name}, args...)...)
	return name
}

// The package of a release installs on a plain Debian, and leaves nothing behind when removed.
func TestThePackageOfDebian(t *testing.T) {
	s := release(t)
	deb := s.deb(t)
	box := container(t, "--network", "none", "--volume", deb+":/ductor.deb:ro", s.debian, "sleep", "600")
	in := func(script string) string { return dockertest.Docker(t, "exec", box, "sh", "-ec", script) }
	listing := "find / -xdev -iname '*ductor*' -not -path '/proc/*' -not -name ductor.deb | sort"
	if before := in(listing); before != "" {
		t.Fatalf("before the package there is %q", before)
	}
	in("dpkg -i /ductor.deb")
	if said := in("ductor version"); !regexp.MustCompile(`^ductor [0-9]+\.[0-9]+\.[0-9]+`).MatchString(said) {
		t.Errorf("it is %q", said)
	}
	if said := in(
		"dpkg --verify ductor; ductor completion bash | cmp - /usr/share/bash-completion/completions/ductor"); said != "" {
		t.Errorf("the files of the package: %s", said)
	}
	if said := in("HOME=/tmp ductor doctor 2>&1 || true"); !strings.Contains(said, "FAIL configuration") {
		t.Errorf("the doctor says %q", said)
	}
	in("dpkg --purge ductor")
	if left := in(listing); left != "" {
		t.Errorf("after the package there is %q", left)
	}
}

// composed converts deploy/compose.yaml to arguments of docker run.
func composed(t *testing.T, vars map[string]string) (args []string) {
	t.Helper()
	raw, err := os.ReadFile("../../deploy/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`\$\{(\w+)(:\?[^}]*)?\}`).ReplaceAllStringFunc(string(raw), func(v string) string {
		name := regexp.MustCompile(`\w+`).FindString(v)
		if vars[name] == "" {
			t.Fatalf("compose.yaml wants %s", name)
		}
		return vars[name]
	})
	var file struct {
		Services map[string]struct {
			Image, User, Restart string
			Build                map[string]string
			GroupAdd             []string `yaml:"group_add"`
			Environment          map[string]string
			Volumes, Tmpfs       []string
			Init                 bool
			ReadOnly             bool     `yaml:"read_only"`
			CapDrop              []string `yaml:"cap_drop"`
			SecurityOpt          []string `yaml:"security_opt"`
			StopGracePeriod      string   `yaml:"stop_grace_period"`
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true) // an unknown field would not be tested
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	s := file.Services["ductor"]
	args = []string{"--user", s.User, "--restart", s.Restart, "--stop-timeout",
		strings.TrimSuffix(s.StopGracePeriod, "s"),
		fmt.Sprintf("--init=%t", s.Init), fmt.Sprintf("--read-only=%t", s.ReadOnly)}
	for flag, values := range map[string][]string{
		"--group-add": s.GroupAdd, "--volume": s.Volumes, "--tmpfs": s.Tmpfs, "--cap-drop": s.CapDrop,
		"--security-opt": s.SecurityOpt,
	} {
		for _, value := range values {
			args = append(args, flag, value)
		}
	}
	for name, value := range s.Environment {
		args = append(args, "--env", name+"="+value)
	}
	return args
}

// ada is the user id of a released ductor.
const ada = 12345

// moveIn writes the configuration into that user's home, and gives the user all directories that ductor and its
// agents write. It returns the home.
func (town *town) moveIn() (home string) {
	town.t.Helper()
	home = filepath.Dir(town.cfg.Storage.Dir)
	config := filepath.Join(home, ".config", "ductor", "config.toml")
	written := town.writeConfig()
	err := errors.Join(os.MkdirAll(filepath.Dir(config), 0o700), os.Rename(written, config))
	for _, dir := range []string{home, town.cfg.Projects.DefaultDir} {
		err = errors.Join(err, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			return cmp.Or(err, os.Lchown(path, ada, ada))
		}))
	}
	if err != nil {
		town.t.Skipf("files of another user: %v", err)
	}
	return home
}

// ductor runs in a container as deploy/ defines it, as a user without privileges, with its agent in a sandbox beside
// it.
func TestDuctorInAContainer(t *testing.T) {
	s := release(t)
	context := t.TempDir()
	raw, err := os.ReadFile(s.deb(t))
	if err := errors.Join(err, os.WriteFile(filepath.Join(context, filepath.Base(s.deb(t))), raw, 0o644)); err != nil {
		t.Fatal(err)
	}
	image := "ductor-test:" + uuid.NewString()
	dockertest.Docker(t, "build", "--quiet", "--network", "none", "--build-arg", "BASE="+s.debian, "--tag", image,
		"--file", "../../deploy/Dockerfile", context)
	t.Cleanup(func() { dockertest.Docker(t, "image", "rm", image) })

	onlyCanaries(t)
	town := boxedTown(t, nil)
	town.cfg.Sandbox.Runner = ""
	town.extra = sandboxed(town.cfg)
	home := town.moveIn()
	info, err := os.Stat("/var/run/docker.sock")
	if err := errors.Join(err, os.Chmod(town.cfg.Sandbox.BuildDir, 0o755)); err != nil {
		t.Skipf("the engine's socket: %v", err)
	}
	args := composed(t, map[string]string{
		"DUCTOR_USER": fmt.Sprintf("%d:%d", ada, ada), "DOCKER_GROUP": fmt.Sprint(info.Sys().(*syscall.Stat_t).Gid),
		"DUCTOR_HOME":     home,
		"DUCTOR_PROJECTS": town.cfg.Projects.DefaultDir,
	})
	args = append(args, "--network", "host", "--volume", town.cfg.Sandbox.BuildDir+":"+town.cfg.Sandbox.BuildDir+":ro")
	box := container(t, append(args, "--env", "ANTHROPIC_API_KEY=dummy", "--env", "OPENAI_API_KEY=dummy", image)...)
	town.cell(dockertest.Host()).runTurn()
	dockertest.Docker(t, "restart", box)
	town.cell(dockertest.Host()).runTurn()
}

// ductor's unit runs under a real systemd with all its restrictions: an agent's turn works, and another one survives
// a restart of the service. If the engine cannot run systemd, the test is skipped.
func TestTheServiceUnderSystemd(t *testing.T) {
	s := release(t)
	town := surroundings(t, nil)
	programs, err := agent.InstallFrom("/usr/bin/ductor", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := &town.cfg.Agents
	a.Claude.Path, a.Codex.Path, a.Gemini.Path, a.Copilot.Path = programs.Claude, programs.Codex, programs.Gemini,
		programs.Copilot
	home, project := town.moveIn(), town.cfg.Projects.DefaultDir
	box := container(t, "--network", "host", "--cap-add", "SYS_ADMIN", "--security-opt", "seccomp=unconfined", "--env",
		"container=docker",
		"--tmpfs", "/run", "--tmpfs", "/run/lock", "--volume", "/sys/fs/cgroup:/sys/fs/cgroup", "--volume",
		s.deb(t)+":/ductor.deb:ro",
		"--volume", home+":"+home, "--volume", project+":"+project, "--volume", programs.Dir+":"+programs.Dir+":ro",
		s.debian, "/lib/systemd/systemd")
	in := func(script string) string { return dockertest.Docker(t, "exec", box, "sh", "-ec", script) }
	up := ""
	for deadline := time.Now().Add(patience); up != "running" && up != "degraded"; time.Sleep(100 * time.Millisecond) {
		out, err := exec.Command("docker", "exec", box, "systemctl", "is-system-running").CombinedOutput()
		if up = strings.TrimSpace(string(out)); time.Now().After(deadline) {
			t.Skipf("systemd does not come up in a container here: %q, %v", up, err)
		}
	}
	config := filepath.Join(home, ".config/ductor/config.toml")
	in("dpkg -i /ductor.deb; useradd --uid " + fmt.Sprint(ada) + " --home-dir " + home + " ada")
	in("mkdir /etc/systemd/system/ductor.service.d; printf '[Service]\nEnvironment=DUCTOR_SIM_HOME=" + home +
		" ANTHROPIC_API_KEY=dummy\n' >/etc/systemd/system/ductor.service.d/agents.conf")
	t.Log(in("ductor service install --system --as ada --yes --config " + config))
	if said := in("systemd-analyze verify /etc/systemd/system/ductor.service 2>&1"); strings.Contains(said,
		"ductor.service") {
		t.Errorf("systemd says of the unit: %s", said)
	}
	t.Log(in("systemd-analyze security --no-pager ductor | tail -n 1"))

	o := &ordeal{town: town, config: config, again: map[telegram.MessageID]bool{}}
	for i := range 2 {
		trial := newTrial(i)
		o.say("%s", trial.script())
		if i == 1 {
			o.awaitWord("w1-3")
			before := in("systemctl show --property MainPID --value ductor")
			in("systemctl restart ductor")
			if after := in("systemctl show --property MainPID --value ductor"); after == before || after == "0" {
				t.Errorf("after the restart the service is process %s, before it %s", after, before)
			}
		}
		o.awaitWhole(trial)
		o.ranOnce(trial)
	}
	if state := in("systemctl is-active ductor; grep NoNewPrivs /proc/$(systemctl show --property MainPID --value ductor)/status"); state != "active\nNoNewPrivs:\t1" {
		t.Errorf("the service is %q", state)
	}
	in("systemctl stop ductor; ductor service uninstall --system")
}
