package gemini

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/cli/acp"
)

// Programs returns the quirks of Gemini as an agent of the Agent Client Protocol, by its own name.
func Programs() map[string]acp.Quirks {
	return map[string]acp.Quirks{"gemini-cli": { // version 0.61
		LateHistory: true, MissingIsEmpty: true, HidesTrouble: true, Forgets: true, AuthMethod: authMethod, CommandMarks: commandMarks,
		PlanFiles: true,
		KindOf:    kindOf, Tools: acp.ToolQuirks{Name: toolName, InputOf: inputOf, Failure: shellFailure},
	}}
}

// acp returns Gemini as an agent of the Agent Client Protocol.
func (p *Provider) acp() *acp.Provider {
	return acp.New(acp.Options{
		ProviderOptions: p.opts.Allowing(EnvKeys()...),
		Agent:           Agent, Args: []string{"--acp"}, Argv: p.liveArgs, OwnFiles: p.ownFiles, ExtraEnv: p.ownEnv, HomeVars: homeVars(),
		// Gemini has its own tools for files and commands, and they ask.
		NoWorkspace: true,
		Programs:    Programs(), Resuming: Guard(p.opts.Launcher),
		Login: loginFix, Auth: p.Auth,
	})
}

// authMethod returns the log-in method for live mode if none was chosen yet but there is a key. Gemini then writes the
// choice into the user's settings.
func authMethod(env []string) string {
	if cli.Variable(env, "GEMINI_API_KEY") != "" {
		return "gemini-api-key"
	}
	return ""
}

// liveArgs returns the arguments that distinguish a live process.
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

// included returns the further directories that are not empty. Gemini applies them to a whole process, so a
// conversation with such a directory cannot share one; an empty directory is not worth that.
func included(dirs []string) []string {
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		entries, err := os.ReadDir(dir)
		return err != nil || len(entries) == 0
	})
}

// commandMarks start commands of Gemini's own.
const commandMarks = "/$"

// toolName returns the name at the start of a call's id.
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

// inputOf derives the input of a requested tool from the text that Gemini shows, because Gemini sends no input. For a
// command the text has the whole command, the directory in brackets, the model's words, and finally whether it
// continues in the background. Without a directory the command runs in the session's. It returns nil for any other
// tool.
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
	if err != nil { // texts and booleans can always be encoded
		return nil
	}
	return raw
}

var (
	exitLine   = regexp.MustCompile(`^Command exited with code: (-?\d{1,9})$`)
	failedLine = regexp.MustCompile(`^(Blocked: |Command (failed: |terminated by signal: |cancelled by user\.|was automatically cancelled)).*`)
)

// shellFailure finds why a shell command failed: Gemini reports it as completed, with the reason in words. For a
// command with an exit code and some output it reports nothing.
func shellFailure(output string) (code *int, why string) {
	return cli.NumberIn(exitLine, output), failedLine.FindString(output)
}
