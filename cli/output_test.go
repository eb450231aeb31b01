package cli

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"
)

func TestOutput(t *testing.T) {
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
			got, err := Output(t.Context(), NewHost(), sh(t, tc.script), tc.wait)
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	if _, err := Output(t.Context(), NewHost(), Command{Path: "no-such-program"}, time.Minute); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program that is not there gives %v", err)
	}
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(ErrAborted)
	if _, err := Output(cancelled, NewHost(), sh(t, "true"), time.Minute); !errors.Is(err, ErrAborted) {
		t.Errorf("a caller that left gets %v", err)
	}
}
