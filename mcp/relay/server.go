package relay

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// ServerVerb is the first argument of the command that an agent runs to start an MCP server of the user; see
// StartServer.
const ServerVerb = "mcp-server"

// ServerVar returns the name under which an agent's environment contains a variable for an MCP server of the user. The
// agent passes the variable to the server, where StartServer restores the original name.
//
// The prefix keeps the agent from using the variable: with a variable OPENAI_API_KEY, for example, Codex would use
// another account. Names of servers contain no underscore, so the result is unique.
func ServerVar(server, variable string) string {
	return "DUCTOR_MCP_" + strings.ToUpper(server) + "_" + variable
}

// StartServer replaces this process by an MCP server of the user. args contains the server's name, its program and the
// program's arguments. The server gets its own variables (see ServerVar) and the variables that most programs need. It
// runs in the root directory: in a project's directory, programs such as npx would prefer code of the project.
func StartServer(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: " + ServerVerb + " NAME PROGRAM [ARGUMENTS]; agents start it")
	}
	if err := os.Chdir("/"); err != nil {
		return fmt.Errorf("start an MCP server: %w", err)
	}
	path, err := exec.LookPath(args[1])
	if err == nil {
		err = syscall.Exec(path, args[1:], serverEnv(args[0], os.Environ()))
	}
	return fmt.Errorf("start the MCP server %s: %w", args[0], err)
}

func serverEnv(server string, environ []string) (env []string) {
	passed := []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "HTTP_PROXY",
		"HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"}
	own := map[string]bool{}
	for _, entry := range environ {
		if rest, ok := strings.CutPrefix(entry, ServerVar(server, "")); ok {
			name, _, _ := strings.Cut(rest, "=")
			own[name] = true
			env = append(env, rest)
		}
	}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		known := slices.Contains(passed, strings.ToUpper(name)) || strings.HasPrefix(name, "LC_") ||
			strings.HasPrefix(name, "XDG_")
		if known && !own[name] {
			env = append(env, entry)
		}
	}
	return env
}
