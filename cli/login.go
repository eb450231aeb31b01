package cli

import "context"

// Login is a way to log an agent in.
type Login struct {
	ID   string // the agent's own ID of the way; empty if only the user can log in this way
	Name string // the agent's own name of the way, for users; may be empty
	Kind LoginKind
	// Command is the command line that a user types in a terminal. For LoginByToken it prints the token, on any
	// machine.
	Command string
	// Variable is the name of the environment variable with the key or the token.
	Variable string
	Account  Account // the account that it logs in
}

// LoginKind classifies ways to log in by the user's part in them.
type LoginKind string

// LoginKind values.
const (
	LoginByAgent    LoginKind = "agent"    // the agent logs itself in on request
	LoginByCode     LoginKind = "code"     // the user enters a code on a web page, on any device
	LoginByToken    LoginKind = "token"    // the user sends a token, which ductor stores
	LoginByCommand  LoginKind = "command"  // the user runs a command in a terminal on the agent's machine
	LoginByVariable LoginKind = "variable" // the user stores a key for the agent
)

// InChat reports whether a user can log in this way from a chat.
func (l Login) InChat() bool {
	return l.Kind == LoginByAgent || l.Kind == LoginByCode || l.Kind == LoginByToken
}

// Advice explains in one sentence how the user can log an agent in this way.
func (l Login) Advice(agent Agent) string {
	switch l.Kind {
	case LoginByCommand:
		return "Run " + l.Command + " in a terminal of its machine"
	case LoginByVariable:
		return "Set " + l.Variable + " by: ductor secret set " + l.Account.Of(agent) + "." + l.Variable
	}
	return "Log in from /model in the chat"
}

// LoginProvider is a Provider that knows the ways to log in its agent.
type LoginProvider interface {
	// Logins lists the ways to log in, the best first. It does not block. It returns nothing until the agent has
	// reported the ways.
	Logins() []Login
	// LogIn logs the agent in by a way of kind LoginByAgent or LoginByCode. It passes the web page and the code to
	// show, which displays them to the user. It returns when the agent is logged in, or with an error that explains why
	// not. It stops when ctx ends.
	LogIn(ctx context.Context, id string, show func(DeviceCode)) error
}

// DeviceCode is the data for logging in an agent from another device. The user enters the code on a web page.
type DeviceCode struct {
	Agent Agent
	URL   string
	Code  string
}
