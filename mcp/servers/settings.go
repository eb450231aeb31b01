package servers

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ductor/cli"
	"ductor/mcp/relay"
)

// Settings configures an MCP server. It is either a program that speaks MCP on its standard input and output, or a URL.
type Settings struct {
	Command string   `toml:"command" check:"program"`
	Args    []string `toml:"args"`
	URL     string   `toml:"url" check:"url" example:"https://mcp.example.org/mcp"`
	Headers []string `toml:"headers"` // "Name: value", sent with each request; ${NAME} stands for a variable in Env
	Env     []string `toml:"env"`     // "NAME=value", or only "NAME" to get the value from Lookup
	// Timeout is how long a server may take to answer when ductor checks it.
	Timeout time.Duration `toml:"timeout" default:"10s" check:"1s..2m"`
}

// CheckName returns an error if a server may not have this name. Only letters and digits are allowed. Agents combine
// the name with the names of the server's tools in different ways, and no combination may equal the name of a tool of
// ductor.
func CheckName(name string) error {
	switch {
	case !serverName().MatchString(name):
		return fmt.Errorf("the name of a server is small letters and digits, such as github")
	case slices.Contains([]string{cli.OwnServer, "mcp", "ide", "none"}, name):
		return fmt.Errorf("%q means something else to ductor or to an agent; choose another name", name)
	}
	return nil
}

var (
	serverName   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9]{0,30}$`) })
	variableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`) })
	headerName   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9-]+$`) })
	reference    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{([^}]*)\}`) })
	secretWord   = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)KEY|TOKEN|SECRET|PASSW|CREDENTIAL`)
	})
)

// Check implements config.checker.
func (s Settings) Check(problem func(key, format string, args ...any)) {
	switch {
	case (s.Command == "") == (s.URL == ""):
		problem("", "a server needs either a command or a url")
	case s.URL == "" && len(s.Headers) > 0:
		problem("headers", "only a server with a url has headers; give a command its keys in env")
	case s.URL != "" && len(s.Args) > 0:
		problem("args", "only a command has args")
	}
	s.checkURL(problem)
	for _, arg := range append([]string{s.Command, s.URL}, s.Args...) {
		if strings.Contains(arg, "${") { // some agents would insert the value of their own variable
			problem("", "%q: ductor inserts variables only into headers", arg)
		}
	}
	for _, entry := range s.Env {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case !variableName().MatchString(name) || strings.HasPrefix(name, "DUCTOR_"):
			problem("env", `%q is not a variable's name; write "NAME", or "NAME=value" if it is no secret`, name)
		case value != "" && secretWord().MatchString(name):
			problem("env", "%s looks like a secret, and this file is no place for it; write the name alone and run: "+
				"ductor secret set SERVER.%[1]s", name)
		}
	}
	s.checkHeaders(problem)
}

// checkHeaders reports headers that are invalid or contain a secret.
func (s Settings) checkHeaders(problem func(key, format string, args ...any)) {
	named := func(variable string) bool {
		return slices.ContainsFunc(s.Env, func(entry string) bool {
			name, _, _ := strings.Cut(entry, "=")
			return name == variable
		})
	}
	for _, header := range s.Headers {
		name, value, ok := strings.Cut(header, ":")
		if !ok || !headerName().MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
			problem("headers", `%q should be "Name: value"`, name)
			continue
		}
		references := reference().FindAllStringSubmatch(value, -1)
		for _, m := range references {
			if !named(m[1]) {
				problem("headers", "${%s} is not in env", m[1])
			}
		}
		if secretHeader(name) && len(references) == 0 {
			problem("headers", "%s looks like a secret, and this file is no place for it; write ${NAME} in it, name "+
				"the variable in env and run: ductor secret set SERVER.NAME", name)
		}
	}
}

func secretHeader(name string) bool {
	return strings.EqualFold(name, "Authorization") || strings.EqualFold(name, "Cookie") ||
		secretWord().MatchString(name)
}

// checkURL reports secrets in the URL, because some agents show it on their command line.
func (s Settings) checkURL(problem func(key, format string, args ...any)) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return // the "url" check of the field URL reports invalid URLs
	}
	secret := u.User != nil
	for name := range u.Query() {
		secret = secret || secretWord().MatchString(name)
	}
	if secret {
		problem("url", "everyone on this machine could read the secret in it; send it in headers")
	}
}

// Loopback reports whether the server is on this machine.
func (s Settings) Loopback() bool { return cli.OnThisMachine(s.URL) }

// Lookup returns the value of a variable for a server: a secret that the user stored for the server, or a variable of
// ductor's own environment.
type Lookup func(server, variable string) (value string, ok bool)

// minSecret is the minimum length in bytes of a value that Secrets returns.
const minSecret = 8

// Secrets returns the secrets in the variables of a server, so that callers can remove them from texts.
func (s Settings) Secrets(name string, lookup Lookup) (all []string) {
	for _, entry := range s.Env {
		value, ok := lookup(name, entry)
		// A shorter value could be a common word. A value that begins with "/" is a path and no secret.
		if ok && len(value) >= minSecret && !strings.HasPrefix(value, "/") {
			all = append(all, value)
		}
	}
	return all
}

// server returns the configuration of a server for agents, but without the program that starts it. If a variable has no
// value, server returns the name of this variable.
func (s Settings) server(name string, lookup Lookup) (server cli.ToolServer, missing string) {
	values := map[string]string{}
	for _, entry := range s.Env {
		variable, value, constant := strings.Cut(entry, "=")
		if !constant {
			var ok bool
			if value, ok = lookup(name, variable); !ok {
				return cli.ToolServer{}, variable
			}
		}
		values[variable] = value
	}
	server = cli.ToolServer{Name: name, URL: s.URL, Env: map[string]string{}}
	if s.URL == "" {
		for variable, value := range values {
			server.Env[relay.ServerVar(name, variable)] = value
		}
		return server, ""
	}
	server.Headers = map[string]string{}
	for i, header := range s.Headers {
		key, value, _ := strings.Cut(header, ":")
		variable := relay.ServerVar(name, fmt.Sprint(i))
		server.Headers[key] = variable
		server.Env[variable] = reference().ReplaceAllStringFunc(strings.TrimSpace(value), func(ref string) string {
			return values[strings.Trim(ref, "${}")]
		})
	}
	return server, ""
}
