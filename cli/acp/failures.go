package acp

import (
	"context"
	"errors"
	"strings"

	"ductor/cli"
	"ductor/cli/rpc"
)

// failure converts the error of a request to a *cli.Failure.
func (o *Options) failure(err error) *cli.Failure {
	var refused *rpc.Error
	var f *cli.Failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &refused):
		return o.refusal(refused)
	case errors.Is(err, context.DeadlineExceeded):
		return &cli.Failure{Kind: cli.TimedOut, Agent: o.Agent, Reason: "it did not answer in time", Cause: err}
	}
	return cli.AsFailure(o.Agent, err)
}

// refusal converts an error that the agent returned to a failure.
func (o *Options) refusal(e *rpc.Error) *cli.Failure {
	f := o.meaning(e.Code, strings.TrimPrefix(e.Error(), "Internal error: "), string(e.Data))
	f.Cause = e
	return f
}

// meaning classifies an error. Its code has priority, if it has one, over the words and the agent's additional data.
func (o *Options) meaning(code int, words, data string) *cli.Failure {
	text, kindOf := strings.TrimSpace(words+" "+data), KindOf
	if o.quirks.KindOf != nil {
		kindOf = o.quirks.KindOf
	}
	kind := kindOf(code, text)
	f := &cli.Failure{Kind: kind, Agent: o.Agent, Reason: ReasonOf(words), Detail: cli.Shorten(text, 2000)}
	switch {
	case kind == cli.NotLoggedIn && o.Login != "":
		f.Reason = o.Login
	case code == codeNoAuth && o.advice != "":
		f.Reason = o.advice
	}
	return f
}

// KindOf classifies an error by its code and its text. The code is an error code of the protocol, or an HTTP status of
// the model's API.
func KindOf(code int, text string) cli.FailureKind {
	if code == codeNoAuth {
		return cli.NotLoggedIn
	}
	return cli.APIError{Status: max(code, 0), Text: text}.Kind()
}

// ReasonOf returns the message in an error text, which may be JSON of the model's API.
func ReasonOf(text string) string { return cli.ShortLine(cli.InnerMessage(text)) }
