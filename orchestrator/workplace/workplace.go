// Package workplace selects and checks the directories and the environment in which the agents of a conversation work.
package workplace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// Places contains the directories and environments in which agents may work. All paths are absolute.
type Places struct {
	Dir        string   // default working directory of conversations
	Roots      []string // users can choose these directories and all directories below them
	AddDirs    []string // more directories that all agents may use
	UploadsDir string   // contains a folder for each conversation with the files that users sent; may be empty
	// Links maps directories of the configuration to their real paths, if their paths contain symbolic links; see
	// LinksOf. CheckDir accepts these links.
	Links map[string]string
	// Sandboxes selects where agents run. If it is nil, all agents run on this host, and orders that require a sandbox
	// are an error.
	Sandboxes orchestrator.Sandboxes
}

var (
	errNotOutside = errors.New("this task must run outside of a sandbox, but everything in its directory runs in one")
	errNotInside  = errors.New("this task must run in a sandbox, but none is configured")
)

// Sandbox returns the environment in which a conversation must work in a directory. wanted is Wants.Sandbox of an
// Order: it can request a sandbox although the policy requires none, but it cannot prevent a sandbox that the policy
// requires.
func (p Places) Sandbox(conv orchestrator.ConversationID, dir, wanted string) (cli.Sandbox, error) {
	var policy cli.Sandbox
	if p.Sandboxes != nil {
		policy = p.Sandboxes.Of(dir, conv)
	}
	switch {
	case wanted == "" || wanted == orchestrator.SandboxDocker && policy != "" || wanted == orchestrator.SandboxOff &&
		policy == "":
		return policy, nil
	case wanted == orchestrator.SandboxOff:
		return "", errNotOutside
	case wanted != orchestrator.SandboxDocker || p.Sandboxes == nil:
		return "", noSandbox(errNotInside)
	}
	forced, err := p.Sandboxes.Forced(dir, conv)
	if err == nil && forced == "" {
		err = errNotInside
	}
	if err != nil {
		return "", noSandbox(err)
	}
	return forced, nil
}

func noSandbox(err error) *cli.Failure {
	return &cli.Failure{Kind: cli.NoSandbox, Reason: err.Error(), Cause: err}
}

// DirOf returns the directory in which new sessions of a conversation work. It resolves the links in Links: if a
// session stored the path of a link, the session could not continue after a user changed the link or the configuration.
func (p Places) DirOf(c orchestrator.Conversation) string {
	return p.Real(cmp.Or(c.Dir, p.Dir))
}

// Resolve returns the absolute path of a directory, without symbolic links. It returns an error unless this path is
// inside Roots.
func (p Places) Resolve(base, path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", orchestrator.ErrNotADir
		}
		path = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	dir, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", orchestrator.ErrNotADir
	}
	for _, root := range p.Roots {
		if root == path {
			root = dir
		} else if root, err = filepath.EvalSymlinks(root); err != nil {
			continue
		}
		if rel, err := filepath.Rel(root, dir); err == nil && filepath.IsLocal(rel) {
			if info, err := os.Stat(dir); err != nil || !info.IsDir() {
				return "", orchestrator.ErrNotADir
			}
			return dir, nil
		}
	}
	return "", orchestrator.ErrOutsideRoot
}

// Move resolves a path like Resolve, relative to the current directory. It also reports whether the result is another
// directory than the current one.
func (p Places) Move(current, path string) (dir string, moves bool, err error) {
	if dir, err = p.Resolve(current, path); err != nil {
		return "", false, err
	}
	return dir, p.Real(current) != dir, nil // moves is also true if the directory current is gone or is now a link
}

// LinksOf returns the real paths of those directories whose paths contain symbolic links. Call it when ductor starts,
// before an agent can replace a directory by a link. resolve returns the real path of a directory, or its path unchanged
// if ductor must not follow the links.
func LinksOf(resolve func(dir string) string, dirs ...string) map[string]string {
	links := map[string]string{}
	for _, dir := range dirs {
		dir = filepath.Clean(dir)
		if real := resolve(dir); real != dir {
			links[dir] = real
		}
	}
	return links
}

// Real returns the path of a directory, with the links in Links resolved. It resolves no other links, because an agent
// may have created them.
func (p Places) Real(dir string) string {
	dir = filepath.Clean(dir)
	deepest := ""
	for link := range p.Links {
		if cli.Lies(dir, link) && len(link) > len(deepest) {
			deepest = link
		}
	}
	return filepath.Join(p.Links[deepest], strings.TrimPrefix(dir, deepest))
}

// Chosen returns the real path of a directory that a user or the configuration chose earlier. The error is one of
// Resolve, or ErrReplacedDir if the path contains symbolic links other than those in Links.
func (p Places) Chosen(dir string) (string, error) {
	real, err := p.Resolve("", dir)
	if err == nil && real != p.Real(dir) {
		err = orchestrator.ErrReplacedDir
	}
	return real, err
}

// CheckDir checks the directory of a session again before each turn, because an agent may have replaced it by a
// symbolic link. The link could lead out of the roots, or to a directory with other limits. The error is a *cli.Failure.
func (p Places) CheckDir(dir string) error {
	_, err := p.Chosen(dir)
	if err == nil {
		return nil
	}
	f := &cli.Failure{Kind: cli.NoDirectory, Reason: fmt.Sprintf("%s: %s", dir, err), Cause: err}
	if leads := cli.RealPath(dir); leads != p.Real(dir) {
		f.Cause = &lang.Error{Kind: err, Explain: func(in lang.Printer) string {
			return in.Text("failure.dir-replaced", dir, leads)
		}}
		f.Reason = f.Cause.Error()
	}
	return f
}

// MoreDirs returns the additional directories that agents in a conversation may use: AddDirs, and the folder with the
// conversation's uploads. It creates the folder, because agents look for the folder when they start. It omits a folder
// that is a symbolic link, because the link could lead to the folder of another conversation.
func (p Places) MoreDirs(id orchestrator.ConversationID, log *slog.Logger) []string {
	dirs := slices.Clone(p.AddDirs)
	if p.UploadsDir == "" {
		return dirs
	}
	uploads := filepath.Join(p.UploadsDir, id.UploadFolder())
	for {
		info, err := os.Lstat(uploads)
		if err == nil && info.IsDir() {
			return append(dirs, uploads)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = os.Mkdir(uploads, 0o700)
			if err == nil || errors.Is(err, fs.ErrExist) {
				continue
			}
		}
		log.Warn("an agent does not get the uploads of its chat: their folder is missing, a link or no directory",
			"dir", uploads, "err", err)
		return dirs
	}
}
