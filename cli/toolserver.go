package cli

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// ToolServer is a program that serves tools to an agent, by the Model Context Protocol on its standard input and output. It starts
// where the agent runs.
type ToolServer struct {
	Name string // letters and digits
	Path string
	Args []string
	// Env is what the program sees besides what the agent passes on, and what the agent sees too, so that what it starts can use
	// the server. It may hold secrets: no dialect puts a value on a command line.
	Env map[string]string
	// Trusted has its tools go through without asking: they ask the user themselves where that is needed.
	Trusted bool
	Timeout time.Duration // a call may take so long, where the agent can be told
}

// OwnServer is the name of the server of ductor's own tools.
const OwnServer = "ductor"

// OwnTool returns the name of one of ductor's own tools, which agents call mcp__ductor__send_file and the like; empty for any other tool.
func OwnTool(name string) string {
	for _, prefix := range append(serverPrefixes(OwnServer), OwnServer+"_") {
		if tool, own := strings.CutPrefix(name, prefix); own {
			return tool
		}
	}
	return ""
}

// OwnTitle says in one line what a call of one of ductor's own tools is about: the first words of its text, the path, the question.
func OwnTitle(input json.RawMessage) string {
	in := TextsOf(input)
	title := cmp.Or(in["text"], in["path"], in["question"], in["task"], in["prompt"], in["words"])
	return OneLine(strings.NewReplacer("**", "", "`", "").Replace(title), 200)
}

// serverPrefixes begin the names that agents give to the tools of a server.
func serverPrefixes(server string) []string {
	return []string{"mcp__" + server + "__", "mcp_" + server + "_", server + ".", server + "-", server + "__"}
}

// ToolVars begins the names of the variables by which an agent reaches the tools of ductor.
const ToolVars = "DUCTOR_MCP_"

// Trusts says whether a tool is one of a trusted server. name is the agent's own, such as mcp__SERVER__TOOL.
func Trusts(servers []ToolServer, name string) bool {
	return slices.ContainsFunc(servers, func(s ToolServer) bool {
		return s.Trusted && slices.ContainsFunc([]string{"mcp__" + s.Name + "__", "mcp_" + s.Name + "_", s.Name + "."}, func(prefix string) bool {
			return strings.HasPrefix(name, prefix)
		})
	})
}

// Config is the server as most agents are configured for one, of a kind and with the values that value gives to its variables.
func (s ToolServer) Config(kind string, value func(name string) string) map[string]any {
	env := map[string]string{}
	for name := range s.Env {
		env[name] = value(name)
	}
	return map[string]any{"type": kind, "command": s.Path, "args": append([]string{}, s.Args...), "env": env}
}

// ByName gives a variable to a server by its name, for an agent that puts in the value, which it has itself.
func ByName(name string) string { return "${" + name + "}" }

// VarNames lists the names of the server's variables, sorted.
func (s ToolServer) VarNames() []string { return slices.Sorted(maps.Keys(s.Env)) }

// Environ lists the server's variables as an environment does.
func (s ToolServer) Environ() []string {
	var env []string
	for _, name := range s.VarNames() {
		env = append(env, name+"="+s.Env[name])
	}
	return env
}
