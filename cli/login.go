package cli

import "context"

// Login is a method by which a user can log an agent in.
type Login struct {
	ID   string // the agent's own ID of this method; empty if the agent cannot log itself in
	Name string // the agent's own name of this method, for users; may be empty
	Kind LoginKind
	// Command is the command line that the user types in a terminal. For LoginByToken, the command prints the token,
	// and the user can run it on any machine.
	Command string
	// Variable is the name of the environment variable that contains the key or the token.
	Variable string
	Account  Account // the account to log in
}

// LoginKind classifies ways to log in by what the user has to do.
type LoginKind string

// LoginKind values.
const (
	LoginByAgent    LoginKind = "agent"    // the user does nothing: the agent logs itself in on request
	LoginByCode     LoginKind = "code"     // the user enters a code on a web page, on any device
	LoginByToken    LoginKind = "token"    // the user sends a token, which ductor stores
	LoginByCommand  LoginKind = "command"  // the user runs a command in a terminal on the agent's machine
	LoginByVariable LoginKind = "variable" // the user stores a key for the agent
)

// InChat reports whether the user can log in by this method from a chat.
func (l Login) InChat() bool {
	return l.Kind == LoginByAgent || l.Kind == LoginByCode || l.Kind == LoginByToken
}

// Advice explains in one sentence how the user logs in by this method.
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
	// Logins lists the ways to log in, the best first. It does not block. It returns nothing until the provider knows
	// them.
	Logins() []Login
	// LogIn logs the agent in. id is the ID of a Login of kind LoginByAgent or LoginByCode. LogIn calls show to display
	// the web page and the code to the user. It returns nil when the agent is logged in, and otherwise an error with
	// the reason. It stops when ctx ends.
	LogIn(ctx context.Context, id string, show func(DeviceCode)) error
}

// Successor is a Provider that can take over the log-in of its predecessor.
type Successor interface {
	// Succeed takes over the log-in of former, which is the provider that this provider replaces. It does nothing if
	// the two providers use different programs or different variables. Both providers are for the same agent and
	// account. The caller must not have used this provider yet.
	Succeed(former Provider)
}

// DeviceCode is what the user needs to log an agent in from any device. The user enters the code on a web page.
type DeviceCode struct {
	Agent Agent
	URL   string
	Code  string
}
