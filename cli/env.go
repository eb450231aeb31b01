package cli

import (
	"maps"
	"slices"
	"strings"
)

// BaseEnv lists the variables that every agent may see. Programs need them to find their files, their network and their
// language. None of them should contain a secret. Providers add the variables with the keys of model vendors.
func BaseEnv() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "COLORTERM", "NO_COLOR",
		"LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "TMP", "TEMP", "XDG_*",
		"SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "GPG_TTY", "GNUPGHOME",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
		// The pattern GIT_* would match too much: GIT_DIR and similar variables would make Git use one repository in
		// every directory, and GIT_CONFIG_VALUE_n may contain tokens.
		"GIT_AUTHOR_*", "GIT_COMMITTER_*", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL", "GIT_EDITOR",
		"EDITOR", "VISUAL", "PAGER",
		"GOPATH", "GOROOT", "GOBIN", "GOCACHE", "GOMODCACHE", "GOTOOLCHAIN", "CARGO_HOME", "RUSTUP_HOME",
		"NVM_DIR", "NVM_BIN", "PNPM_HOME", "VOLTA_HOME", "FNM_DIR", "BUN_INSTALL", "DENO_DIR",
		"PYENV_ROOT", "VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME", "SDKMAN_DIR", "ANDROID_HOME",
	}
}

// neverPassed lists variables that no agent may inherit. ductor's own variables contain the bot's token. Other
// variables mark a process as a child of an agent. If ductor itself runs inside an agent, these variables would make
// its agents believe that they are nested.
func neverPassed() []string {
	return []string{
		"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID",
		"CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_PARENT_*", "CLAUDE_CODE_REMOTE*",
		"CLAUDE_PID",
		"CODEX_SANDBOX*", "CODEX_THREAD_ID", "CODEX_CI", "GEMINI_CLI", "COPILOT_CLI",
		"DUCTOR_*",
	}
}

// ChatIDVar contains the ID of the chat for which an agent and its tools work. Agents see no other variables of ductor,
// except variables that start with ToolVars.
const ChatIDVar = "DUCTOR_CHAT_ID"

// ChildEnv returns the environment of an agent. It contains the variables of parent ("NAME=value") whose names are in
// allow, and all variables in extra. If a name is in both, the value in extra is used. A name in allow that ends in *
// is a prefix. The caller should include BaseEnv in allow.
//
// ChildEnv never passes on variables that mark a process as a child of an agent. It passes on ductor's own variables
// only from extra, and only ChatIDVar and variables that start with ToolVars. The result is sorted and contains each
// name once.
func ChildEnv(parent []string, allow []string, extra map[string]string) []string {
	never := neverPassed()
	chosen := map[string]string{}
	for _, entry := range parent {
		name, value, ok := strings.Cut(entry, "=")
		if ok && name != "" && named(allow, name) && !named(never, name) {
			chosen[name] = value
		}
	}
	for name, value := range extra {
		valid := name != "" && !strings.ContainsAny(name, "=\x00") && !strings.Contains(value, "\x00")
		if valid && (name == ChatIDVar || strings.HasPrefix(name, ToolVars) || !named(never, name)) {
			chosen[name] = value
		}
	}
	env := make([]string, 0, len(chosen))
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		env = append(env, name+"="+chosen[name])
	}
	return env
}

func named(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		prefix, wild := strings.CutSuffix(p, "*")
		return p == name || wild && strings.HasPrefix(name, prefix)
	})
}

// AtHome adapts env to a process with the home directory home. It removes variables that would lead programs to another
// home directory, such as XDG_*, even if the configuration allows agents to inherit them. It also removes the variables
// in leads, a list of names and NAME_* patterns. If home is empty, AtHome returns env unchanged.
func AtHome(env []string, home string, leads ...string) []string {
	if home == "" {
		return env
	}
	leads = append([]string{"HOME", "XDG_*", "GIT_CONFIG_GLOBAL", "ZDOTDIR"}, leads...)
	own := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return named(leads, name)
	})
	own = append(own, "HOME="+home)
	slices.Sort(own)
	return own
}

// Variable returns the value of a variable in an environment, or "" if the variable is missing. If the variable occurs
// several times, the last entry counts.
func Variable(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if key, value, ok := strings.Cut(entry, "="); ok && key == name {
			return value
		}
	}
	return ""
}

// PickEnv returns the lines of an .env file that set one of the variables in names. names may contain NAME_* patterns.
// If a value has several lines, PickEnv returns only the first.
func PickEnv(file []byte, names ...string) []byte {
	var out strings.Builder
	for line := range strings.Lines(string(file)) {
		name, _, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if ok && named(names, strings.TrimSpace(name)) {
			out.WriteString(strings.TrimRight(line, "\r\n") + "\n")
		}
	}
	return []byte(out.String())
}
