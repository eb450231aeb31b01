package main

import (
	"errors"
	"io/fs"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// These tests check promises of the configuration and the command line from outside: with the real program, its
// configuration file and the chat.

func TestDemoAnswersWithoutATokenOrAnAgent(t *testing.T) {
	chat := openDemo(t, startPage(t, "demo", "--scripted", "--open=false"))
	chat.send(`[[text "the scripted agent speaks"]]`)
	chat.await("the scripted agent speaks")
	chat.send("/status")
	chat.await("Claude")
	chat.send("/help")
	chat.await("/abort")
}

func TestTheDemoNamesTheReplacementOfTheTerminal(t *testing.T) {
	code, _, stderr := runDuctor(t, "demo", "--scripted", "--terminal")
	if code != exitFailure || !strings.Contains(stderr, "--open=false") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestAnAgentOfTheAgentClientProtocolAnswers(t *testing.T) {
	town := surroundings(t, nil)
	town.agent = "tame"
	town.serve("[agents.claude]", `[agents.acp.tame]
path = "`+town.cfg.Agents.Gemini.Path+`"
args = ["--acp"]
env = ["GEMINI_API_KEY"]

[agents.claude]`)
	town.say(`[[text "an agent of the protocol answers"]]`)
	town.await("an agent of the protocol answers")
	town.say("/status")
	town.await("Tame")
}

func TestCallsGoThroughTheProxy(t *testing.T) {
	town := surroundings(t, nil)
	var passed atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { passed.Add(1) }, // a request to a proxy contains the full address
	})
	t.Cleanup(proxy.Close)
	town.serve(town.srv.URL()+`"`, town.srv.URL()+`"
proxy = "`+proxy.URL+`"`)
	town.say(`[[text "through the proxy"]]`)
	town.await("through the proxy")
	if calls := int64(len(town.srv.Calls())); passed.Load() < calls {
		t.Errorf("Telegram got %d calls, and %d came through the proxy", calls, passed.Load())
	}
}

func TestTheFallbackAnswersWhereTheDefaultIsNotInstalled(t *testing.T) {
	town := surroundings(t, nil)
	town.extra = `fallback = ["copilot", "codex"]`
	town.serve(town.cfg.Agents.Claude.Path, "/nonexistent/claude", town.cfg.Agents.Copilot.Path, "/nonexistent/copilot")
	town.say(`[[text "somebody is there"]]`)
	town.await("somebody is there")
	town.say("/status")
	town.await("Codex")
}

func TestASessionIsResetWhenItWasIdle(t *testing.T) {
	for name, c := range map[string]struct {
		idle string
		want bool
	}{"never": {"0s", true}, "after a moment": {"1ms", false}} {
		t.Run(name, func(t *testing.T) {
			town := surroundings(t, nil)
			town.serve("[agents]", "[sessions]\nidle_reset = \""+c.idle+"\"\n\n[agents]")
			town.say(`remember the lighthouse [[text "noted"]]`)
			town.awaitDone(1)
			town.say(`[[start]] [[text "known: "]] [[history]]`)
			if m := town.awaitDone(2); strings.Contains(m.Text, "lighthouse") != c.want {
				t.Errorf("with idle_reset = %s it answers %q", c.idle, m.Text)
			}
		})
	}
}

func TestWhatAnAgentSaysAfterATaskInTheBackgroundArrivesOnce(t *testing.T) {
	town := surroundings(t, nil)
	d := town.serve()
	town.say(`[[background "sleep 1" text="the tests are green"]] [[text "they run"]]`)
	town.awaitDone(1)
	town.await("the tests are green")
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	d.exit(t)
	town.serve()
	town.say(`[[text "and then"]]`)
	town.await("and then")
	if n := town.shown("the tests are green"); n != 1 {
		t.Errorf("what it said is shown %d times", n)
	}
}

func TestTheHeartbeatSpeaksUpOnlyWhenThereIsSomething(t *testing.T) {
	type beating struct {
		*town
		asked, answer string
		want          int
	}
	var towns []beating // they wait together, since the shortest interval is a minute
	for answer, want := range map[string]int{"HEARTBEAT_OK": 0, "the disk is nearly full": 1} {
		b := beating{town: surroundings(t, nil), asked: filepath.Join(t.TempDir(), "asked"), answer: answer, want: want}
		b.serve("[agents]", `[heartbeat]
enabled = true
every = "1m"
prompt = '[[tool "echo x >>`+b.asked+`"]] [[text "`+answer+`"]]'

[agents]`)
		towns = append(towns, b)
	}
	for _, b := range towns {
		eventuallyIn(t, patience+time.Minute, "the heartbeat to ask", func() bool {
			_, err := os.Stat(b.asked)
			return err == nil
		})
		b.say(`[[text "a message of the user"]]`)
		b.await("a message of the user")
		if b.want > 0 {
			b.await(b.answer)
		}
		if n := b.shown(b.answer); n != b.want {
			t.Errorf("the answer %q is shown %d times", b.answer, n)
		}
	}
}

func TestRetentionRemovesOldUploads(t *testing.T) {
	town := surroundings(t, nil)
	dir := filepath.Join(town.cfg.Storage.Dir, "uploads", "1_0")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	files := map[string]time.Duration{"old.txt": 40 * 24 * time.Hour, "new.txt": time.Hour}
	for name, age := range files {
		path := filepath.Join(dir, name)
		when := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(path, []byte(name), 0o600), os.Chtimes(path, when, when)); err != nil {
			t.Fatal(err)
		}
	}
	town.serve()
	eventually(t, "the old file to be removed", func() bool {
		_, err := os.Stat(filepath.Join(dir, "old.txt"))
		return errors.Is(err, fs.ErrNotExist)
	})
	if _, err := os.Stat(filepath.Join(dir, "new.txt")); err != nil {
		t.Errorf("a file of an hour ago: %v", err)
	}
}
