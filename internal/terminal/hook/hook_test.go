package hook

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/internal/statesocket"
)

func run(t *testing.T, state, event string) string {
	t.Helper()
	var out bytes.Buffer
	code := Main(Process{Args: []string{"claude", "--s", state}, In: strings.NewReader(event), Out: &out,
		ReplyWait: time.Hour, StateFlag: "--s", ThenFlag: "--t"})
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	return out.String()
}

// serve answers a single hook with lines.
func serve(t *testing.T, state string, lines ...string) (got chan Message) {
	t.Helper()
	l, err := Listen(state)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	got = make(chan Message, 1)
	go func() {
		c, err := l.AcceptUnix()
		_ = l.Close() // a later hook must not wait in the queue of this socket
		if err != nil {
			return
		}
		defer c.Close()
		line, err := bufio.NewReader(c).ReadBytes('\n')
		_, stranger := statesocket.Peer(c)
		var m Message
		if stranger != nil || err != nil || json.Unmarshal(line, &m) != nil {
			return
		}
		got <- m
		for _, line := range lines {
			_, _ = c.Write([]byte(line + "\n"))
		}
	}()
	return got
}

func TestAnAnswerReachesTheCLI(t *testing.T) {
	state := t.TempDir()
	got := serve(t, state, `{"wait":true}`, `{"output":{"a":1}}`)
	if info, err := os.Stat(filepath.Join(state, socketFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v", info.Mode(), err)
	}
	if out := run(t, state, ` {"x":"y"} `+"\n"); out != "{\"a\":1}\n" {
		t.Errorf("the CLI gets %q", out)
	}
	if m := <-got; m.Agent != "claude" || string(m.Event) != `{"x":"y"}` || m.Dir == "" {
		t.Errorf("ductor got %+v", m)
	}
}

// If ductor does not run, was killed, or has no answer, the CLI gets nothing and asks as usual.
func TestWithoutAnAnswerTheCLIAsksAsUsual(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, state string){
		"there never was a ductor": func(*testing.T, string) {},
		"it was killed": func(t *testing.T, state string) {
			l, err := Listen(state)
			if err != nil {
				t.Fatal(err)
			}
			_ = l.Close() // leaves the socket's file behind
		},
		"it has nothing to say":     func(t *testing.T, state string) { serve(t, state, `{}`) },
		"it ends before it answers": func(t *testing.T, state string) { serve(t, state, `{"wait":true}`) },
		"it says nonsense":          func(t *testing.T, state string) { serve(t, state, `nonsense`) },
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			prepare(t, state)
			if out := run(t, state, `{}`); out != "" {
				t.Errorf("the CLI gets %q", out)
			}
		})
	}
	if out := run(t, filepath.Join(t.TempDir(), "gone"), `not JSON`); out != "" {
		t.Errorf("the CLI gets %q", out)
	}
}

// If ductor runs but does not reply, the CLI gets nothing after a short wait.
func TestAHookDoesNotWaitForADuctorThatHangs(t *testing.T) {
	state := t.TempDir()
	l, err := Listen(state)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var out bytes.Buffer
	Main(Process{Args: []string{"claude", "--s", state}, In: strings.NewReader(`{}`), Out: &out,
		RestartWait: time.Hour, ReplyWait: time.Millisecond, StateFlag: "--s", ThenFlag: "--t"})
	if out.Len() > 0 {
		t.Errorf("the CLI gets %q", out.String())
	}
}

// If ductor exits while the user decides, the hook asks the next ductor again, but waits no longer than a restart
// takes.
func TestAHookAsksAgainAfterARestart(t *testing.T) {
	state := t.TempDir()
	first := serve(t, state, `{"wait":true}`)
	second := make(chan chan Message, 1)
	go func() {
		<-first
		second <- serve(t, state, `{"wait":true}`, `{"output":{"a":1}}`)
	}()
	var out bytes.Buffer
	Main(Process{Args: []string{"claude", "--s", state}, In: strings.NewReader(`{"x":"y"}`), Out: &out,
		RestartWait: time.Hour, ReplyWait: time.Hour, StateFlag: "--s", ThenFlag: "--t"})
	if out.String() != "{\"a\":1}\n" {
		t.Errorf("the CLI gets %q", out.String())
	}
	if m := <-<-second; m.ID == "" || m.Since.IsZero() || string(m.Event) != `{"x":"y"}` {
		t.Errorf("it is told %+v", m)
	}
}

// The program that Codex ran before still runs, with the event as its last argument, even if ductor started the agent.
func TestTheFormerProgramIsRun(t *testing.T) {
	dir := t.TempDir()
	told := filepath.Join(dir, "told")
	script := filepath.Join(dir, "notify")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$@\" > "+told+".part; mv "+told+".part "+told+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	Main(Process{Args: []string{"codex", "--s", dir, "--t", script, "loud", `{"type":"x"}`}, Out: &bytes.Buffer{}, Within: true, StateFlag: "--s", ThenFlag: "--t"})
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if raw, err := os.ReadFile(told); err == nil {
			if string(raw) != "loud {\"type\":\"x\"}\n" {
				t.Errorf("it was told %q", raw)
			}
			return
		}
	}
	t.Error("it was never run")
}
