package app

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ductor/bot/tgapi"
	"ductor/cli/clitest"
	"ductor/internal/config"
	"ductor/internal/secrets"
	"ductor/internal/sim/agent"
	"ductor/internal/sim/telegram"
)

// The test binary is also the scripted agent and its runner.
func TestMain(m *testing.M) {
	clitest.RunIfAsked()
	agent.RunIfChild()
	os.Exit(m.Run())
}

// A turn of an agent that already runs opens no directory of its project twice. It still notices what came into the
// project since the turn before: settings that could run something, and secrets.
func TestAWarmTurnNoticesWhatCameIntoTheProject(t *testing.T) {
	above := t.TempDir()
	project := filepath.Join(above, "project")
	if err := os.Mkdir(project, 0o700); err != nil {
		t.Fatal(err)
	}
	chat := serve(t, project)
	write := func(dir, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	await := func(what string, ok func(telegram.Message) bool) telegram.Message {
		t.Helper()
		m, err := chat.AwaitMessage(t.Context(), ok)
		if err != nil {
			t.Fatalf("wait for %s: %v; the chat shows\n%s", what, err, chat.Transcript())
		}
		return m
	}
	turn := func(answer string) string {
		t.Helper()
		said := chat.Person().Send(chat, `[[text "`+answer+`"]]`)
		return await(answer, func(m telegram.Message) bool { // its footer has the duration
			return m.ID > said.ID && strings.HasSuffix(m.Text, "s") && strings.Contains(m.Text, " · ")
		}).Text
	}
	turn("the agent starts")
	opened := countOpens(t, above, project)
	turn("the agent is warm")
	if got := opened(); got[project] != 1 || got[above] > 1 { // for secrets, above only if that is in a repository
		t.Errorf("a warm turn opens directories so often: %v", got)
	}

	write(project, ".env", "SHOP_API_KEY=fresh-secret-value-1\n")
	if text := turn("it is fresh-secret-value-1"); strings.Contains(text, "fresh-secret") {
		t.Errorf("the chat shows a secret that came between two turns: %q", text)
	}
	for _, dir := range []string{project, above} {
		write(dir, ".mcp.json", `{"mcpServers": {"trap": {"command": "true"}}}`)
		said := chat.Person().Send(chat, `[[text "with settings"]]`)
		asked := await("the question", func(m telegram.Message) bool {
			return m.ID > said.ID && strings.Contains(m.Text, "May Claude use the settings")
		})
		if _, err := chat.Person().Press(t.Context(), asked, "Without them"); err != nil {
			t.Fatal(err)
		}
		await("the answer", func(m telegram.Message) bool {
			return m.ID > said.ID && strings.Contains(m.Text, "with settings") && strings.Contains(m.Text, " · ")
		})
		if err := os.Remove(filepath.Join(dir, ".mcp.json")); err != nil {
			t.Fatal(err)
		}
	}
}

// serve runs an app with the scripted Claude in a project, and returns its user's chat.
func serve(t *testing.T, project string) *telegram.Chat {
	t.Helper()
	srv := telegram.New(telegram.Options{})
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	t.Setenv("HOME", t.TempDir())
	t.Setenv("DUCTOR_SIM_HOME", t.TempDir())
	programs, err := agent.InstallFrom(clitest.Program(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Telegram.Token, cfg.Telegram.APIBase = secrets.Value(srv.Token()), srv.URL()
	cfg.Telegram.AllowedUsers = []int64{1}
	cfg.Storage.Dir = filepath.Join(t.TempDir(), "state")
	cfg.Projects.DefaultDir, cfg.Projects.Roots = project, []string{project}
	cfg.Agents.Claude.Path = programs.Claude
	a, err := Build(t.Context(), cfg, Options{Log: slog.New(slog.DiscardHandler),
		Scrub: tgapi.NewScrubber(srv.Token()), Runner: clitest.Runner(t)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		a.Close()
	})
	if err := srv.AwaitPoll(t.Context()); err != nil {
		t.Fatal(err)
	}
	return srv.Private(1, "Owner")
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
