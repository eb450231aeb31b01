package turn_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/turn"
)

func TestOutput(t *testing.T) {
	h := clitest.Host(t)
	for _, tc := range []struct {
		name, script string
		wait         time.Duration
		want, err    string
	}{
		{"what it prints", "echo 1.2.3", time.Minute, "1.2.3\n", ""},
		{"its input is closed", "cat; echo over", time.Minute, "over\n", ""},
		{"a failure", "echo half; echo no such flag >&2; exit 2", time.Minute, "", "exit code 2: no such flag"},
		{"too long", "sleep 60", 20 * time.Millisecond, "", "deadline exceeded"},
		{"too long with a grandchild", "sleep 60 & sleep 60", 20 * time.Millisecond, "", "deadline exceeded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := turn.Output(t.Context(), h, shell(tc.script), tc.wait)
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	if _, err := turn.Output(t.Context(), h, cli.Command{Path: "no-such-program"}, time.Minute); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program that is not there gives %v", err)
	}
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(cli.ErrAborted)
	if _, err := turn.Output(cancelled, h, shell("true"), time.Minute); !errors.Is(err, cli.ErrAborted) {
		t.Errorf("a caller that left gets %v", err)
	}
}

// shell returns the command that runs a shell script.
func shell(script string) cli.Command {
	return cli.Command{Path: "sh", Args: []string{"-c", script}, Dir: "/", Env: os.Environ()}
}
