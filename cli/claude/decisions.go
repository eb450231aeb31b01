package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"ductor/cli"
)

// settings is the value of Claude's flag --settings. It combines settings from ductor's configuration with those that
// ductor always needs; see decideNothing.
type settings map[string]any

// decideNothing changes s so that Claude leaves every decision to the user. By default, one of Claude's models approves
// commands in plan mode, and commands in Claude's own sandbox run without asking.
func (s settings) decideNothing(mode cli.PermissionMode) error {
	s["useAutoModeDuringPlan"] = false
	sandbox, err := s.part("sandbox")
	if err != nil {
		return err
	}
	sandbox["autoAllowBashIfSandboxed"] = false
	if mode == cli.Bypass { // Claude asks nothing in this mode
		return nil
	}
	permissions, err := s.part("permissions")
	if err != nil {
		return err
	}
	theirs, ok := permissions["ask"].([]any)
	if !ok && permissions["ask"] != nil {
		return errors.New("permissions.ask is no list")
	}
	// Without this rule, these tools write to the disk without asking, in all modes. They create worktrees, and jobs
	// that outlive the session.
	permissions["ask"] = append(theirs, "Agent(isolation:worktree)", "CronCreate", "CronDelete", "EnterWorktree", "ExitWorktree")
	return nil
}

// fixShellDir makes Claude run every command in the session's directory. By default, Claude starts a command in the
// directory in which the previous command ended, for example after "cd sub". Users and rules do not see that directory.
//
// fixShellDir sets an environment variable in s, because s overrides the settings of the user and of the project.
func (s settings) fixShellDir() error {
	env, err := s.part("env")
	if err == nil {
		env["CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR"] = "1"
	}
	return err
}

// part returns the JSON object under the given key of s. If the object is missing, part adds an empty one.
func (s settings) part(key string) (map[string]any, error) {
	if s[key] == nil {
		s[key] = map[string]any{}
	}
	part, ok := s[key].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is no object", key)
	}
	return part, nil
}

// settingsOf returns the settings for a request, and the request's extra arguments without --settings. Claude reads
// only one --settings flag. Therefore settingsOf combines ductor's settings with those in the extra arguments.
// configured is true if the extra arguments contain settings.
func settingsOf(req cli.Request) (text string, extra []string, configured bool, err error) {
	all := settings{}
	args := req.ExtraArgs
	for i := 0; i < len(args) && err == nil; i++ {
		value, joined := strings.CutPrefix(args[i], "--settings=")
		switch {
		case joined:
		case args[i] != "--settings":
			extra = append(extra, args[i])
			continue
		case i+1 < len(args):
			i++
			value = args[i]
		}
		configured = true
		all, err = readSettings(value)
	}
	if err == nil {
		err = errors.Join(all.decideNothing(req.Permission), all.fixShellDir())
	}
	if err != nil {
		return "", nil, configured, fmt.Errorf("the --settings of agents.claude.args: %w", err)
	}
	return strings.TrimSpace(string(jsonLine(all))), extra, configured, nil
}

// readSettings parses a value of --settings: JSON, or the name of a file with JSON.
func readSettings(value string) (settings, error) {
	raw := []byte(value)
	if !strings.HasPrefix(strings.TrimSpace(value), "{") {
		var err error
		if raw, err = os.ReadFile(value); err != nil {
			return nil, err
		}
	}
	numbers := json.NewDecoder(bytes.NewReader(cli.PlainJSON(raw)))
	numbers.UseNumber()
	var all settings
	if err := numbers.Decode(&all); err != nil {
		return nil, err
	}
	if all == nil {
		return nil, errors.New("they are null")
	}
	return all, nil
}
