package claude

import (
	"testing"

	"ductor/cli"
)

// Processes that end before their first line give the reason only on standard error.
func TestExitWithoutAResult(t *testing.T) {
	tests := []struct {
		stderr string
		want   cli.FailureKind
	}{
		{"error: unknown option '--no-such-flag'", cli.Refused},
		{"Error: Invalid MCP configuration:\nMCP config file not found: /srv/proj/{bad json", cli.Refused},
		{"--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons", cli.Refused},
		{"Error: Session ID 51ff2317-439a-4609-9d7e-b7b63be21d67 is already in use.", cli.ResumeFailed},
		{"No conversation found with session ID: 51ff2317-439a-4609-9d7e-b7b63be21d67", cli.ResumeFailed},
		{"Error: --resume requires a valid session ID or session title when used with --print. Provided value \"x\"", cli.ResumeFailed},
		{"Segmentation fault", cli.Crashed},
		{"", cli.Crashed},
	}
	for _, tt := range tests {
		got := exitFailure(&cli.Failure{Kind: cli.Crashed, Agent: agent, Code: 1, Detail: tt.stderr})
		if got.Kind != tt.want {
			t.Errorf("%q: got %s, want %s", tt.stderr, got.Kind, tt.want)
		}
		if tt.want != cli.Crashed && got.Reason != oneLine(tt.stderr) {
			t.Errorf("%q: reason %q", tt.stderr, got.Reason)
		}
	}
}
