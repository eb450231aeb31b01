package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
)

// Model is one choice in the model menu.
type Model struct {
	Agent         Agent
	ID            ModelID
	Name          string // for people
	Description   string // one line; may be empty
	Efforts       []Effort
	DefaultEffort Effort
	Default       bool  // the agent's own choice when none is made
	Context       int64 // tokens that it can read; 0 where unknown
	Price         Price
}

// Price is what a million tokens cost, in dollars; zero where unknown.
type Price struct{ Input, Output float64 }

// Of is what tokens cost.
func (p Price) Of(in, out int64) float64 { return (p.Input*float64(in) + p.Output*float64(out)) / 1e6 }

// AuthState says how far an agent is from being usable.
type AuthState string

// The states of an agent.
const (
	Authenticated AuthState = "authenticated"
	Installed     AuthState = "installed" // found, but not logged in
	NotFound      AuthState = "not-found"
)

// Auth is what a provider found out about its CLI.
type Auth struct {
	State   AuthState
	Path    string // the program that would be run
	Version string // empty where unknown
	Method  string // how it is logged in: "credential file", "ANTHROPIC_API_KEY", …
	Fix     string // what to do when State is not Authenticated; one sentence
	// Problem is why the agent did not say whether it is logged in; State is Installed then, and there is no Fix. It is Crashed for a
	// program that does not run, whose State is what else is known.
	Problem *Failure
}

// Broken reports whether the program does not run.
func (a Auth) Broken() bool { return a.Problem != nil && a.Problem.Kind == Crashed }

// MenuEntry is one agent as a menu shows it.
type MenuEntry struct {
	Agent  Agent
	Auth   Auth
	Models []Model // nil when Err is set
	Err    error   // why no models can be shown
	// Resting says why the agent is left alone for a while; nil if it is not.
	Resting *Failure
}

// AgentState is what is known of one agent before anybody asks it.
type AgentState struct {
	Agent Agent
	Mode  Mode // it is run in
	Auth  Auth
}

// Usable says whether it can be asked.
func (s AgentState) Usable() bool { return s.Auth.State == Authenticated }

// String is one line: where it was found, which version, how it is logged in or what to do, and how it is run.
func (s AgentState) String() string {
	where := strings.TrimSpace(s.Auth.Path + " " + s.Auth.Version)
	switch {
	case s.Auth.Broken():
		return fmt.Sprintf("%s does not run: %s", where, cmp.Or(s.Auth.Problem.Reason, s.Auth.Problem.Error()))
	case s.Auth.Problem != nil:
		return fmt.Sprintf("%s does not say whether it is logged in. %s", where, s.Auth.Problem)
	case s.Usable():
		return fmt.Sprintf("%s, logged in by %s, %s", where, s.Auth.Method, s.Mode)
	case s.Auth.State == Installed:
		return fmt.Sprintf("%s is not logged in. %s", where, s.Auth.Fix)
	}
	return strings.TrimSpace("not found. " + s.Auth.Fix)
}

// ErrLoading says that an agent is being asked, and somebody did not want to wait for that.
var ErrLoading = errors.New("it is being asked")

// AtOnce is ctx for a Menu or a Default that is to answer by what is known, and has the rest looked up.
func AtOnce(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(ErrLoading)
	return ctx
}

// DeviceCode is what a user needs to log an agent in from another device: the code is entered on a page.
type DeviceCode struct {
	Agent Agent
	URL   string
	Code  string
}

// DeviceLogin is a Provider whose agent can be logged in from another device.
type DeviceLogin interface {
	// LogIn has the agent log in. show gets where the user enters which code. LogIn returns once the agent is logged in; the
	// error says why it is not. The end of ctx gives up.
	LogIn(ctx context.Context, show func(DeviceCode)) error
}
