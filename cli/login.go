package cli

import "context"

// Login is a way to log an agent in.
type Login struct {
	ID   string // the agent's own name of the way; empty for one that only users can go
	Name string // the agent's name of it for users; may be empty
	Kind LoginKind
	// Command is the line that a user types in a terminal. For LoginByToken it prints the token, on any machine.
	Command string
	// Variable is the environment variable that has the key, or the token.
	Variable string
	Account  Account // the account that it logs in
}

// LoginKind groups the ways to log in by the user's part in them.
type LoginKind string

// The kinds.
const (
	LoginByAgent    LoginKind = "agent"    // the agent does it when it is told to
	LoginByCode     LoginKind = "code"     // the user enters a code on a web page, on any device
	LoginByToken    LoginKind = "token"    // the user sends a token, which ductor stores
	LoginByCommand  LoginKind = "command"  // the user runs a command in a terminal of the agent's machine
	LoginByVariable LoginKind = "variable" // the user stores a key for the agent
)

// InChat reports whether a user can log in this way from a chat.
func (l Login) InChat() bool {
	return l.Kind == LoginByAgent || l.Kind == LoginByCode || l.Kind == LoginByToken
}

// LoginProvider is a Provider that knows how its agent can be logged in.
type LoginProvider interface {
	// Logins lists the ways to log in, the best first. It does not block. The list is empty until the agent has named
	// them.
	Logins() []Login
	// LogIn logs in the agent by a LoginByAgent or LoginByCode. It passes the page and the code to show, which displays
	// them to the user. LogIn returns when the agent is logged in. Otherwise its error explains why the agent is not. It
	// gives up when ctx ends.
	LogIn(ctx context.Context, id string, show func(DeviceCode)) error
}

// DeviceCode is the data for logging in an agent from another device. The user enters the code on a web page.
type DeviceCode struct {
	Agent Agent
	URL   string
	Code  string
}
