package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"ductor/lang"
)

// Account is the configuration's name for one of an agent's log-ins. Empty means the agent's default log-in.
type Account string

// Accounts holds the account of each agent. An agent without an entry uses its default log-in.
type Accounts map[Agent]Account

// With returns the accounts with another one for an agent.
func (a Accounts) With(agent Agent, account Account) Accounts {
	all := Accounts{}
	maps.Copy(all, a)
	if all[agent] = account; account == "" {
		delete(all, agent)
	}
	return all
}

// Of returns the name of an agent's account, as `ductor secret` takes it: "claude", or "claude@work".
func (a Account) Of(agent Agent) string {
	if a == "" {
		return string(agent)
	}
	return string(agent) + "@" + string(a)
}

// NameOf returns the name of an agent with its account, for users: "Claude", or "Claude (work)".
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

// AccountVars are the variables that lead an agent to one of its log-ins.
type AccountVars struct {
	Home string // contains the directory with all of the agent's state, its log-in included
	// Leads are further names or NAME_* patterns: of variables that contain a key, or the place of a part of the state.
	Leads []string
}

// AccountHome is the directory of an account other than the default one. The zero value is the default account.
type AccountHome struct {
	Account Account
	Dir     string // absolute
	AccountVars
}

// Environ returns the part of an environment that an agent of the account may see. It lacks the variables that lead to
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

// Words returns the words of a command line of the agent for this account.
func (h AccountHome) Words(words ...string) []string {
	if h.Account == "" {
		return words
	}
	return append([]string{"env", h.Home + "=" + h.Dir}, words...)
}

// Logins returns the ways to log in the account, from those of a provider that uses it.
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

// Auth checks whether a provider that uses the account can be used.
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

// Named names the account in a failure of a provider that uses it. If the account is not logged in, the failure gets
// the advice for this account, because a provider knows only the advice for the default one.
func (h AccountHome) Named(f *Failure, p Provider) *Failure {
	if f == nil || f.Kind != NotLoggedIn || h.Account == "" {
		return f
	}
	named := *f
	if named.Account = h.Account; f.advised() { // for the default account
		named.Reason = ""
	}
	ways := h.Logins(p)
	inTerminal := func(l Login) bool { return !l.InChat() && l.Command+l.Variable != "" }
	if i := slices.IndexFunc(ways, inTerminal); i >= 0 {
		named.Reason = ways[i].Advice(f.Agent)
	}
	return &named
}

// AccountSettings configures an account.
type AccountSettings struct {
	Home string `toml:"home" check:"path"` // the directory of the agent's state
}
