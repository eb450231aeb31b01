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

// ServerVerb is the first argument of the program through which agents start the owner's MCP servers.
const ServerVerb = "mcp-server"

// ServerVar returns the environment variable through which an agent passes a variable to an MCP server of the owner.
// The prefix hides the variable from the agent itself: for example, a server's OPENAI_API_KEY would change the account
// of Codex. A server's name has no underscore, so different variables never get the same name.
func ServerVar(server, variable string) string {
	return "DUCTOR_MCP_" + strings.ToUpper(server) + "_" + variable
}

// StartServer replaces this process by an MCP server of the owner. args are the server's name, its program and the
// program's arguments. From the agent's environment, the server gets only its own variables and a short list of
// variables that every program needs. It starts in the root directory: in a project, npx and similar programs prefer
// the project's code.
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
