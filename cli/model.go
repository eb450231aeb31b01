package cli

import "context"

// Model is one choice in the model menu.
type Model struct {
	Agent         Agent
	ID            ModelID
	Name          string // for people
	Description   string // one line; may be empty
	Efforts       []Effort
	DefaultEffort Effort
	Default       bool // the agent's own choice when none is made
}

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
	Via     string // the protocol it speaks when live, for an agent that has several; else empty
	Fix     string // what to do when State is not Authenticated; one sentence
}

// ModelLister is the part of a Provider that a menu needs.
type ModelLister interface {
	Models(ctx context.Context) ([]Model, error)
}

// MenuEntry is one agent as a menu shows it.
type MenuEntry struct {
	Agent  Agent
	Auth   Auth
	Models []Model // nil when Err is set
	Err    error   // why no models can be shown
}
