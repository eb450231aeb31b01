package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The script of ductor completion works in a real bash: it completes subcommands and their flags.
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
	// What bash-completion does for a word, for a machine that has none of it.
	const shell = `
_get_comp_words_by_ref() { cur=${COMP_WORDS[COMP_CWORD]}; prev=${COMP_WORDS[COMP_CWORD-1]}; words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; }
_init_completion() { _get_comp_words_by_ref; }
complete_line() { COMP_WORDS=($1 "$2"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_LINE="$1 $2"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9; COMPREPLY=(); __start_ductor; echo "${COMPREPLY[@]}"; }
`
	for line, want := range map[string]string{`"ductor" "doc"`: "doctor", `"ductor service" "un"`: "uninstall", `"ductor setup" "--serv"`: "--service"} {
		cmd := exec.Command(bash, "--norc", "-c", script+shell+`ductor() { `+quoted(self)+` "$@"; }; complete_line `+line)
		cmd.Env = append(os.Environ(), beDuctor+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s completes to %q, %v", line, out, err)
		}
	}
}

func quoted(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }
