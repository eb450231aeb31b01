package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"ductor/lang"
)

// Model is an entry in the menu of models.
type Model struct {
	Agent         Agent
	ID            ModelID
	Resolved      ModelID // the exact ID if ID is an alias; empty if the agent does not report it
	Name          string  // name for users
	Description   string  // one line; may be empty
	Efforts       []Effort
	DefaultEffort Effort
	Default       bool  // the agent uses this model unless the user chooses another
	Context       int64 // size of the context window in tokens; 0 if unknown
	Price         Price
}

// Price is the price of a million tokens in US dollars. Zero means unknown.
type Price struct {
	Input  float64 `toml:"input_price"`
	Output float64 `toml:"output_price"`
}

// Of returns the price of the given numbers of input and output tokens.
func (p Price) Of(input, output int64) float64 {
	return (p.Input*float64(input) + p.Output*float64(output)) / 1e6
}

// AuthState describes whether an agent is installed and logged in.
type AuthState string

// AuthState values.
const (
	Authenticated AuthState = "authenticated"
	Installed     AuthState = "installed" // the program exists, but is not logged in
	NotFound      AuthState = "not-found"
)

// Auth describes whether an agent's program is installed and logged in.
type Auth struct {
	State   AuthState
	Path    string // path of the program
	Version string // empty if unknown
	Method  string // how the agent is logged in: "credential file", "ANTHROPIC_API_KEY", …; empty if unknown
	Fix     string // how the user can reach the State Authenticated, in one English sentence; empty if reached
	// Problem is the reason why the check failed. State is then Installed, and Fix is empty. If the program itself does
	// not run, Problem has the kind Crashed.
	Problem *Failure
}

// Broken reports whether the agent's program is installed but does not run.
func (a Auth) Broken() bool { return a.Problem != nil && a.Problem.Kind == Crashed }

// Advice returns Fix for users of a chat. Fix is English, so other languages get general advice instead.
func (a Auth) Advice(p lang.Printer) string {
	switch {
	case a.Fix == "" || p.IsEnglish():
		return a.Fix
	case a.State == NotFound:
		return p.Text("failure.not-installed-help")
	}
	return p.Text("failure.not-logged-in-help")
}

// MenuEntry is an agent in a menu.
type MenuEntry struct {
	Agent   Agent
	Account Account
	Auth    Auth
	Models  []Model // nil if Err is set
	Err     error   // the reason why Models is nil
	// Resting is the reason why ductor currently starts no turns with the agent. It is nil if ductor starts turns.
	Resting *Failure
}

// AgentState describes an agent before its first turn.
type AgentState struct {
	Agent   Agent
	Account Account
	Mode    Mode // the mode in which the agent will run
	Auth    Auth
}

// Usable reports whether the agent can run turns.
func (s AgentState) Usable() bool { return s.Auth.State == Authenticated }

// String describes the agent in one line: its path and version, how it is logged in or how to fix that, and its mode.
func (s AgentState) String() string {
	where := strings.TrimSpace(s.Auth.Path + " " + s.Auth.Version)
	switch {
	case s.Auth.Broken():
		return fmt.Sprintf("%s does not run: %s", where, cmp.Or(s.Auth.Problem.Why().String(), s.Auth.Problem.Error()))
	case s.Auth.Problem != nil:
		return fmt.Sprintf("%s does not say whether it is logged in. %s", where, s.Auth.Problem)
	case s.Usable():
		if s.Auth.Method != "" {
			return fmt.Sprintf("%s, logged in by %s, %s", where, s.Auth.Method, s.Mode)
		}
		return fmt.Sprintf("%s, logged in, %s", where, s.Mode)
	case s.Auth.State == Installed:
		return fmt.Sprintf("%s is not logged in. %s", where, s.Auth.Fix)
	}
	return strings.TrimSpace("not found. " + s.Auth.Fix)
}

// ErrLoading means that the agent has not answered yet, and that the caller did not want to wait; see AtOnce.
var ErrLoading = errors.New("it is being asked")

// AtOnce returns a context with which Menu and Default do not wait. They use cached data, and load missing data in the
// background.
func AtOnce(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(ErrLoading)
	return ctx
}
