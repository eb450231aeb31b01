package gemini

import (
	"strings"

	"ductor/cli"
	"ductor/cli/acp"
)

const loginFix = "Run `gemini` on the machine and log in, or set GEMINI_API_KEY for ductor"

// Exit codes with which Gemini tells why it failed.
const (
	exitNoAuth    = 41
	exitInput     = 42
	exitConfig    = 52
	exitTurns     = 53
	exitUntrusted = 55
)

// kindOf classifies Gemini's errors. The known texts are from version 0.61.
func kindOf(code int, text string) cli.FailureKind {
	switch {
	case strings.HasPrefix(text, "model: ") || strings.Contains(text, "is not found for API version"):
		return cli.UnknownModel
	// The agent's process ended during a tool call, so the session contains a call without a result.
	case strings.Contains(text, "number of function response parts is equal to"):
		return cli.ResumeFailed
	}
	return acp.KindOf(code, text)
}

// exitKind returns the kind of failure for the exit code of a process that ended without a result. It returns "" for an
// unknown code. resumed is true if the process resumed a session.
func exitKind(code int, stderr string, resumed bool) cli.FailureKind {
	switch {
	case code == exitNoAuth:
		return cli.NotLoggedIn
	case code == exitInput && (resumed || strings.Contains(stderr, "resuming session")):
		return cli.ResumeFailed
	case code == exitInput || code == exitConfig || code == exitUntrusted:
		return cli.Refused
	case code == exitTurns:
		return cli.LimitOfTurn
	}
	return ""
}

// apiFailure returns the failure for the error in Gemini's result.
func apiFailure(message string) *cli.Failure {
	inner := strings.TrimSuffix(strings.TrimPrefix(message, "[API Error: "), "]")
	f := &cli.Failure{Kind: kindOf(0, inner), Agent: Agent, Reason: acp.ReasonOf(inner), Detail: cli.Shorten(message, 2000)}
	if f.Kind == cli.NotLoggedIn {
		f.Reason = loginFix
	}
	return f
}
