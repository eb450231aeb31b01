package gemini

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ductor/cli"
	"ductor/cli/acp"
)

// Programs returns how Gemini deviates from the Agent Client Protocol, by the name that Gemini reports.
func Programs() map[string]acp.Quirks {
	return map[string]acp.Quirks{"gemini-cli": { // version 0.61
		LateHistory: true, MissingIsEmpty: true, HiddenFailure: hiddenFailure, Forgets: true,
		AuthMethod: authMethod, CommandMarks: commandMarks, IsModeNotice: isModeNotice, KindOf: kindOf,
		Tools: acp.ToolQuirks{Name: toolName, InputOf: inputOf, Failure: shellFailure, PlanFile: planFile},
		Usage: acp.UsageQuirks{InMeta: usageInMeta},
	}}
}

// acp returns the provider for Gemini's live mode.
func (p *Provider) acp() *acp.Provider {
	return acp.New(acp.Options{
		ProviderOptions: p.opts.Allowing(EnvKeys()...),
		Agent:           Agent, Args: []string{"--acp"}, Argv: p.liveArgs, OwnFiles: p.ownFiles, ExtraEnv: p.ownEnv, HomeVars: homeVars(),
		// Gemini's own tools access files and run commands, and ask for permission.
		NoWorkspace: true,
		Project: acp.Project{
			Files: p.ProjectFiles(), Env: map[string]string{trustVar: "false"},
		},
		Programs: Programs(), Resuming: Guard(p.opts.Launcher), StartDir: p.opts.StartDir,
		Login: loginFix, Auth: p.Auth,
	})
}

// authMethod returns the log-in method for an API key if the environment contains one, or else "". ductor uses this
// method if the user has not chosen one. Gemini then stores the method in the user's settings.
func authMethod(env []string) string {
	if cli.Variable(env, "GEMINI_API_KEY") != "" {
		return "gemini-api-key"
	}
	return ""
}

// liveArgs returns the command-line arguments that depend on the request.
func (p *Provider) liveArgs(req cli.Request) []string {
	args := p.policyFlags(req)
	if dirs := included(req.AddDirs); len(dirs) > 0 {
		args = append(args, "--include-directories="+strings.Join(dirs, ","))
	}
	if len(req.AllowedTools) > 0 {
		args = append(args, "--allowed-tools="+strings.Join(req.AllowedTools, ","))
	}
	return args
}

// included returns the additional directories that contain files. Conversations share a process only if they have the
// same additional directories. Omitting empty directories lets more conversations share a process.
func included(dirs []string) []string {
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		entries, err := os.ReadDir(dir)
		return err != nil || len(entries) == 0
	})
}

// commandMarks are the characters with which Gemini's own commands start.
const commandMarks = "/$"

// toolName returns the name of a tool. Gemini's ID of a tool call starts with this name.
func toolName(id, _, _ string) string {
	name, _, found := strings.Cut(id, "__")
	if !found {
		name, _, found = strings.Cut(id, "-")
	}
	if !found {
		return ""
	}
	return name
}

// inputOf derives the input of a command from the title and the text that Gemini shows, because Gemini sends no input.
// It returns nil for other tools. The title is the whole command.
//
// The text contains the directory in brackets, the model's explanation, and a note if the command continues in the
// background. If the text begins with "[current working directory", the command runs in the session's directory.
// Otherwise, inputOf returns the whole text as the directory.
func inputOf(w acp.Wish) json.RawMessage {
	if w.Tool != shellTool || w.Kind != "execute" || w.Changes != 0 {
		return nil
	}
	input := map[string]any{"command": w.Title}
	if !strings.HasPrefix(w.Text, "[current working directory ") {
		input["dir_path"] = w.Text
	}
	if strings.HasSuffix(w.Text, " [background]") {
		input["is_background"] = true
	}
	raw, err := json.Marshal(input)
	if err != nil { // cannot happen: strings and booleans can always be encoded
		return nil
	}
	return raw
}

var (
	exitLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^Command exited with code: (-?\d{1,9})$`)
	})
	failedLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(Blocked: |Command (failed: |terminated by signal: |cancelled by user\.|was automatically cancelled)).*`)
	})
)

// shellFailure extracts the exit code and the reason of a failure from the output of a shell command, because Gemini
// reports a failed command as completed. If the command has an exit code and output, Gemini reports no reason.
func shellFailure(output string) (code *int, why string) {
	return cli.NumberIn(exitLine(), output), failedLine().FindString(output)
}

var planLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^Requesting plan approval for: (/.+/\.gemini/tmp/.+\.md)$`)
})

// planFile returns the path of the file with the plan that needs the user's approval, or "" for other tool calls.
// Gemini puts the path into the title of its tool exit_plan_mode.
func planFile(id, title string) string {
	if !strings.HasPrefix(id, "exit_plan_mode") {
		return ""
	}
	plan := planLine().FindStringSubmatch(title)
	if plan == nil || filepath.Clean(plan[1]) != plan[1] {
		return ""
	}
	return plan[1]
}

// isModeNotice reports whether a text only announces a change of Gemini's mode.
func isModeNotice(text string) bool {
	mode, notice := strings.CutPrefix(text, "[MODE_UPDATE] ")
	return notice && !strings.ContainsAny(mode, " \n")
}
