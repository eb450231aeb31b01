package conversation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
)

var (
	errNotOutside = errors.New("this task must run outside of a sandbox, but everything in its directory runs in one")
	errNotInside  = errors.New("this task must run in a sandbox, but none is configured")
)

// sandboxOf returns the environment in which a conversation must work in a directory. The parameter wanted can request
// a sandbox although the policy requires none. It cannot prevent a sandbox that the policy requires.
func (e *Engine) sandboxOf(conv orchestrator.ConversationID, dir, wanted string) (cli.Sandbox, error) {
	var policy cli.Sandbox
	if e.opts.Sandboxes != nil {
		policy = e.opts.Sandboxes.Of(dir, conv)
	}
	switch {
	case wanted == "" || wanted == orchestrator.SandboxDocker && policy != "" || wanted == orchestrator.SandboxOff &&
		policy == "":
		return policy, nil
	case wanted == orchestrator.SandboxOff:
		return "", errNotOutside
	case wanted != orchestrator.SandboxDocker || e.opts.Sandboxes == nil:
		return "", noSandbox(errNotInside)
	}
	forced, err := e.opts.Sandboxes.Forced(dir, conv)
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

// nextPlace returns the session and the environment that the next turn of the conversation would use. It chooses them
// like sessionFor, but creates no session.
func (e *Engine) nextPlace(ctx context.Context, conv orchestrator.Conversation) (orchestrator.Session, cli.Sandbox,
	error) {
	session, ok, err := e.currentSession(ctx, conv.Session)
	if err != nil {
		return orchestrator.Session{}, "", err
	}
	if !ok {
		session = orchestrator.Session{Dir: e.dirOf(conv)}
	}
	in, err := e.sandboxOf(conv.ID, session.Dir, "")
	return session, in, err
}

// next loads a conversation, and returns the session and the environment that its next turn would use. If nextPlace
// fails, it still returns the conversation.
func (e *Engine) next(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Conversation,
	orchestrator.Session, cli.Sandbox, error) {
	conv, err := e.load(ctx, id)
	if err != nil {
		return conv, orchestrator.Session{}, "", err
	}
	session, in, err := e.nextPlace(ctx, conv)
	return conv, session, in, err
}

// SideRequest returns a request without a prompt, for questions outside of a conversation's turns. The request has the
// environment and the forbidden tools of the next turn, and no permissions. SideRequest returns a *cli.Failure if no
// agent can run in that environment.
func (e *Engine) SideRequest(ctx context.Context, id orchestrator.ConversationID) (cli.Request, error) {
	conv, session, in, err := e.next(ctx, id)
	if err != nil {
		return cli.Request{}, err
	}
	return cli.Request{
		ChatID: id.Chat, Lang: e.opts.Lang.In(id.Chat), Sandbox: in, Session: string(session.ID), Dir: session.Dir,
		AddDirs:   e.addDirs(id),
		ToolLists: e.toolLists(conv, session.Dir), Accounts: conv.Settings.Accounts,
	}, e.checkDir(session.Dir)
}

// Directory implements sessions.Engine, projects.Engine and changes.Engine.
func (e *Engine) Directory(path string) (string, error) { return e.resolveDir(e.opts.Dir, path) }

// resolveDir returns the absolute path of a directory, without symbolic links. It returns an error unless this path is
// inside the configured roots.
func (e *Engine) resolveDir(base, path string) (string, error) {
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
	for _, root := range e.opts.Roots {
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

// checkDir checks the directory of a session again before each turn, because an agent may have replaced it by a
// symbolic link. The error is a *cli.Failure.
func (e *Engine) checkDir(dir string) error {
	if _, err := e.resolveDir("", dir); err != nil {
		return &cli.Failure{Kind: cli.NoDirectory, Reason: fmt.Sprintf("%s: %s", dir, err), Cause: err}
	}
	return nil
}

// addDirs returns the additional directories that agents in a conversation may use: the configured ones, and the folder
// with the conversation's uploads.
func (e *Engine) addDirs(id orchestrator.ConversationID) []string {
	return append(slices.Clone(e.opts.AddDirs), e.uploads(id)...)
}

// uploads returns the folder with the uploads of a conversation. It creates the folder, because agents look for it when
// they start. It returns nil if the folder is a symbolic link, because the link could lead to the folder of another
// conversation.
func (e *Engine) uploads(id orchestrator.ConversationID) []string {
	if e.opts.UploadsDir == "" {
		return nil
	}
	dir := filepath.Join(e.opts.UploadsDir, id.UploadFolder())
	for {
		info, err := os.Lstat(dir)
		if err == nil && info.IsDir() {
			return []string{dir}
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = os.Mkdir(dir, 0o700)
			if err == nil || errors.Is(err, fs.ErrExist) {
				continue
			}
		}
		e.log.Warn("an agent does not get the uploads of its chat: their folder is missing, a link or no directory",
			"dir", dir, "err", err)
		return nil
	}
}

// projectOf returns the policy of the project that contains a directory. If several projects contain it, projectOf
// chooses the innermost one. If none does, it returns the zero value. It resolves symbolic links.
func (e *Engine) projectOf(dir string) orchestrator.ProjectPolicy {
	var found orchestrator.ProjectPolicy
	for _, p := range e.turns().Projects {
		p.Dir = cli.RealPath(p.Dir)
		if rel, err := filepath.Rel(p.Dir, cli.RealPath(dir)); err == nil && filepath.IsLocal(rel) &&
			len(p.Dir) > len(found.Dir) {
			found = p
		}
	}
	return found
}

func (e *Engine) dirOf(c orchestrator.Conversation) string {
	if c.Dir != "" {
		return c.Dir
	}
	return e.opts.Dir
}
