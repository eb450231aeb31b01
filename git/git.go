// Package git runs git in the environment of a project's agents and with their rights, for what ductor itself wants of a repository:
// worktrees, what changed, and undoing it.
//
// A repository can name programs that git runs. None runs here: hooks, file system monitors, external diffs, text conversions,
// filters, signatures, editors and remote protocols are off. What has a name of the repository's choice is listed before each command that
// could run it, as it counts where git works. Nothing is fetched and nothing is asked for.
package git

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ductor/cli"
)

// wait is how long one command may take.
const wait = 30 * time.Second

// Environments are where git runs. *service.Service implements it.
type Environments interface {
	// Launcher starts processes in an environment.
	Launcher(in cli.Sandbox) (cli.Launcher, error)
}

// Git runs git. Safe for concurrent use.
type Git struct {
	envs Environments

	mu    sync.Mutex
	locks map[string]*sync.Mutex // of working trees in which snapshots are made
}

// New makes a Git.
func New(envs Environments) *Git { return &Git{envs: envs, locks: map[string]*sync.Mutex{}} }

// Place is a directory in an environment.
type Place struct {
	In  cli.Sandbox
	Dir string
}

// Run runs git in a directory and returns what it printed, at most a megabyte.
func (g *Git) Run(ctx context.Context, at Place, args ...string) (string, error) {
	return g.runFor(ctx, at, nil, args...)
}

// runFor is Run for a command that has git work in other directories too: what their settings name is off as well.
func (g *Git) runFor(ctx context.Context, at Place, others []string, args ...string) (string, error) {
	launcher, err := g.envs.Launcher(at.In)
	if err != nil {
		return "", err
	}
	names, err := listed(ctx, launcher, at.Dir)
	if err != nil {
		return "", err
	}
	for _, dir := range others {
		more, _ := listed(ctx, launcher, dir) // where they cannot be listed git does nothing
		names += more
	}
	return execute(ctx, launcher, command{args: quiet(args), dir: at.Dir, env: environment(settings(names)), wait: wait, limit: 1 << 20})
}

// listed lists the names of all settings that count in a directory.
func listed(ctx context.Context, l cli.Launcher, dir string) (string, error) {
	return execute(ctx, l, command{
		args: []string{"config", "--null", "--list", "--name-only"}, dir: dir, env: environment(settings("")), wait: wait, limit: most,
	})
}

// quiet is a command without programs that an option turns off, and none that would run git in a submodule, whose settings are its own.
func quiet(args []string) []string {
	if len(args) > 0 && slices.Contains([]string{"diff", "diff-tree", "diff-index", "diff-files", "log", "show"}, args[0]) {
		return append([]string{args[0], "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"}, args[1:]...)
	}
	return args
}

// subsections names those of a section among the names of settings.
func subsections(listed, section string) (names []string) {
	seen := map[string]bool{}
	for setting := range strings.SplitSeq(listed, "\x00") {
		rest, ok := strings.CutPrefix(setting, section+".")
		if i := strings.LastIndexByte(rest, '.'); ok && i >= 0 && !seen[rest[:i]] {
			seen[rest[:i]] = true
			names = append(names, rest[:i])
		}
	}
	return names
}

// events are those at which what ductor has git do would run hooks. From Git 2.55 on one switch turns off all hooks of an event.
func events() []string {
	return []string{"post-checkout", "post-index-change", "reference-transaction", "pre-commit", "post-commit", "pre-auto-gc", "fsmonitor-watchman"}
}

// settings turn off what runs programs, filters and the hooks of Git 2.54 by name. They count before those of the repository.
func settings(listed string) []string {
	off := []string{
		"core.hooksPath", "/dev/null", "core.fsmonitor", "false", "core.pager", "cat", "core.editor", "false", "core.askPass", "",
		"commit.gpgSign", "false", "tag.gpgSign", "false", "log.showSignature", "false", "credential.helper", "",
		"protocol.allow", "never", "submodule.recurse", "false", "gc.auto", "0", "maintenance.auto", "false",
	}
	for _, name := range append(events(), subsections(listed, "hook")...) {
		off = append(off, "hook."+name+".enabled", "false")
	}
	for _, name := range subsections(listed, "filter") {
		for _, key := range []string{"clean", "smudge", "process"} {
			off = append(off, "filter."+name+"."+key, "")
		}
		off = append(off, "filter."+name+".required", "false")
	}
	return off
}

// environment is that of agents with settings, which are pairs of a name and a value.
func environment(settings []string) []string {
	own := map[string]string{
		"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_ALLOW_PROTOCOL": "none", "GIT_PAGER": "cat", "GIT_EDITOR": "false", "LC_ALL": "C",
		"GIT_NO_LAZY_FETCH": "1", "GIT_CONFIG_COUNT": strconv.Itoa(len(settings) / 2),
	}
	for i := 0; i < len(settings); i += 2 {
		n := strconv.Itoa(i / 2)
		own["GIT_CONFIG_KEY_"+n], own["GIT_CONFIG_VALUE_"+n] = settings[i], settings[i+1]
	}
	return cli.ChildEnv(os.Environ(), cli.BaseEnv(), own)
}
