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

// Programs are the quirks of Gemini where it speaks the Agent Client Protocol, by the name that it calls itself.
func Programs() map[string]acp.Quirks {
	return map[string]acp.Quirks{"gemini-cli": { // version 0.61
		LateHistory: true, MissingIsEmpty: true, HidesTrouble: true, Forgets: true, AuthMethod: authMethod, CommandMarks: commandMarks,
		PlanFiles: true,
		KindOf:    kindOf, Tools: acp.ToolQuirks{Name: toolName, InputOf: inputOf, Failure: shellFailure},
	}}
}

// acp is Gemini as an agent of the Agent Client Protocol.
func (p *Provider) acp() *acp.Provider {
	return acp.New(acp.Options{
		ProviderOptions: p.opts.Allowing(EnvKeys()...),
		Agent:           Agent, Args: []string{"--acp"}, Argv: p.liveArgs, OwnFiles: p.ownFiles, ExtraEnv: p.ownEnv, HomeVars: homeVars(),
		// Gemini has tools of its own for both, and they ask.
		NoWorkspace: true,
		Programs:    Programs(), Resuming: Guard(p.opts.Launcher),
		Login: loginFix, Auth: p.Auth,
	})
}

// authMethod is what live mode must be told when no way of log-in was chosen yet, though there is a key. Gemini
// then writes the choice into the user's settings.
func authMethod(env []string) string {
	if cli.Variable(env, "GEMINI_API_KEY") != "" {
		return "gemini-api-key"
	}
	return ""
}

// liveArgs are the arguments that bind a live process.
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

// included are the further directories that hold anything. Gemini takes them for a whole process, so that a conversation
// with one of its own cannot share a process; an empty one is not worth that.
func included(dirs []string) []string {
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		entries, err := os.ReadDir(dir)
		return err != nil || len(entries) == 0
	})
}

// commandMarks begin commands of Gemini's own.
const commandMarks = "/$"

// toolName is the name that begins the id of a call.
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

// inputOf is what Gemini asks to do, from what it shows: it gives no input. Of a command it shows the whole, and in
// brackets where it runs, then what the model says of it, and at the end whether it goes on behind.
// That it runs where the session does is so unless another directory is named. Nil for any other tool.
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
	if err != nil { // of text and truth that cannot be
		return nil
	}
	return raw
}

var (
	exitLine   = regexp.MustCompile(`^Command exited with code: (-?\d{1,9})$`)
	failedLine = regexp.MustCompile(`^(Blocked: |Command (failed: |terminated by signal: |cancelled by user\.|was automatically cancelled)).*`)
)

// shellFailure finds why a shell command failed: Gemini says that it completed, and says more in words. It says nothing of
// a command that ended with an exit code and printed something.
func shellFailure(output string) (code *int, why string) {
	return cli.NumberIn(exitLine, output), failedLine.FindString(output)
}
