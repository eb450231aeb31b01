package copilot

import (
	"strings"

	"ductor/cli"
)

// errorFailure says what a session.error means. Its type is named first, then the status of the model's API,
// then its text; those are of version 1.0.102.
func errorFailure(f fields) *cli.Failure {
	return &cli.Failure{Kind: errorKind(f), Agent: Agent, Reason: reasonOf(f.Message)}
}

// stopped says what kept the model from ending its answer itself, by the reason that Copilot gives; nil for nothing.
func stopped(reason string) *cli.Failure {
	switch reason {
	case "length":
		return &cli.Failure{Kind: cli.AnswerCut, Agent: Agent}
	case "content_filter":
		return &cli.Failure{Kind: cli.ModelRefused, Agent: Agent}
	}
	return nil
}

func errorKind(f fields) cli.FailureKind {
	switch f.ErrorType {
	case "authentication", "authorization":
		return cli.NotLoggedIn
	case "rate_limit", "quota":
		return cli.LimitReached
	}
	switch {
	case f.ErrorType == "context_limit", cli.SaysContextFull(f.Message):
		return cli.ContextFull
	case f.StatusCode == 401:
		return cli.NotLoggedIn
	case f.StatusCode == 404:
		return cli.UnknownModel
	case f.StatusCode == 429:
		return cli.LimitReached
	case f.StatusCode >= 500:
		return cli.Overloaded
	case f.StatusCode >= 400, f.ErrorType == "policy":
		return cli.Refused
	}
	return textKind(f.Message)
}

// textKind sorts a text that comes without type or status.
func textKind(text string) cli.FailureKind {
	return cli.KindOfWords(text, []cli.Words{
		{Kind: cli.NotLoggedIn, Any: []string{"No authentication information", "Not authenticated", "No GitHub OAuth token", "requires a local model provider"}},
		{Kind: cli.ResumeFailed, Any: []string{"No session, task, or name matched", "Session not found", "session events"}},
		{Kind: cli.Overloaded, Any: []string{"Overloaded", "overloaded"}},
		{Kind: cli.NetworkDown, Any: []string{"HTTP request", "ECONNREFUSED", "ENOTFOUND", "ETIMEDOUT", "fetch failed", "network"}},
		{Kind: cli.Refused, Any: []string{"unexpected argument", "error: invalid value", "error: unknown option"}},
		{Kind: cli.UnknownModel, Any: []string{"not found on provider", "is not available", "Unknown model"}},
	})
}

// reasonOf is the sentence in an error text: without how often it was tried.
func reasonOf(message string) string {
	if _, last, ok := strings.Cut(message, "Last error: "); ok {
		message = last
	}
	message, _, _ = strings.Cut(strings.TrimSpace(message), "\n")
	return cli.Shorten(message, 300)
}

// exitFailure sharpens what is known about a process that ended without a result, by its last words.
func exitFailure(f *cli.Failure) *cli.Failure {
	if f == nil || f.Kind != cli.Crashed {
		return f
	}
	switch kind := textKind(f.Detail); kind {
	case cli.NotLoggedIn, cli.ResumeFailed, cli.Refused:
		f.Kind, f.Reason = kind, firstWords(f.Detail)
	}
	return f
}

func firstWords(stderr string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(stderr), "\n")
	return cli.Shorten(strings.TrimPrefix(line, "Error: "), 300)
}
