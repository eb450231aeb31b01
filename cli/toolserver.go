package cli

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"ductor/lang"
)

// OnThisMachine reports whether a URL points to this machine.
func OnThisMachine(address string) bool {
	u, err := url.Parse(address)
	return err == nil && slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname())
}

// ToolServer is an MCP server that provides tools to an agent. It is either a URL, or a program in the agent's
// environment that speaks the protocol on its standard input and output.
type ToolServer struct {
	Name string // letters and digits
	Path string // path of the program; empty if URL is set
	Args []string
	URL  string
	// Headers maps the name of each HTTP header to the variable in Env that contains the header's value.
	Headers map[string]string
	// Env contains the variables that the program needs in addition to those that it inherits from the agent. The
	// values may be secret, so no provider puts them on a command line. If a provider configures servers on the agent's
	// command line, ductor puts the values into the agent's environment.
	Env map[string]string
	// Trusted marks ductor's own server. Agents use its tools without approval, because the tools themselves ask the
	// user if needed. Every agent gets the server's variables, so that programs of the agent can also use the server.
	Trusted bool
	Timeout time.Duration // limit for each tool call, for agents that support it
}

// AbsentServer is a configured server that an agent cannot use in a turn.
type AbsentServer struct {
	Name string
	Why  string // the reason, for users; empty if the turn's configuration excludes the server
}

// WithoutForeign returns only ductor's own servers, which are Trusted.
func WithoutForeign(servers []ToolServer) []ToolServer {
	return slices.DeleteFunc(slices.Clone(servers), func(s ToolServer) bool { return !s.Trusted })
}

// OwnServer is the name of ductor's own tool server.
const OwnServer = "ductor"

// ownTools maps the names of ductor's own tools to the names that users see. A prefix such as mcp_ductor_ does not
// prove that a tool is ductor's. For example, some agents use the name mcp_ductor_x_run for the tool "run" of a server
// "ductor_x".
func ownTools() map[string]lang.Key {
	return map[string]lang.Key{
		"send_message": "tool.send-message", "send_file": "tool.send-file", "schedule": "tool.schedule",
		"ask_user": "tool.ask-user", "ask_the_user": "tool.ask-user", // Gemini's name for ask_user
		"list_sessions": "tool.list-sessions", "describe_session": "tool.describe-session",
		"search_project_history": "tool.search-project-history", "count_project_tokens": "tool.count-project-tokens",
		"consult_with": "tool.consult-with", "group_think": "tool.group-think", "work_with": "tool.work-with",
	}
}

// OwnTool returns the name of one of ductor's own tools without the agent's prefix: "send_file" for
// mcp__ductor__send_file. It returns "" for any other tool.
func OwnTool(name string) string {
	for _, prefix := range []string{"mcp__ductor__", "mcp_ductor_", "ductor.", "ductor-", "ductor__", "ductor_"} {
		if tool, own := strings.CutPrefix(name, prefix); own && ownTools()[tool] != "" {
			return tool
		}
	}
	return ""
}

// OwnToolName returns the name that users see for one of ductor's own tools. It returns "" for any other tool.
func OwnToolName(p lang.Printer, name string) string {
	if key := ownTools()[OwnTool(name)]; key != "" {
		return p.Text(key)
	}
	return ""
}

// LikeOwnServer reports whether the names of a server's tools can equal names of ductor's own tools. Some agents join
// the names with "_": the tool "with" of a server "ductor_work" becomes mcp_ductor_work_with. Agents also replace
// special characters in the name of a server by "_".
func LikeOwnServer(name string) bool {
	rest, like := strings.CutPrefix(name, OwnServer)
	return like && rest != "" && !unicode.IsLetter(rune(rest[0])) && !unicode.IsDigit(rune(rest[0]))
}

// OwnTitle describes a call of one of ductor's own tools in one line. It uses the text, the path or the question in the
// input.
func OwnTitle(input json.RawMessage) string {
	in := TextsOf(input)
	title := cmp.Or(in["text"], in["path"], in["question"], in["task"], in["prompt"], in["words"])
	return OneLine(strings.NewReplacer("**", "", "`", "").Replace(title), 200)
}

// serversOf returns the names of all servers to which a tool with this name can belong. Each agent joins the names of
// the server and of the tool in its own way, and both can contain the separator: mcp_github_new_issue is the tool
// "new_issue" of "github", or the tool "issue" of "github_new".
func serversOf(tool string) []string {
	if OwnTool(tool) != "" {
		return []string{OwnServer}
	}
	if rest, ok := strings.CutPrefix(tool, "mcp__"); ok {
		return headsOf(rest, "__")
	}
	if rest, ok := strings.CutPrefix(tool, "mcp_"); ok {
		return headsOf(rest, "_")
	}
	// Only Codex uses dots. The names of its servers cannot contain one.
	if server, _, ok := strings.Cut(tool, "."); ok {
		return []string{server}
	}
	// Codex uses the name of a server as the name of the tool if the server itself asks the user.
	return slices.Concat(headsOf(tool, "-"), headsOf(tool, "__"), []string{tool})
}

// headsOf returns the part of a name before each occurrence of a separator.
func headsOf(name, separator string) (heads []string) {
	for i := 1; i+len(separator) < len(name); i++ {
		if strings.HasPrefix(name[i:], separator) {
			heads = append(heads, name[:i])
		}
	}
	return heads
}

// ToolVars is the prefix of the environment variables that programs need to reach ductor's tools.
const ToolVars = "DUCTOR_MCP_"

// Trusts reports whether a tool belongs to a trusted server. name is the agent's name for the tool, such as
// mcp__SERVER__TOOL.
func Trusts(servers []ToolServer, name string) bool {
	return slices.ContainsFunc(servers, func(s ToolServer) bool {
		return s.Trusted && slices.ContainsFunc([]string{"mcp__" + s.Name + "__", "mcp_" + s.Name + "_",
			s.Name + "."}, func(prefix string) bool {
			tool, of := strings.CutPrefix(name, prefix)
			return of && ownTools()[tool] != ""
		})
	})
}

// Config returns the server's entry in the configuration format that most agents use. kind is the "type" that the agent
// expects for a server that is a program. Config calls lookup for the value of each variable.
func (s ToolServer) Config(kind string, lookup func(name string) string) map[string]any {
	if s.URL != "" {
		return map[string]any{"type": "http", "url": s.URL, "headers": s.HeadersBy(lookup)}
	}
	env := map[string]string{}
	for name := range s.Env {
		env[name] = lookup(name)
	}
	return map[string]any{"type": kind, "command": s.Path, "args": append([]string{}, s.Args...), "env": env}
}

// HeadersBy returns the HTTP headers for requests to the server. It calls lookup for the value of each variable.
func (s ToolServer) HeadersBy(lookup func(name string) string) map[string]string {
	headers := map[string]string{}
	for name, variable := range s.Headers {
		headers[name] = lookup(variable)
	}
	return headers
}

// Value returns the value of one of the server's variables.
func (s ToolServer) Value(name string) string { return s.Env[name] }

// ByName returns a reference to an environment variable. The agent replaces the reference by the variable's value.
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
