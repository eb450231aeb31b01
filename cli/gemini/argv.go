package gemini

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"ductor/cli"
	"ductor/cli/acp"
)

// ownFiles are the files of ours that a command line names.
func (p *Provider) ownFiles(args []string) []string {
	var files []string
	for _, arg := range args {
		path, ok := strings.CutPrefix(arg, "--policy=")
		if ok && filepath.Dir(path) == filepath.Clean(p.stateDir()) {
			files = append(files, path)
		}
	}
	return files
}

// approvalMode gives the value of --approval-mode for a one-shot run, in which Gemini can ask no user, and says in one
// sentence what of the permission mode cannot be promised. Live, package acp chooses the mode.
func approvalMode(mode cli.PermissionMode) (value, cannot string) {
	switch mode {
	case cli.Bypass:
		return "yolo", ""
	case cli.AcceptEdits:
		return "auto_edit", "one-shot it cannot ask, so commands are not run"
	case cli.Auto:
		return "auto_edit", "it has no mode of its own judgement: files may be changed, and commands are not run"
	case cli.Plan:
		return "plan", ""
	}
	return "default", "one-shot it cannot ask, so nothing is changed and no command is run"
}

// argv is the command line of one turn. The prompt is not in it: it travels on standard input.
func (p *Provider) argv(req cli.Request) ([]string, error) {
	approval, _ := approvalMode(req.Permission)
	args := []string{"--prompt=", "--output-format=stream-json", "--approval-mode=" + approval}
	if req.Model != "" {
		args = append(args, "--model="+string(req.Model))
	}
	args = append(args, liveArgs(req)...)
	if len(req.DeniedTools) > 0 {
		policy, err := p.denial(req.DeniedTools)
		if err != nil {
			return nil, err
		}
		args = append(args, "--policy="+policy)
	}
	switch {
	case req.Resume != "":
		args = append(args, "--resume="+string(req.Resume))
	case req.NewSessionID != "":
		args = append(args, "--session-id="+string(req.NewSessionID))
	}
	return append(args, req.ExtraArgs...), nil
}

// denial is a policy file that denies tools.
func (p *Provider) denial(tools []string) (string, error) {
	var b strings.Builder
	for _, tool := range tools {
		name, err := json.Marshal(tool) // a JSON string is one of TOML
		if err != nil {
			return "", fmt.Errorf("write a policy: %w", err)
		}
		fmt.Fprintf(&b, "[[rule]]\ntoolName = %s\ndecision = \"deny\"\npriority = 999\n\n", name)
	}
	return p.keep("policy", ".toml", []byte(b.String()))
}

// promptOf is the prompt as Gemini takes it for text, the system prompts merged in: it has no flag for them.
func promptOf(req cli.Request) string {
	return acp.AsText(req.Instructions()+req.Prompt, commandMarks)
}
