package claude

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
)

// Claude Code 2.1 behaves as follows (found by experiment). "Owner" is the user who runs ductor. "Home" is the home
// directory of a session with its own home directory.
//
//   - Claude renews its log-in by renaming a new .credentials.json over the old one. This would replace a link in a
//     home. The variable CLAUDE_SECURESTORAGE_CONFIG_DIR sets a separate directory for the log-in, so all homes use the
//     owner's directory. Older versions without the variable use a link.
//   - Claude reads CLAUDE.md and .claude/CLAUDE.md in every directory above the working directory, even if HOME is
//     another directory. The setting claudeMdExcludes excludes the owner's files.
//   - Claude reads skills, commands and agents in every directory above the working directory, up to HOME or to the top
//     of a repository. If a project below the owner's home directory is not a repository, Claude would therefore read
//     the owner's skills.
//   - With the flag -p, Claude starts the servers of .mcp.json in every directory above the working directory without
//     asking.

const (
	loginDirVar = "CLAUDE_SECURESTORAGE_CONFIG_DIR"
	loginFile   = ".credentials.json"
)

// LoginVars returns the environment variables, besides CLAUDE_CONFIG_DIR, that contain a log-in or set the location of
// a part of Claude's state.
func LoginVars() []string {
	return []string{
		loginDirVar, "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_CODE_OAUTH_*",
		"CLAUDE_CODE_USE_*",
	}
}

// atHome adapts env to a session with its own home directory. It removes the variables that refer to settings of the
// user who runs ductor. owner is that user's home directory. If owner is not empty, atHome sets a variable with which
// Claude uses that user's log-in. If home is empty, atHome returns env unchanged.
func atHome(home, owner string, env []string) []string {
	if home == "" {
		return env
	}
	login := ""
	if owner != "" {
		login = configDir(env, owner)
	}
	env = cli.AtHome(env, home, "CLAUDE_CONFIG_DIR", loginDirVar, "CLAUDE_CODE_PLUGIN_*")
	if login != "" {
		env = append(env, loginDirVar+"="+login)
		slices.Sort(env)
	}
	return env
}

// configDir returns the directory with Claude's data.
func configDir(env []string, home string) string {
	return cmp.Or(cli.Variable(env, "CLAUDE_CONFIG_DIR"), filepath.Join(home, ".claude"))
}

// reaches reports whether Claude would find skills, commands or similar files in owner, which is the home directory of
// the user who runs ductor. Claude searches its working directory dir and the parents of dir, up to the top of the Git
// repository.
func reaches(dir, owner string) bool {
	dir, owner = cli.RealPath(dir), cli.RealPath(owner)
	if dir == owner {
		return true
	}
	if !strings.HasPrefix(dir, owner+string(filepath.Separator)) {
		return false
	}
	for ; dir != owner; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return false
		}
	}
	for _, name := range []string{
		".claude/skills", ".claude/commands", ".claude/agents", ".claude/output-styles", ".claude/workflows",
	} {
		if _, err := os.Lstat(filepath.Join(owner, name)); err == nil {
			return true
		}
	}
	return false
}

// HomeSeeds returns the initial files of a session's own home directory: the log-in, and settings that skip the
// questions of Claude's first start. owner is the home directory of the user who runs ductor. env is that user's
// environment, in which CLAUDE_CONFIG_DIR may be set.
func HomeSeeds(owner string, env []string) []cli.HomeSeed {
	dir, state := configDir(env, owner), filepath.Join(owner, ".claude.json")
	if cli.Variable(env, "CLAUDE_CONFIG_DIR") != "" {
		state = filepath.Join(dir, ".claude.json")
	}
	return []cli.HomeSeed{
		{From: filepath.Join(dir, loginFile), To: ".claude/" + loginFile, Link: true},
		{From: state, To: ".claude.json", Pick: ownState},
		{From: filepath.Join(dir, "settings.json"), To: ".claude/settings.json", Pick: func(theirs []byte) ([]byte, error) {
			return ownSettings(owner, dir, theirs)
		}},
	}
}

// ownState returns a .claude.json that skips the questions of Claude's first start. It copies the account from
// userState, the content of the .claude.json of the user who runs ductor.
func ownState(userState []byte) ([]byte, error) {
	state := picked(userState, "oauthAccount", "userID", "customApiKeyResponses")
	state["hasCompletedOnboarding"] = json.RawMessage("true")
	return json.Marshal(state)
}

// ownSettings returns the settings.json for a session's own home directory. userSettings is the settings.json of the
// user who runs ductor. ownSettings copies only the model and the settings for the log-in, but for example no hooks,
// plugins or permissions. The result also makes Claude ignore the memory files in owner and dir.
func ownSettings(owner, dir string, userSettings []byte) ([]byte, error) {
	settings := picked(userSettings,
		"apiKeyHelper", "forceLoginMethod", "awsAuthRefresh", "awsCredentialExport", "model")
	if env := loginEnv(userSettings); len(env) > 0 {
		raw, err := json.Marshal(env)
		if err != nil {
			return nil, fmt.Errorf("write how Claude logs in: %w", err)
		}
		settings["env"] = raw
	}
	var excluded []string
	for _, base := range []string{owner, cli.RealPath(owner)} {
		excluded = append(excluded, filepath.Join(base, "CLAUDE.md"), filepath.Join(base, "CLAUDE.local.md"), filepath.Join(base, ".claude")+"/**")
	}
	excluded = append(excluded, dir+"/**")
	slices.Sort(excluded)
	raw, err := json.Marshal(slices.Compact(excluded))
	if err != nil {
		return nil, fmt.Errorf("write what is not read: %w", err)
	}
	settings["claudeMdExcludes"] = raw
	if names := serversAbove(owner); len(names) > 0 {
		if raw, err = json.Marshal(names); err != nil {
			return nil, fmt.Errorf("write which servers are not started: %w", err)
		}
		settings["disabledMcpjsonServers"] = raw
	}
	return json.MarshalIndent(settings, "", "  ")
}

// loginEnv returns the environment variables in settings that Claude needs to reach its model.
func loginEnv(settings []byte) map[string]json.RawMessage {
	var file struct {
		Env map[string]json.RawMessage `json:"env"`
	}
	if json.Unmarshal(cli.PlainJSON(settings), &file) != nil {
		return nil
	}
	maps.DeleteFunc(file.Env, func(name string, _ json.RawMessage) bool {
		return !slices.ContainsFunc([]string{
			"ANTHROPIC_", "CLAUDE_CODE_USE_", "CLAUDE_CODE_SKIP_", "CLAUDE_CODE_API_KEY_HELPER_", "AWS_", "GOOGLE_", "CLOUD_ML_", "VERTEX_",
		}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	})
	return file.Env
}

// serversAbove returns the names of the MCP servers in the file .mcp.json of a home directory. Claude starts these
// servers for every project in that directory. owner is the path of the directory.
func serversAbove(owner string) []string {
	raw, err := os.ReadFile(filepath.Join(owner, ".mcp.json"))
	var file struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if err != nil || json.Unmarshal(raw, &file) != nil {
		return nil // the file is missing, or Claude cannot read it either
	}
	return slices.Sorted(maps.Keys(file.Servers))
}

// picked returns the named members of a JSON object. It returns none if raw is not an object.
func picked(raw []byte, names ...string) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	some := map[string]json.RawMessage{}
	if json.Unmarshal(cli.PlainJSON(raw), &all) != nil {
		return some
	}
	for _, name := range names {
		if value, ok := all[name]; ok {
			some[name] = value
		}
	}
	return some
}
