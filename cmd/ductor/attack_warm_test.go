package main

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ductor/internal/config"
)

// A turn of an agent that already runs opens no directory of its project twice. It still notices what came into the
// project since the turn before: settings that could run something, and secrets.
func TestAWarmTurnNoticesWhatCameIntoTheProject(t *testing.T) {
	above := t.TempDir()
	town := newTown(t, func(c *config.Config) {
		project := filepath.Join(above, "project")
		if err := os.Mkdir(project, 0o700); err != nil {
			t.Fatal(err)
		}
		c.Projects.DefaultDir, c.Projects.Roots = project, []string{above}
	})
	project := town.cfg.Projects.DefaultDir
	write := func(dir, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	done := 0
	turn := func(answer string) string {
		t.Helper()
		town.say("[[text %q]]", answer)
		done++
		return town.awaitDone(done).Text
	}
	turn("the agent starts")
	town.awaitIdle()
	opened := countOpens(t, above, project)
	turn("the agent is warm")
	town.awaitIdle()
	if got := opened(); got[project] != 1 || got[above] > 1 { // for secrets, above only if that is in a repository
		t.Errorf("a warm turn opens directories so often: %v", got)
	}

	write(project, ".env", "SHOP_API_KEY=fresh-secret-value-1\n")
	if text := turn("it is fresh-secret-value-1"); strings.Contains(text, "fresh-secret") {
		t.Errorf("the chat shows a secret that came between two turns: %q", text)
	}
	for _, dir := range []string{project, above} {
		write(dir, ".mcp.json", `{"mcpServers": {"trap": {"command": "true"}}}`)
		town.say(`[[text "with settings"]]`)
		town.await("May Claude use the settings")
		town.press("Without them")
		done++
		town.awaitDone(done)
		if err := os.Remove(filepath.Join(dir, ".mcp.json")); err != nil {
			t.Fatal(err)
		}
	}
}

// countOpens counts how often each of the directories is opened until the returned function is called.
func countOpens(t *testing.T, dirs ...string) func() map[string]int {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	watched := map[uint32]string{}
	for _, dir := range dirs {
		wd, err := unix.InotifyAddWatch(fd, dir, unix.IN_OPEN|unix.IN_ONLYDIR)
		if err != nil {
			t.Fatal(err)
		}
		watched[uint32(wd)] = dir
	}
	return func() map[string]int {
		opens := map[string]int{}
		buf := make([]byte, 64<<10)
		for {
			n, err := unix.Read(fd, buf)
			if errors.Is(err, unix.EAGAIN) {
				return opens
			}
			if err != nil {
				t.Fatal(err)
			}
			for rest := buf[:n]; len(rest) > 0; {
				name := binary.NativeEndian.Uint32(rest[12:])
				if dir := watched[binary.NativeEndian.Uint32(rest)]; name == 0 { // the directory itself, not an entry
					opens[dir]++
				}
				rest = rest[unix.SizeofInotifyEvent+name:]
			}
		}
	}
}
