package acp

import (
	"context"
	"errors"
	"strings"

	"ductor/cli"
	"ductor/cli/rpc"
)

// failure converts the error of a request to the agent to a *cli.Failure.
func (o *Options) failure(err error) *cli.Failure {
	var refused *rpc.Error
	var f *cli.Failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &refused):
		return o.refusal(refused)
	case errors.Is(err, context.DeadlineExceeded):
		late := cli.Failf(cli.TimedOut, o.Agent, "failure.no-answer")
		late.Cause = err
		return late
	}
	return cli.AsFailure(o.Agent, err)
}

// refusal converts an error response of the agent to a *cli.Failure.
func (o *Options) refusal(e *rpc.Error) *cli.Failure {
	f := o.meaning(e.Code, strings.TrimPrefix(e.Error(), "Internal error: "), string(e.Data))
	f.Cause = e
	return f
}

// meaning classifies an error of the agent by its code, its message and its additional data. A known code has priority
// over the texts. A code of 0 means that the error has no code.
func (o *Options) meaning(code int, message, data string) *cli.Failure {
	text, kindOf := strings.TrimSpace(message+" "+data), KindOf
	if o.quirks.KindOf != nil {
		kindOf = o.quirks.KindOf
	}
	kind := kindOf(code, text)
	f := &cli.Failure{Kind: kind, Agent: o.Agent, Reason: ReasonOf(message), Detail: cli.Shorten(text, 2000)}
	switch {
	case kind == cli.NotLoggedIn && o.Login != "":
		f.Reason = o.Login
	case code == codeNoAuth && o.advice != "":
		f.Reason = o.advice
	}
	return f
}

// KindOf classifies an error by its code and its text. The code is an error code of the protocol, or the HTTP status of
// a response from the model's API.
func KindOf(code int, text string) cli.FailureKind {
	if code == codeNoAuth {
		return cli.NotLoggedIn
	}
	return cli.APIError{Status: max(code, 0), Text: text}.Kind()
}

// ReasonOf extracts the message from the text of an error, which may be a JSON response of the model's API.
func ReasonOf(text string) string { return cli.ShortLine(cli.InnerMessage(text)) }
