package copilot

import (
	"strings"

	"ductor/cli"
)

// errorFailure returns the failure for a session.error event. It classifies the error by its type, or else by the HTTP
// status of the model's API, or else by its text. The known values are from version 1.0.102.
func errorFailure(f fields) *cli.Failure {
	return &cli.Failure{Kind: errorKind(f), Agent: Agent, Reason: reasonOf(f.Message)}
}

// stopped returns a failure if Copilot's finishReason shows that the model's answer is incomplete. Otherwise it returns
// nil.
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
	kind := cli.APIError{Status: f.StatusCode, Name: f.ErrorType, Text: f.Message}.Kind()
	if kind == cli.UnknownFailure {
		return textKind(f.Message)
	}
	return kind
}

// textKind classifies an error by its text, for an error without a type and a status.
func textKind(text string) cli.FailureKind {
	kind := cli.KindOfWords(text, []cli.Words{
		{Kind: cli.NotLoggedIn, Any: []string{"requires a local model provider"}},
		{Kind: cli.ResumeFailed, Any: []string{"No session, task, or name matched", "Session not found", "session events"}},
		{Kind: cli.Refused, Any: []string{"unexpected argument", "error: invalid value", "error: unknown option"}},
		{Kind: cli.UnknownModel, Any: []string{"is not available"}},
	})
	if kind == cli.UnknownFailure {
		return cli.APIError{Text: text}.Kind()
	}
	return kind
}

// reasonOf extracts the reason from an error text, without the number of attempts.
func reasonOf(message string) string {
	if _, last, ok := strings.Cut(message, "Last error: "); ok {
		message = last
	}
	message, _, _ = strings.Cut(strings.TrimSpace(message), "\n")
	return cli.Shorten(message, 300)
}

// exitFailure classifies the failure of a process that ended without a result, by the process's last output.
func exitFailure(f *cli.Failure) *cli.Failure {
	if f == nil || f.Kind != cli.Crashed {
		return f
	}
	switch kind := textKind(f.Detail); kind {
	case cli.NotLoggedIn, cli.ResumeFailed, cli.Refused:
		f.Kind = kind
		f.Quote(firstWords(f.Detail))
	}
	return f
}

func firstWords(stderr string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(stderr), "\n")
	return cli.Shorten(strings.TrimPrefix(line, "Error: "), 300)
}
