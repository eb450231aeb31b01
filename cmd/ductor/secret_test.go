package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// runWithInput is runDuctor with a text as standard input.
func runWithInput(t testing.TB, input string, args ...string) (code int, said string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env, cmd.Stdin = append(os.Environ(), beDuctor+"=1", "GORACE=atexit_sleep_ms=0"), strings.NewReader(input)
	out, _ := cmd.CombinedOutput() // the exit code is checked instead
	return cmd.ProcessState.ExitCode(), string(out)
}

// Only the key's own agent gets it, until it is removed. No chat, configuration or command shows it.
func TestAnAgentGetsItsKey(t *testing.T) {
	town := surroundings(t, nil)
	const key = "sk-ant-9876543210-fedcba"
	t.Setenv("ANTHROPIC_API_KEY", "of-the-environment")
	config := town.writeConfig()
	if code, said := runWithInput(t, key+"\n", "secret", "set", "ANTHROPIC_API_KEY", "-c", config); code != 0 ||
		strings.Contains(said, key) {
		t.Fatalf("exit %d: %s", code, said)
	}
	for _, args := range [][]string{{"secret", "list"}, {"doctor"}} {
		code, stdout, stderr := runDuctor(t, append(args, "-c", config)...)
		if code != 0 || strings.Contains(stdout+stderr, key) || !strings.Contains(stdout, "ANTHROPIC_API_KEY") {
			t.Errorf("%q, exit %d: %s%s", args, code, stdout, stderr)
		}
	}
	o := &ordeal{town: town, config: config}
	o.rise()
	o.say(
		`[[start]] [[tool cmd="test \"$ANTHROPIC_API_KEY\" != of-the-environment && printf %%s \"$ANTHROPIC_API_KEY\" | wc -c > length"]] [[text "mine: " env=ANTHROPIC_API_KEY]] [[text ", of Codex: " env=OPENAI_API_KEY]] [[text " the end"]]`)
	o.await("mine: [secret removed], of Codex:  the end")
	o.say("/model codex")
	o.await("Codex")
	o.say(`[[start]] [[text "of Claude: " env=ANTHROPIC_API_KEY]] [[text " that is all"]]`)
	o.await("of Claude:  that is all")
	checkNotShown(t, o.chat, key[:10])
	if length, err := os.ReadFile(town.cfg.Projects.DefaultDir + "/length"); err != nil ||
		strings.TrimSpace(string(length)) != "24" {
		t.Errorf("the agent got a key of %s characters: %v", length, err)
	}
	if text, err := os.ReadFile(config); err != nil || bytes.Contains(text, []byte(key)) {
		t.Errorf("the configuration holds the key: %v", err)
	}
	for want, args := range map[int][]string{0: {"secret", "rm", "ANTHROPIC_API_KEY"},
		1: {"secret", "rm", "OPENAI_API_KEY"}} {
		if code, stdout, stderr := runDuctor(t, append(args, "-c", config)...); code != want {
			t.Errorf("%q, exit %d: %s%s", args, code, stdout, stderr)
		}
	}
	if _, stdout, _ := runDuctor(t, "secret", "list", "-c", config); stdout != "no keys are stored\n" {
		t.Error(stdout)
	}
}
