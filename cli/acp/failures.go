package acp

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"ductor/cli"
	"ductor/cli/rpc"
)

// failure makes a *cli.Failure of what a call gave.
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

// refusal is the failure that an error of the agent's means.
func (o *Options) refusal(e *rpc.Error) *cli.Failure {
	text := e.Error()
	f := o.meaning(e.Code, text)
	f.Cause = e
	return f
}

// meaning sorts an error by its code, if it has one, and its words.
func (o *Options) meaning(code int, text string) *cli.Failure {
	kind := cli.UnknownFailure
	if o.quirks.KindOf != nil {
		kind = o.quirks.KindOf(code, text)
	}
	if kind == cli.UnknownFailure {
		kind = KindOf(code, text)
	}
	f := &cli.Failure{Kind: kind, Agent: o.Agent, Reason: ReasonOf(text), Detail: cli.Shorten(text, 2000)}
	if kind == cli.NotLoggedIn && o.Login != "" {
		f.Reason = o.Login
	}
	return f
}

// KindOf sorts an error by its code, which is the protocol's or that of the model's API, and then by its words.
func KindOf(code int, text string) cli.FailureKind {
	if cli.SaysContextFull(text) {
		return cli.ContextFull
	}
	switch code {
	case codeNoAuth, http.StatusUnauthorized, http.StatusForbidden:
		return cli.NotLoggedIn
	case http.StatusTooManyRequests:
		return cli.LimitReached
	case http.StatusBadRequest:
		return cli.Refused
	case http.StatusNotFound:
		return cli.UnknownModel
	case http.StatusServiceUnavailable, 529:
		return cli.Overloaded
	}
	return kindOfWords(strings.ToLower(text))
}

func kindOfWords(text string) cli.FailureKind {
	return cli.KindOfWords(text, []cli.Words{
		{Kind: cli.NotLoggedIn, Any: []string{"authentication required", "unauthorized", "unauthenticated", "not logged in", "invalid api key", "please log in"}},
		{Kind: cli.LimitReached, Any: []string{"rate limit", "quota", "too many requests", "usage limit"}},
		{Kind: cli.Overloaded, Any: []string{"overloaded", "at capacity", "unavailable"}},
		{Kind: cli.NetworkDown, Any: []string{"fetch failed", "econnrefused", "enotfound", "econnreset", "network error", "terminated", "socket hang up"}},
		{Kind: cli.UnknownModel, Any: []string{"model not found", "unknown model", "not-a-model", "model_not_found", "is not found for api version"}},
	})
}

// ReasonOf is the sentence inside an error text, which may be the JSON of a model's API.
func ReasonOf(text string) string { return cli.ShortLine(cli.InnerMessage(text)) }
