package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
)

// Model is an entry of the model menu.
type Model struct {
	Agent         Agent
	ID            ModelID
	Resolved      ModelID // the exact ID of an alias; empty if the agent does not report it
	Name          string  // for users
	Description   string  // one line; may be empty
	Efforts       []Effort
	DefaultEffort Effort
	Default       bool  // the agent's default
	Context       int64 // in tokens; 0 if unknown
	Price         Price
}

// Price is the price of a million tokens in US dollars. It is zero if unknown.
type Price struct {
	Input  float64 `toml:"input_price"`
	Output float64 `toml:"output_price"`
}

// Of returns the price of a number of input and output tokens.
func (p Price) Of(in, out int64) float64 { return (p.Input*float64(in) + p.Output*float64(out)) / 1e6 }

// AuthState is the log-in state of an agent.
type AuthState string

// AuthState values.
const (
	Authenticated AuthState = "authenticated"
	Installed     AuthState = "installed" // found, but not logged in
	NotFound      AuthState = "not-found"
)

// Auth is the result of a provider's check of its agent's CLI.
type Auth struct {
	State   AuthState
	Path    string // path of the program
	Version string // empty if unknown
	Method  string // way to log in: "credential file", "ANTHROPIC_API_KEY", …; empty if unknown
	Fix     string // how to fix a State other than Authenticated; one sentence
	// Problem is the reason why the log-in state is unknown. State is then Installed, and Fix is empty. If the program
	// does not run, the kind of Problem is Crashed, and State is as far as known.
	Problem *Failure
}

// Broken reports whether the agent's program does not run.
func (a Auth) Broken() bool { return a.Problem != nil && a.Problem.Kind == Crashed }

// MenuEntry is an agent in a menu.
type MenuEntry struct {
	Agent  Agent
	Auth   Auth
	Models []Model // nil if Err is set
	Err    error   // the reason why Models is nil
	// Resting is the reason why the agent gets no turns for a while. It is nil if the agent gets turns.
	Resting *Failure
}

// AgentState is the known state of an agent before its first turn.
type AgentState struct {
	Agent Agent
	Mode  Mode // the mode that it runs in
	Auth  Auth
}

// Usable reports whether the agent can run turns.
func (s AgentState) Usable() bool { return s.Auth.State == Authenticated }

// String describes the agent in one line: its path, its version, its log-in (or how to fix it), and its mode.
func (s AgentState) String() string {
	where := strings.TrimSpace(s.Auth.Path + " " + s.Auth.Version)
	switch {
	case s.Auth.Broken():
		return fmt.Sprintf("%s does not run: %s", where, cmp.Or(s.Auth.Problem.Reason, s.Auth.Problem.Error()))
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

// ErrLoading means that the agent has not answered yet, and that the caller asked not to wait; see AtOnce.
var ErrLoading = errors.New("it is being asked")

// AtOnce returns a context with which Menu and Default do not wait: they answer from known data and load missing data
// in the background.
func AtOnce(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(ErrLoading)
	return ctx
}
