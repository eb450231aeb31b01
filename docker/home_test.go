package docker

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/cli/claude/skills"
	geminiguard "ductor/cli/gemini/guard"
	"ductor/cli/stored/files"
	"ductor/docker/dockertest"
	"ductor/internal/runner"
)

// output runs a script with a home and returns its output.
func (s *sandbox) output(home, script string, files ...string) string {
	s.Helper()
	cmd := shell(s.o, s.canary, script)
	cmd.Files = files
	cmd.Env = append([]string{"HOME=" + home}, cmd.Env[1:]...)
	for i, entry := range cmd.Env[1:] {
		if strings.HasPrefix(entry, "HOME=") {
			cmd.Env[i+1] = "HOME_OF_THIS_MACHINE=no"
		}
	}
	p, err := s.Launcher.Start(s.Context(), cmd)
	if err != nil {
		s.Fatal(err)
	}
	out, err := io.ReadAll(p.Stdout())
	if err != nil {
		s.Errorf("%v; stderr %s", err, p.StderrTail())
	}
	s.stop(p)
	return string(out)
}

func (s *sandbox) home(session string) string {
	s.Helper()
	dir, err := s.Home(s.Context(), session)
	if err != nil {
		s.Fatal(err)
	}
	return dir
}

// Each session has a home of its own, which is seeded once and outlives the container. A log-in that an agent renewed
// stays; one that was renewed on this machine arrives.
func TestHomesOfSessions(t *testing.T) {
	t.Parallel()
	o := testOptions(t, needEngine(t))
	from := t.TempDir()
	key, skills := filepath.Join(from, "key"), filepath.Join(from, "skills")
	dockertest.Write(t, key, "old", 0o600)
	if err := os.MkdirAll(filepath.Join(skills, "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	dockertest.Write(t, filepath.Join(skills, "deep", "one"), "skill", 0o644)
	o.ReadOnlyRoot, o.User = true, "1234:1235"
	o.HomeSeeds = []Seed{{From: key, To: ".agent/key"}, {From: skills, To: ".agent/skills"}, {From: from + "/none",
		To: "none", Optional: true}}
	s := newSandbox(t, o)

	one, two := s.home("s-1"), s.home("../a name/that is none")
	if one != "/ductor/home/sessions/s-1" || strings.Contains(two, "..") || filepath.Dir(two) != filepath.Dir(one) {
		t.Fatalf("the homes are %s and %s", one, two)
	}
	if got := s.output(one,
		`cat ~/.agent/key ~/.agent/skills/deep/one; ls -a ~
		stat -c %a ~ ~/.agent/key; echo mine >~/mine; echo $HOME`); got !=
		"oldskill.\n..\n.agent\n700\n600\n/ductor/home/sessions/s-1\n" {
		t.Errorf("the first home: %q", got)
	}
	if got := s.output(two, `ls ~; cat ~/.agent/key`); got != "old" {
		t.Errorf("the second home: %q", got)
	}
	if got := s.output("/etc", `echo $HOME`); got != homeDir+"\n" {
		t.Errorf("a home that is none of ours gives %q", got)
	}

	s.output(one, `echo -n renewed inside >~/.agent/key`)
	again := newSandbox(t, o) // a ductor without any cached knowledge of it
	again.home("s-1")
	if got := again.output(one, `cat ~/.agent/key`); got != "renewed inside" {
		t.Errorf("after a restart the agent finds %q", got)
	}
	dockertest.Write(t, key, "renewed outside", 0o600)
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(key, later, later); err != nil {
		t.Fatal(err)
	}
	again.home("s-1")
	if got := again.output(one, `cat ~/.agent/key ~/mine`); got != "renewed outsidemine\n" {
		t.Errorf("after the log-in on this machine the agent finds %q", got)
	}

	dockertest.Docker(t, "rm", "-f", o.containerName())
	again.home("s-1")
	if got := again.output(one, `cat ~/mine`); got != "mine\n" {
		t.Errorf("in the next container: %q", got)
	}
	again.forgetFirstHome(one, two)
}

// forgetFirstHome lists the homes and removes the first.
func (s *sandbox) forgetFirstHome(one, two string) {
	s.Helper()
	all, err := s.SessionHomes(s.Context())
	if err != nil || len(all) != 2 {
		s.Fatalf("the homes are %+v, %v", all, err)
	}
	for _, h := range all {
		if h.Bytes < 8 || time.Since(h.Used) > time.Hour && !h.Used.IsZero() && h.Name == "s-1" {
			s.Errorf("%+v", h)
		}
	}
	for range 2 {
		if err := s.ForgetHome(s.Context(), "s-1"); err != nil {
			s.Error(err)
		}
	}
	if all, err = s.SessionHomes(s.Context()); err != nil || len(all) != 1 || all[0].Name != filepath.Base(two) {
		s.Errorf("then they are %+v, %v", all, err)
	}
	s.home("s-1")
	if got := s.output(one, `ls ~`); got != "" {
		s.Errorf("the next of that name holds %q", got)
	}
}

// A home in memory, of a sandbox that forgets, is created and seeded like any other, and again after the container was
// stopped.
func TestHomesThatAreForgotten(t *testing.T) {
	t.Parallel()
	o := testOptions(t, needEngine(t))
	key := t.TempDir() + "/key"
	dockertest.Write(t, key, "k3y", 0o600)
	o.StateSize, o.ReadOnlyRoot, o.HomeSeeds = 8<<20, true, []Seed{{From: key, To: "key"}}
	s := newSandbox(t, o)
	home := s.home("one")
	if got := s.output(home, `cat ~/key; echo >~/x`); got != "k3y" {
		t.Errorf("it holds %q", got)
	}
	dockertest.Docker(t, "kill", o.containerName())
	if _, err := s.SessionHomes(t.Context()); !errors.Is(err, runner.ErrNoEnvironment) {
		t.Errorf("the homes of what does not run: %v", err)
	}
	s.home("one")
	if got := s.output(home, `ls ~`); got != "key\n" {
		t.Errorf("after a stop it holds %q", got)
	}
}

// A home that is already prepared starts no program in the container.
func TestAHomeIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, testOptions(t, needEngine(t)))
	home := s.home("one")
	s.output(home, `rmdir ~`)
	s.home("one")
	if got := s.output(homeDir, `ls `+homesDir); got != "" {
		t.Errorf("it was made again, though nothing changed: %q", got)
	}
	if _, err := s.Home(t.Context(), ""); err == nil {
		t.Error("a session without a name has a home")
	}
}

// Files that a prompt names are copied to the same paths, by a local engine as well as by a remote one. Other files do
// not appear there.
func TestSharedFiles(t *testing.T) {
	t.Parallel()
	for _, remote := range []bool{false, true} {
		name := map[bool]string{false: "this machine", true: "another machine"}[remote]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := needEngine(t)
			e.remote = remote
			o := testOptions(t, e)
			shared := t.TempDir()
			outside := filepath.Join(t.TempDir(), "secret")
			dockertest.Write(t, outside, "secret", 0o644)
			o.Shared, o.ReadOnlyRoot = []string{shared}, true
			s := newSandbox(t, o)
			file := filepath.Join(shared, "chat", "picture")
			if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o755), os.Mkdir(filepath.Join(shared, "other chat"),
				0o755)); err != nil {
				t.Fatal(err)
			}
			dockertest.Write(t, file, "first", 0o644)
			dockertest.Write(t, filepath.Join(shared, "other chat", "secret"), "of another chat", 0o644)
			s.expectBrought(file)
			if got := s.output(homeDir, `ls `+shared); got != "chat\n" {
				t.Errorf("the container has %q", got)
			}
			if got := s.output(homeDir, `cat `+file+`; echo x 2>/dev/null >>`+file+` || echo no`); got != "firstno\n" {
				t.Errorf("the agent reads %q", got)
			}
			if err := os.WriteFile(file, []byte("second one"), 0o644); err != nil {
				t.Fatal(err)
			}
			dockertest.Docker(t, "stop", "-t", "0", o.containerName())
			s.expectBrought(file)
			if got := s.output(homeDir, `cat `+file); got != "second one" {
				t.Errorf("then it reads %q", got)
			}
			dockertest.Docker(t, "rm", "-f", "-v", o.containerName())
			s.expectBrought(file)
			if got := s.output(homeDir, `cat `+file); got != "second one" {
				t.Errorf("in another container it reads %q", got)
			}
			own := filepath.Join(shared, "prompt")
			write(t, own, "be brief", 0o644)
			if got := s.output(homeDir, `cat `+own, own); got != "be brief" {
				t.Errorf("a program that is told to read a file reads %q", got)
			}
			dockertest.Docker(t, "exec", "-u", "0", o.containerName(), "sh", "-c",
				"chmod u+w "+own+" && echo be rude >"+own)
			if got := s.output(homeDir, `cat `+own, own); got != "be brief" {
				t.Errorf("after another program changed the file, it reads %q", got)
			}
			s.expectDirectories(shared)
			s.expectNothingElse(shared, outside)
		})
	}
}

func (s *sandbox) expectBrought(files ...string) {
	s.Helper()
	if err := s.Bring(s.Context(), files); err != nil {
		s.Fatal(err)
	}
}

// expectDirectories names directories: they appear with the files in them and nothing else.
func (s *sandbox) expectDirectories(shared string) {
	full, empty := filepath.Join(shared, "full"), filepath.Join(shared, "empty")
	if err := errors.Join(os.MkdirAll(filepath.Join(full, "deeper"), 0o755), os.Mkdir(empty, 0o755)); err != nil {
		s.Fatal(err)
	}
	dockertest.Write(s, filepath.Join(full, "a"), "a", 0o644)
	dockertest.Write(s, filepath.Join(full, "b"), "b", 0o644)
	dockertest.Write(s, filepath.Join(full, "deeper", "c"), "c", 0o644)
	err := errors.Join(os.Symlink(filepath.Join(shared, "other chat", "secret"), filepath.Join(full, "link")),
		os.WriteFile(filepath.Join(full, "big"), nil, 0o644), os.Truncate(filepath.Join(full, "big"), maxBringBytes))
	if err != nil {
		s.Fatal(err)
	}
	s.expectBrought(full, empty, filepath.Join(full, "a"))
	if got := s.output(homeDir, `cd `+shared+`; ls empty full; cat full/a full/b`); got != "empty:\n\nfull:\na\nb\nab" {
		s.Errorf("of the directories there is %q", got)
	}
	if err := errors.Join(os.Remove(filepath.Join(full, "a")), os.Remove(filepath.Join(full, "big"))); err != nil {
		s.Fatal(err)
	}
	dockertest.Write(s, filepath.Join(full, "later"), "later", 0o644)
	s.expectBrought(full, empty)
	if got := s.output(homeDir, `cat `+filepath.Join(full, "later")); got != "later" {
		s.Errorf("then %q", got)
	}
}

// expectNothingElse tries to copy files that must not be copied.
func (s *sandbox) expectNothingElse(shared, outside string) {
	link, dirLink, big := filepath.Join(shared, "link"), filepath.Join(shared, "up"), filepath.Join(shared, "big")
	chatLink := filepath.Join(shared, "chat link")
	err := errors.Join(os.Symlink(outside, link), os.Symlink(filepath.Dir(outside), dirLink),
		os.Symlink("other chat", chatLink),
		os.WriteFile(big, nil, 0o644), os.Truncate(big, maxBringBytes+1))
	if err != nil {
		s.Fatal(err)
	}
	for _, c := range []struct{ file, word string }{
		{outside, "not in a directory of ductor's"}, {"/etc/passwd", "not in a directory"},
		{"picture", "not in a directory"},
		{shared, "not in a directory"}, {filepath.Join(shared, "..", filepath.Base(filepath.Dir(outside)), "secret"),
			"not in a directory"},
		{link, "a link is on the way"}, {filepath.Join(dirLink, "secret"), "a link is on the way"},
		{filepath.Join(shared, "none"), "is not there"},
		{chatLink, "a link is on the way"}, {filepath.Join(chatLink, "secret"), "a link is on the way"},
		{big, "more than"},
	} {
		s.expectFailure(s.Bring(s.Context(), []string{c.file}), c.word)
	}
	if got := s.output(homeDir, `ls `+shared); got != "chat\nempty\nfull\nprompt\n" {
		s.Errorf("what arrived is %q", got)
	}
}

// Help runs in the container, which is created for it, as the agents' user and with a program's environment.
func TestHelp(t *testing.T) {
	t.Parallel()
	o := testOptions(t, needEngine(t))
	s := newSandbox(t, o)
	const id, file = "0123abcd-89ab", ".gemini/tmp/p/chats/session-2026-11-21T10-00-0123abcd.jsonl"
	env := func(home string) []string {
		return []string{"HOME=" + home, "GEMINI_CLI_HOME=" + home, "PATH=/nowhere"}
	}
	if _, err := s.Help(t.Context(), env("/home/of/this/machine"), geminiguard.Verb, id); err != nil {
		t.Errorf("with nothing to do: %v", err)
	}
	home := s.home("a session")
	s.output(home, `mkdir -p $HOME/.gemini/tmp/p/chats; printf '{"sessionId":"`+id+`"}\n{"id":"1"}\n' >$HOME/`+file)
	if _, err := s.Help(t.Context(), env(home), geminiguard.Verb, id); err != nil {
		t.Error(err)
	}
	got := s.output(home, `cd $HOME/.gemini/tmp/p/chats; echo *; cat *`)
	if strings.HasPrefix(got, filepath.Base(file)) || !strings.Contains(got, id) {
		t.Errorf("afterwards there is %q", got)
	}
	query, found := `{"Homes":["HOME/.gemini"],"Globs":["tmp/*/chats/*"],"Has":"`+id+`","Most":5}`, []files.File(nil)
	if raw, err := s.Help(t.Context(), env(home), files.Verb, query); err != nil ||
		json.Unmarshal(raw, &found) != nil || len(found) != 1 || !bytes.Contains(found[0].Head, []byte(id)) {
		t.Errorf("the files there are %+v, %v", found, err)
	}
	s.output(home, `mkdir -p $HOME/.claude/skills/deploy; echo there >$HOME/.claude/skills/deploy/SKILL.md`)
	var skill []skills.File
	if raw, err := s.Help(t.Context(), env(home), skills.Verb, o.Projects[0], "deploy"); err != nil ||
		json.Unmarshal(raw, &skill) != nil || len(skill) != 1 || skill[0].Text != "there\n" {
		t.Errorf("the skill there is %+v, %v", skill, err)
	}
	var own *Error
	if _, err := s.Help(t.Context(), env(home), geminiguard.Verb); !errors.As(err, &own) ||
		!strings.Contains(own.Reason, "want one argument: a session") {
		t.Errorf("one that fails: %v", err)
	}
	if _, err := s.Help(t.Context(), env(home), "what-a-later-ductor-asks"); !errors.As(err, &own) ||
		!strings.Contains(own.Reason, "another version") {
		t.Errorf("one that the program there does not know: %v", err)
	}
}
