package turn

import (
	"strings"
	"testing"
	"time"

	"ductor/cli"
)

// Output that the agent printed long before it was killed, colours and warnings are not the reason for its end.
func TestWhyAProgramEnded(t *testing.T) {
	const warning = "\x1b[33mWARN\x1b[0m bubblewrap was not found"
	for _, tc := range []struct {
		name, stderr, want string
		exit               cli.ExitStatus
	}{
		{"killed after a warning", warning, "", cli.ExitStatus{Code: -9, Signal: true}},
		{"killed after an error", "error: that was long ago", "", cli.ExitStatus{Code: -9, Signal: true}},
		{"an error in colour", "\x1b[31merror:\x1b[0m no home", "error: no home", cli.ExitStatus{Code: 1}},
		{"a warning after the error", "error: no home\n" + warning, "error: no home", cli.ExitStatus{Code: 1}},
		{"a warning alone", warning, "it gave no reason", cli.ExitStatus{Code: 1}},
		{"a time before the warning", "2026-01-01T00:00:00Z  WARN codex: slow", "it gave no reason", cli.ExitStatus{Code: 1}},
		{"a crash of its own", "panic: nil", "panic: nil", cli.ExitStatus{Code: -6, Signal: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newFakeProcess()
			p.stderr = tc.stderr
			p.die(tc.exit)
			f := EndFailure("fake", p, time.Minute, nil, Garbage{})
			if f.Why().String() != tc.want || strings.Contains(f.Detail, "\x1b") {
				t.Errorf("%q, detail %q", f.Why().String(), f.Detail)
			}
		})
	}
}

func TestWhoEndedAProgram(t *testing.T) {
	for exit, outside := range map[cli.ExitStatus]bool{
		{Code: 143}: true, {Code: -15, Signal: true}: true, {Code: 0, By: cli.EndedByTerminated}: true, {Code: cli.CodeUnknown, By: cli.EndedUnseen}: true,
		{Code: 1}: false, {Code: -9, Signal: true}: false, {Code: 143, By: cli.EndedByStop}: false, {Code: 143, By: cli.EndedByAge}: false,
	} {
		if fromOutside(exit) != outside {
			t.Errorf("%+v was ended from outside: %v", exit, !outside)
		}
	}
}
