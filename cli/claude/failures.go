package claude

import (
	"strings"
	"time"

	"ductor/cli"
)

// trouble is what a turn's failure is judged by besides its result line.
type trouble struct {
	apiError string    // the kind Claude gave with its synthetic error message
	resetAt  time.Time // from a rate limit that was hit; zero where none was
	network  bool      // the last thing retried was a lost connection
}

// resultFailure says what went wrong; nil for a turn that went well. Only is_error counts: the subtype of
// a failed turn is often "success".
func resultFailure(r resultFields, subtype string, t trouble) *cli.Failure {
	if !r.IsError {
		return nil
	}
	f := &cli.Failure{Agent: agent, Kind: failureKind(r, subtype, t), Reason: failureReason(r)}
	if f.Kind == cli.LimitReached {
		f.ResetAt = t.resetAt
	}
	return f
}

func failureKind(r resultFields, subtype string, t trouble) cli.FailureKind {
	switch {
	case strings.HasPrefix(subtype, "error_max_"):
		return cli.LimitOfTurn
	case unknownSession(strings.Join(r.Errors, "\n")):
		return cli.ResumeFailed
	case r.StopReason == "refusal":
		return cli.Refused
	}
	if kind := byAPIError(t.apiError); kind != "" {
		return kind
	}
	if r.APIErrorStatus != nil {
		if kind := byStatus(*r.APIErrorStatus); kind != "" {
			return kind
		}
	}
	return byText(r.Result, t)
}

func byAPIError(kind string) cli.FailureKind {
	switch kind {
	case "authentication_failed", "oauth_org_not_allowed":
		return cli.NotLoggedIn
	case "rate_limit", "billing_error":
		return cli.LimitReached
	case "overloaded":
		return cli.Overloaded
	case "model_not_found":
		return cli.UnknownModel
	case "invalid_request":
		return cli.Refused
	case "max_output_tokens":
		return cli.LimitOfTurn
	}
	return ""
}

func byStatus(status int) cli.FailureKind {
	switch status {
	case 401:
		return cli.NotLoggedIn
	case 429:
		return cli.LimitReached
	case 529:
		return cli.Overloaded
	case 400, 403, 413:
		return cli.Refused
	case 404:
		return cli.UnknownModel
	}
	return ""
}

func byText(text string, t trouble) cli.FailureKind {
	has := func(parts ...string) bool { return cli.ContainsAny(text, parts...) }
	switch {
	case has("Not logged in", "Invalid API key", "Please run /login"):
		return cli.NotLoggedIn
	case has("Overloaded", "overloaded"):
		return cli.Overloaded
	case has("usage limit", "hit your limit"), !t.resetAt.IsZero():
		return cli.LimitReached
	case t.network, has("Connection error", "Unable to connect", "ECONNREFUSED", "ENOTFOUND"):
		return cli.NetworkDown
	}
	return cli.UnknownFailure
}

// failureReason is Claude's own sentence.
func failureReason(r resultFields) string {
	text := r.Result
	if strings.HasPrefix(r.Terminal, "aborted_") && text == "" {
		return "the turn was interrupted"
	}
	if text == "" {
		for _, e := range r.Errors {
			if !strings.HasPrefix(e, "[ede_diagnostic]") { // Claude's notes to itself
				text = e
				break
			}
		}
	}
	return cli.Shorten(strings.TrimPrefix(text, "API Error: "), 500)
}

// retryStatus is what to show while Claude asks its API again.
func retryStatus(l *line) string {
	switch {
	case l.ErrorStatus == nil:
		return "no connection to the model"
	case *l.ErrorStatus == 429:
		return "the model's rate limit is reached"
	case *l.ErrorStatus == 529:
		return "the model is overloaded"
	case *l.ErrorStatus == 401:
		return "the log-in was not accepted"
	}
	return "the model's API answered with an error"
}

// exitFailure sharpens what is known about a process that ended without a result, by its last words.
func exitFailure(f *cli.Failure) *cli.Failure {
	words := f.Detail
	switch {
	case unknownSession(words), strings.Contains(words, "requires a valid session ID"),
		strings.Contains(words, "is already in use"):
		f.Kind = cli.ResumeFailed
	case strings.Contains(words, "root/sudo privileges"), strings.Contains(words, "Invalid MCP configuration"),
		strings.Contains(words, "error: unknown option"), strings.Contains(words, "error: option "):
		f.Kind = cli.Refused
	default:
		return f
	}
	f.Reason = oneLine(words)
	return f
}

func unknownSession(text string) bool {
	return strings.Contains(text, "No conversation found")
}
