package cli

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// OnThisMachine reports whether a URL points to this machine.
func OnThisMachine(address string) bool {
	u, err := url.Parse(address)
	return err == nil && slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname())
}

// ToolServer provides tools to an agent through the Model Context Protocol. It is a URL, or a program in the agent's
// environment that speaks the protocol on its standard input and output.
type ToolServer struct {
	Name string // letters and digits
	Path string // path of the program; empty with a URL
	Args []string
	URL  string
	// Headers maps the name of each HTTP header to the variable of Env that contains the header's value.
	Headers map[string]string
	// Env contains the program's variables, in addition to the ones that the agent passes on. The values may be secret,
	// so no dialect puts them on a command line. For agents that are configured by command line, ductor adds them to
	// the agent's own environment.
	Env map[string]string
	// Trusted marks ductor's own server. Agents use its tools without asking, because the tools themselves ask the user
	// if needed. Every agent gets the server's variables, so that the agent's programs can also use the server.
	Trusted bool
	Timeout time.Duration // limit for each call, for agents that support it
}

// AbsentServer is a configured server that an agent cannot use.
type AbsentServer struct {
	Name string
	Why  string // reason for users; empty if the turn was not meant to use the server
}

// WithoutForeign returns only ductor's own servers.
func WithoutForeign(servers []ToolServer) []ToolServer {
	return slices.DeleteFunc(slices.Clone(servers), func(s ToolServer) bool { return !s.Trusted })
}

// OwnServer is the name of ductor's own tool server.
const OwnServer = "ductor"

// OwnTool returns the name of one of ductor's own tools from an agent's name, such as mcp__ductor__send_file. It
// returns "" for any other tool.
func OwnTool(name string) string {
	for _, prefix := range append(serverPrefixes(OwnServer), OwnServer+"_") {
		if tool, own := strings.CutPrefix(name, prefix); own {
			return tool
		}
	}
	return ""
}

// OwnTitle describes a call of one of ductor's own tools in one line: the first words of the text, the path, or the
// question.
func OwnTitle(input json.RawMessage) string {
	in := TextsOf(input)
	title := cmp.Or(in["text"], in["path"], in["question"], in["task"], in["prompt"], in["words"])
	return OneLine(strings.NewReplacer("**", "", "`", "").Replace(title), 200)
}

// serverPrefixes lists the prefixes that agents put before the names of a server's tools.
func serverPrefixes(server string) []string {
	return []string{"mcp__" + server + "__", "mcp_" + server + "_", server + ".", server + "-", server + "__"}
}

// ToolVars is the prefix of the variables that an agent needs to reach ductor's tools.
const ToolVars = "DUCTOR_MCP_"

// Trusts reports whether a tool belongs to a trusted server. name is the agent's name for the tool, such as
// mcp__SERVER__TOOL.
func Trusts(servers []ToolServer, name string) bool {
	return slices.ContainsFunc(servers, func(s ToolServer) bool {
		return s.Trusted && slices.ContainsFunc([]string{"mcp__" + s.Name + "__", "mcp_" + s.Name + "_",
			s.Name + "."}, func(prefix string) bool {
			return strings.HasPrefix(name, prefix)
		})
	})
}

// Config returns the server in the configuration format that most agents use. kind is the format's "type" of a server
// that is a program. value returns a variable's value.
func (s ToolServer) Config(kind string, value func(name string) string) map[string]any {
	if s.URL != "" {
		return map[string]any{"type": "http", "url": s.URL, "headers": s.HeadersBy(value)}
	}
	env := map[string]string{}
	for name := range s.Env {
		env[name] = value(name)
	}
	return map[string]any{"type": kind, "command": s.Path, "args": append([]string{}, s.Args...), "env": env}
}

// HeadersBy returns the headers of the server's requests. value returns a variable's value.
func (s ToolServer) HeadersBy(value func(name string) string) map[string]string {
	headers := map[string]string{}
	for name, variable := range s.Headers {
		headers[name] = value(variable)
	}
	return headers
}

// Value returns the value of one of the server's variables.
func (s ToolServer) Value(name string) string { return s.Env[name] }

// ByName returns a reference to a variable. The agent replaces it with the value from its own environment.
func ByName(name string) string { return "${" + name + "}" }

// VarNames lists the names of the server's variables, sorted.
func (s ToolServer) VarNames() []string { return slices.Sorted(maps.Keys(s.Env)) }

// Environ returns the server's variables as NAME=value lines.
func (s ToolServer) Environ() []string {
	var env []string
	for _, name := range s.VarNames() {
		env = append(env, name+"="+s.Env[name])
	}
	return env
}
