package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The script of `ductor completion` works in a real bash: it completes subcommands and their flags.
func TestBashCompletesCommands(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	code, script, stderr := runDuctor(t, "completion", "bash", "--no-descriptions")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	// Stands for bash-completion's own function, which this machine may lack.
	const shell = `
_get_comp_words_by_ref() { cur=${COMP_WORDS[COMP_CWORD]}; prev=${COMP_WORDS[COMP_CWORD-1]}; words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; }
_init_completion() { _get_comp_words_by_ref; }
complete_line() { COMP_WORDS=($1 "$2"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_LINE="$1 $2"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9; COMPREPLY=(); __start_ductor; echo "${COMPREPLY[@]}"; }
`
	for line, want := range map[string]string{`"ductor" "doc"`: "doctor", `"ductor service" "un"`: "uninstall",
		`"ductor setup" "--serv"`: "--service"} {
		cmd := exec.Command(bash, "--norc", "-c",
			script+shell+`ductor() { `+quoted(self)+` "$@"; }; complete_line `+line)
		cmd.Env = append(os.Environ(), beDuctor+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s completes to %q, %v", line, out, err)
		}
	}
}

func quoted(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// A mistyped word gets a suggestion.
func TestMistypedWordsAreRecognized(t *testing.T) {
	for line, want := range map[string]string{
		"strat":           "did you mean ductor run?",
		"docter":          "did you mean ductor doctor?",
		"service instal":  "did you mean ductor service install?",
		"status":          "did you mean ductor service status?",
		"qqqqqqqqqqqqqqq": "ductor --help lists them",
		"run --confg x":   "did you mean --config?",
	} {
		code, stdout, stderr := runDuctor(t, strings.Fields(line)...)
		if code != exitFailure || !strings.Contains(stderr, want) {
			t.Errorf("ductor %s: exit %d: %s%s", line, code, stdout, stderr)
		}
	}
	_, version, _ := runDuctor(t, "version")
	if code, stdout, stderr := runDuctor(t, "--version"); code != 0 || stdout != version || version == "" {
		t.Errorf("--version: exit %d: %s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := runDuctor(t); code != 0 || !strings.Contains(stdout, "Set it up: ductor setup") {
		t.Errorf("without a word: exit %d: %s%s", code, stdout, stderr)
	}
	config := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(config, []byte("[telegram]\ntoken = '123456789:AAExample-token_for-tests0000000000'\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := runDuctor(t, "upgrade", "--check", "-c", config); code != 0 ||
		!strings.Contains(stdout, "set upgrade.url") {
		t.Errorf("upgrade --check: exit %d: %s%s", code, stdout, stderr)
	}
}
