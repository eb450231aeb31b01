package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"ductor/lang"
)

// Account is the name of an agent's log-in in the configuration, such as "work". Empty means the agent's default
// log-in.
type Account string

// Accounts holds the account of each agent. An agent without an entry uses its default log-in.
type Accounts map[Agent]Account

// With returns a copy of the accounts with the given account for the agent.
func (a Accounts) With(agent Agent, account Account) Accounts {
	all := Accounts{}
	maps.Copy(all, a)
	if all[agent] = account; account == "" {
		delete(all, agent)
	}
	return all
}

// Of returns the agent's name, followed by "@" and the account if the account is not empty: "claude" or "claude@work".
// The command `ductor secret` accepts this form.
func (a Account) Of(agent Agent) string {
	if a == "" {
		return string(agent)
	}
	return string(agent) + "@" + string(a)
}

// NameOf returns the name of an agent with its account for users: "Claude", or "Claude (work)".
func (a Account) NameOf(p lang.Printer, agent Agent) string {
	if a == "" {
		return agent.Name()
	}
	return p.Text("limit.with", agent.Name(), string(a))
}

// Label returns the name of an account for users.
func (a Account) Label(p lang.Printer) string {
	if a == "" {
		return p.Text("limit.default-account")
	}
	return string(a)
}

// AccountVars lists the environment variables that determine which log-in an agent uses.
type AccountVars struct {
	// Home is the variable with the path of the directory in which the agent stores its state and its log-in.
	Home string
	// Leads lists the variables besides Home that determine the log-in, as names or NAME_* patterns. Such a variable
	// contains, for example, an API key or the path of a file with the agent's state.
	Leads []string
}

// AccountHome describes where an agent stores the state of an account. The zero value means the default account.
type AccountHome struct {
	Account Account
	Dir     string // absolute
	AccountVars
}

// Environ returns env for an agent that uses the account. It removes the variables that would make the agent use
// another account.
func (h AccountHome) Environ(env []string) []string {
	if h.Account == "" {
		return env
	}
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == h.Home || named(h.Leads, name)
	})
	return append(env, h.Home+"="+h.Dir)
}

// Words returns a command line that runs the given command with the account. For the default account it returns the
// command unchanged.
func (h AccountHome) Words(words ...string) []string {
	if h.Account == "" {
		return words
	}
	return append([]string{"env", h.Home + "=" + h.Dir}, words...)
}

// Logins returns the ways in which a user can log in to this account. If a way is a command line, Logins adds the
// variable with the account's directory to it.
func (h AccountHome) Logins(p Provider) (all []Login) {
	knows, ok := p.(LoginProvider)
	if !ok {
		return nil
	}
	for _, l := range knows.Logins() {
		if l.Account = h.Account; l.Kind == LoginByCommand && l.Command != "" && h.Account != "" {
			l.Command = ShellLine(h.Words()) + " " + l.Command
		}
		all = append(all, l)
	}
	return all
}

// Auth checks whether the agent is logged in with this account. If the agent is not logged in, Auth returns advice for
// this account, because p only has advice for the default account.
func (h AccountHome) Auth(ctx context.Context, p Provider) Auth {
	auth := p.Auth(ctx)
	if h.Account == "" || auth.State != Installed || auth.Problem != nil {
		return auth
	}
	for _, l := range h.Logins(p) {
		if l.Kind == LoginByCommand && l.Command != "" {
			auth.Fix = "Run `" + l.Command + "` on this machine"
			return auth
		}
	}
	return auth
}

// Named adds the account to a NotLoggedIn failure of p. It also replaces the failure's advice, because p gives advice
// only for the default account. It returns other failures unchanged.
func (h AccountHome) Named(f *Failure, p Provider) *Failure {
	if f == nil || f.Kind != NotLoggedIn || h.Account == "" {
		return f
	}
	named := *f
	if named.Account = h.Account; f.advised() {
		named.Reason = ""
	}
	ways := h.Logins(p)
	inTerminal := func(l Login) bool { return !l.InChat() && l.Command+l.Variable != "" }
	if i := slices.IndexFunc(ways, inTerminal); i >= 0 {
		named.Reason = ways[i].Advice(f.Agent)
	}
	return &named
}

// AccountSettings is the configuration of an account.
type AccountSettings struct {
	Home string `toml:"home" check:"path"` // the directory with the agent's state
}
