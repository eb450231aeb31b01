// Package git runs Git for ductor itself: to create worktrees, to find the changes of a turn, and to undo them. It runs
// Git in the environment of a project's agents and with their rights.
//
// A repository can configure programs that Git runs. This package disables all of them: hooks, file system monitors,
// external diffs, text conversions, filters, signatures, editors and remote protocols. The names of some settings
// contain a name that the repository chooses, for example the name of a filter. So before a command that could run such
// a program, the package lists all settings, and then overrides those that name programs. Git never fetches and never
// prompts.
//
// On this host, an agent in a sandbox may write to a repository in which the package works. So commands that convert the
// contents of files use a Git directory of ductor instead of the settings of the repository; see neutral and Repo.
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

const commandTimeout = 30 * time.Second

// Environments provides the launchers of the environments in which agents run. *service.Service implements it.
type Environments interface {
	Launcher(in cli.Sandbox) (cli.Launcher, error)
}

// Git runs git commands. It is safe for concurrent use.
type Git struct {
	envs    Environments
	private string // directory for the shadow directories; see New

	mu    sync.Mutex
	locks map[string]*sync.Mutex // by working tree; see lockOf
}

// New returns a Git. private is a directory of ductor on this host, for the shadow directories of repositories on this
// host. Agents must not be able to write to it. New does not create the directory.
func New(envs Environments, private string) *Git {
	return &Git{envs: envs, private: private, locks: map[string]*sync.Mutex{}}
}

// Place is a directory on this host or in a sandbox.
type Place struct {
	In  cli.Sandbox
	Dir string
}

// Run runs Git in a directory and returns its output, at most a megabyte.
func (g *Git) Run(ctx context.Context, at Place, args ...string) (string, error) {
	return g.runAcross(ctx, at, nil, args...)
}

// runAcross runs a command that works in several directories, for example in two worktrees. It disables the programs
// that the settings of any of these directories configure.
func (g *Git) runAcross(ctx context.Context, at Place, otherDirs []string, args ...string) (string, error) {
	launcher, err := g.envs.Launcher(at.In)
	if err != nil {
		return "", err
	}
	names, err := listSettingNames(ctx, launcher, at.Dir)
	if err != nil {
		return "", err
	}
	for _, dir := range otherDirs {
		// Ignore an error: if Git cannot work in dir now, the command below cannot use the settings in dir either.
		more, _ := listSettingNames(ctx, launcher, dir)
		names += more
	}
	settings := append(safeSettings(names), logIdentity()...)
	return execute(ctx, launcher, command{args: hardenArgs(args), dir: at.Dir, env: gitEnv(settings),
		timeout: commandTimeout, limit: 1 << 20})
}

// logIdentity returns settings with the committer's name for the logs of refs, so that Git does not use the name in the
// repository's settings. An agent can change those. If it made a shell command the name and replaced a log by a link to
// a script of the user, Git would append the command to the script.
func logIdentity() []string {
	return []string{"committer.name", "ductor", "committer.email", "ductor@localhost"}
}

// listSettingNames returns the names of all settings that apply in a directory, each followed by a zero byte.
func listSettingNames(ctx context.Context, l cli.Launcher, dir string) (string, error) {
	return execute(ctx, l, command{
		args: []string{"config", "--null", "--list", "--name-only"}, dir: dir, env: gitEnv(safeSettings("")),
		timeout: commandTimeout, limit: maxOutput,
	})
}

// hardenArgs adds options to a command such as diff. These options turn off the external diff and text conversion
// programs, because no setting can turn them off. They also keep the command from running Git in submodules, which have
// their own settings.
func hardenArgs(args []string) []string {
	if len(args) > 0 && slices.Contains([]string{"diff", "diff-tree", "diff-index", "diff-files", "log", "show"}, args[0]) {
		return append([]string{args[0], "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"}, args[1:]...)
	}
	return args
}

// subsections returns the distinct names of the subsections of a section. settingNames is a result of listSettingNames.
func subsections(settingNames, section string) (names []string) {
	seen := map[string]bool{}
	for setting := range strings.SplitSeq(settingNames, "\x00") {
		rest, ok := strings.CutPrefix(setting, section+".")
		if i := strings.LastIndexByte(rest, '.'); ok && i >= 0 && !seen[rest[:i]] {
			seen[rest[:i]] = true
			names = append(names, rest[:i])
		}
	}
	return names
}

// hookEvents returns the events for which Git would run hooks during ductor's commands. Since Git 2.55, safeSettings
// can disable all hooks of an event by one setting.
func hookEvents() []string {
	return []string{"post-checkout", "post-index-change", "reference-transaction", "pre-commit", "post-commit",
		"pre-auto-gc", "fsmonitor-watchman"}
}

// safeSettings returns settings that override the repository's settings and disable all programs. It returns them as
// pairs of name and value. settingNames is a result of listSettingNames. safeSettings disables each filter and each
// named hook (since Git 2.54) in settingNames.
func safeSettings(settingNames string) []string {
	off := []string{
		"core.hooksPath", "/dev/null", "core.fsmonitor", "false", "core.pager", "cat", "core.editor", "false",
		"core.askPass", "",
		"commit.gpgSign", "false", "tag.gpgSign", "false", "log.showSignature", "false", "credential.helper", "",
		"protocol.allow", "never", "submodule.recurse", "false", "gc.auto", "0", "maintenance.auto", "false",
	}
	for _, name := range append(hookEvents(), subsections(settingNames, "hook")...) {
		off = append(off, "hook."+name+".enabled", "false")
	}
	for _, name := range subsections(settingNames, "filter") {
		for _, key := range []string{"clean", "smudge", "process"} {
			off = append(off, "filter."+name+"."+key, "")
		}
		off = append(off, "filter."+name+".required", "false")
	}
	return off
}

// gitEnv returns the environment for Git. It contains the variables that agents may see, and the given settings, which
// are pairs of name and value.
func gitEnv(settings []string) []string {
	own := map[string]string{
		"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_ALLOW_PROTOCOL": "none", "GIT_PAGER": "cat",
		"GIT_EDITOR": "false", "LC_ALL": "C",
		"GIT_NO_LAZY_FETCH": "1", "GIT_CONFIG_COUNT": strconv.Itoa(len(settings) / 2),
	}
	for i := 0; i < len(settings); i += 2 {
		n := strconv.Itoa(i / 2)
		own["GIT_CONFIG_KEY_"+n], own["GIT_CONFIG_VALUE_"+n] = settings[i], settings[i+1]
	}
	return cli.ChildEnv(os.Environ(), cli.BaseEnv(), own)
}
