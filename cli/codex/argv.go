package codex

import (
	"strconv"

	"ductor/cli"
)

// argv is the command line of one turn. The prompt is not in it: it travels on standard input.
// Codex takes -s, -C and --add-dir only before the word resume, and its -i swallows every word up to "--".
func argv(req cli.Request, sandbox string) []string {
	args := []string{"exec", "--json", "--skip-git-repo-check", "-c", "analytics.enabled=false"}
	if req.Permission == cli.Bypass {
		args = append(args, "--dangerously-bypass-approvals-and-sandbox")
	} else {
		args = append(args, "-s", sandboxOf(req.Permission, sandbox))
	}
	if req.Dir != "" {
		args = append(args, "-C", req.Dir)
	}
	for _, dir := range req.AddDirs {
		args = append(args, "--add-dir", dir)
	}
	args = append(args, req.ExtraArgs...)
	switch {
	case req.Resume != "":
		args = append(args, "resume")
	case req.Continue:
		args = append(args, "resume", "--last")
	}
	if req.Model != "" {
		args = append(args, "-m", string(req.Model))
	}
	if req.Effort != "" {
		args = append(args, "-c", "model_reasoning_effort="+strconv.Quote(string(req.Effort)))
	}
	for _, image := range req.Images {
		args = append(args, "-i", image.Path)
	}
	args = append(args, "--")
	if req.Resume != "" {
		args = append(args, string(req.Resume))
	}
	return append(args, "-")
}

// The sandboxes of codex exec.
const (
	readOnly       = "read-only"
	workspaceWrite = "workspace-write"
	fullAccess     = "danger-full-access"
)

// sandboxOf maps a permission mode to the sandbox. exec never asks, so what a mode would ask about must not
// be possible; a configured sandbox counts where the mode leaves a choice.
func sandboxOf(mode cli.PermissionMode, configured string) string {
	switch mode {
	case cli.Bypass:
		return fullAccess
	case cli.AcceptEdits, cli.Auto:
		if configured != "" {
			return configured
		}
		return workspaceWrite
	default:
		return readOnly
	}
}
