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
		args = append(args, "-s", permissionsOf(req.Permission, false, sandbox).sandbox)
	}
	if req.Dir != "" {
		args = append(args, "-C", req.Dir)
	}
	for _, dir := range req.AddDirs {
		args = append(args, "--add-dir", dir)
	}
	args = append(args, req.ExtraArgs...)
	if req.Resume != "" {
		args = append(args, "resume")
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
