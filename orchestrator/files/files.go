// Package files gives agents and users access to the files of projects. All files must be below the configured roots.
// Secrets are removed.
package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // decoders for the formats that Telegram can show as pictures
	_ "image/png"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"ductor/cli"
	"ductor/internal/rooted"
	"ductor/internal/secrets"
	"ductor/orchestrator"
)

// Environment reads and writes files where an agent runs. Errors about a file are of the type *rooted.Error.
type Environment interface {
	ReadFile(ctx context.Context, dir, below string, most int64) ([]byte, error)
	ListFiles(ctx context.Context, dir, below string) ([]rooted.Entry, error)
	WriteFile(ctx context.Context, dir, below string, content []byte) error
	// RealPaths resolves symbolic links like rooted.RealPaths.
	RealPaths(ctx context.Context, paths []string) ([]string, error)
}

// Options configures a Service. All fields are required.
type Options struct {
	Roots     []string                      // absolute paths
	Protected []string                      // absolute paths of ductor's own files, with and without symbolic links
	Secrets   func(dir string) *secrets.Set // secrets of a directory, which must not be shown
	// Session loads the session of a turn. Session.Dir is the working directory of the turn.
	Session func(context.Context, orchestrator.SessionID) (orchestrator.Session, error)
	// Dir returns the directory that the next turn of a chat would use.
	Dir func(context.Context, orchestrator.ConversationID) (string, error)
	// Sandbox returns the sandbox in which agents work in a directory; empty means this host.
	Sandbox     func(dir string, of orchestrator.ConversationID) cli.Sandbox
	Environment func(cli.Sandbox) (Environment, error)
}

// Service implements orchestrator.Files.
type Service struct{ opts Options }

var _ orchestrator.Files = (*Service)(nil)

// New creates a Service.
func New(o Options) *Service { return &Service{o} }

// OfTurn implements orchestrator.Files.
func (s *Service) OfTurn(ctx context.Context, t orchestrator.Turn) (orchestrator.FilePlace, error) {
	session, err := orchestrator.Session{}, error(nil)
	if t.Session != "" {
		session, err = s.opts.Session(ctx, t.Session)
	} else { // an Outsider's turn has no session
		session.Dir, err = s.opts.Dir(ctx, t.Prompt.Conversation)
	}
	if err != nil {
		return orchestrator.FilePlace{}, fmt.Errorf("find where a turn ran: %w", err)
	}
	at := orchestrator.FilePlace{Sandbox: t.Sandbox, Dir: session.Dir, Roots: []string{session.Dir}}
	if t.Prompt.Rights.OfChat() {
		at.Roots = s.opts.Roots
	}
	return at, nil
}

// OfChat implements orchestrator.Files.
func (s *Service) OfChat(ctx context.Context, id orchestrator.ConversationID, path string) (orchestrator.FilePlace,
	error) {
	dir, err := s.opts.Dir(ctx, id)
	if err != nil {
		return orchestrator.FilePlace{}, fmt.Errorf("find where a chat works: %w", err)
	}
	return orchestrator.FilePlace{Sandbox: s.opts.Sandbox(full(dir, path), id), Dir: dir, Roots: s.opts.Roots}, nil
}

// full returns an absolute path. Relative paths are relative to dir, and "~" is the home directory.
func full(dir, path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		if home, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(home, rest)
		}
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path)
}

// Read implements orchestrator.Files.
func (s *Service) Read(ctx context.Context, at orchestrator.FilePlace, path string) (orchestrator.ProjectFile, error) {
	root, below, err := s.find(at, path)
	if err != nil {
		return orchestrator.ProjectFile{}, err
	}
	env, err := s.opts.Environment(at.Sandbox)
	if err != nil {
		return orchestrator.ProjectFile{}, refused(path, err)
	}
	content, err := env.ReadFile(ctx, root, below, orchestrator.MostFileBytes)
	if err != nil {
		return orchestrator.ProjectFile{}, refused(path, err)
	}
	full := filepath.Join(root, below)
	content, err = s.clean(path, filepath.Dir(full), content)
	if err != nil {
		return orchestrator.ProjectFile{}, err
	}
	return orchestrator.ProjectFile{Name: filepath.Base(full), Content: content, Picture: isPicture(content)}, nil
}

// clean removes secrets from the content of a text file in the given directory. It returns an error for a binary file
// that contains a secret.
func (s *Service) clean(path, dir string, content []byte) ([]byte, error) {
	set := s.opts.Secrets(dir)
	has := secrets.InText(content)
	if !has && utf8.Valid(content) && bytes.IndexByte(content, 0) < 0 {
		return []byte(set.String(string(content))), nil
	}
	for _, word := range set.Words() {
		has = has || bytes.Contains(content, []byte(word))
	}
	if has {
		return nil, &orchestrator.FileError{Path: path, Why: orchestrator.FileHasSecret}
	}
	return content, nil
}

// Telegram's limits for pictures.
const (
	mostSides = 10_000 // width plus height in pixels
	mostRatio = 20     // width divided by height, or height divided by width
)

// isPicture reports whether Telegram can show a file as a picture. It reads only the header of the file. It returns
// false for a picture that is too large.
func isPicture(content []byte) bool {
	c, _, err := image.DecodeConfig(bytes.NewReader(content))
	return err == nil && len(content) <= orchestrator.MostPictureBytes && c.Width > 0 && c.Height > 0 &&
		c.Width+c.Height <= mostSides && c.Width <= mostRatio*c.Height && c.Height <= mostRatio*c.Width
}

// List implements orchestrator.Files.
func (s *Service) List(ctx context.Context, at orchestrator.FilePlace, dir string) ([]orchestrator.FileEntry, error) {
	root, below, err := s.find(at, dir)
	if err != nil {
		return nil, err
	}
	env, err := s.opts.Environment(at.Sandbox)
	if err != nil {
		return nil, refused(dir, err)
	}
	found, err := env.ListFiles(ctx, root, below)
	if err != nil {
		return nil, refused(dir, ofFolder(err))
	}
	var all []orchestrator.FileEntry
	for _, e := range found {
		if !s.isSecret(filepath.Join(root, below, e.Name)) {
			all = append(all, orchestrator.FileEntry(e))
		}
	}
	return all, nil
}

// Write implements orchestrator.Files.
func (s *Service) Write(ctx context.Context, at orchestrator.FilePlace, path, name string, content []byte) (string,
	error) {
	env, err := s.opts.Environment(at.Sandbox)
	if err != nil {
		return "", refused(path, err)
	}
	if path == "" || strings.HasSuffix(path, "/") {
		path = filepath.Join(path, name)
	}
	for range 2 {
		root, below, err := s.find(at, path)
		if err != nil {
			return "", err
		}
		err = env.WriteFile(ctx, root, below, content)
		if own := (*rooted.Error)(nil); errors.As(err, &own) && own.Refusal == rooted.Directory {
			path = filepath.Join(path, name)
			continue
		}
		if err != nil {
			return "", refused(path, ofFolder(err))
		}
		return filepath.Join(root, below), nil
	}
	return "", &orchestrator.FileError{Path: path, Why: orchestrator.FileDirectory}
}

// find returns the root that contains a path, and the path relative to this root.
func (s *Service) find(at orchestrator.FilePlace, path string) (root, below string, err error) {
	full := full(at.Dir, path)
	root, below = locate(at.Roots, full)
	switch {
	case root == "":
		return "", "", &orchestrator.FileError{Path: path, Why: orchestrator.FileOutside}
	case s.isSecret(full) || s.isSecret(filepath.Join(cli.RealPath(root), below)):
		return "", "", &orchestrator.FileError{Path: path, Why: orchestrator.FileSecret}
	}
	// The working directory itself may be in a worktree below a hidden directory.
	visible := below
	dirRoot, dir := locate(at.Roots, at.Dir)
	if dirRoot != "" && cli.RealPath(dirRoot) == cli.RealPath(root) &&
		rooted.CheckVisible(withoutWorktrees(dir)) == nil {
		if rel, err := filepath.Rel(dir, below); err == nil && filepath.IsLocal(rel) {
			visible = rel
		}
	}
	if err := rooted.CheckVisible(visible); err != nil {
		return "", "", refused(path, err)
	}
	return root, below, nil
}

// withoutWorktrees removes the hidden directories from a path that ductor and Claude create for worktrees, together with
// the names of the worktrees: .worktrees/<name> and .claude/worktrees/<name>.
func withoutWorktrees(path string) string {
	var rest []string
	for steps := strings.Split(path, string(filepath.Separator)); len(steps) > 0; {
		switch {
		case len(steps) > 1 && steps[0] == ".worktrees" && !strings.HasPrefix(steps[1], "."):
			steps = steps[2:]
		case len(steps) > 2 && steps[0] == ".claude" && steps[1] == "worktrees" && !strings.HasPrefix(steps[2], "."):
			steps = steps[3:]
		default:
			rest, steps = append(rest, steps[0]), steps[1:]
		}
	}
	return filepath.Join(rest...)
}

// locate returns the innermost root that contains an absolute path, and the path relative to this root. It returns ""
// if there is none.
func locate(roots []string, full string) (root, below string) {
	for _, named := range roots {
		for _, dir := range []string{named, cli.RealPath(named)} {
			if rel, err := filepath.Rel(dir, full); err == nil && filepath.IsLocal(rel) && len(dir) > len(root) {
				root, below = dir, rel
			}
		}
	}
	return root, below
}

// isSecret reports whether a file belongs to ductor, or has a name that is usual for files with secrets.
func (s *Service) isSecret(full string) bool {
	for _, own := range s.opts.Protected {
		if cli.Lies(full, own) {
			return true
		}
	}
	return secrets.IsFile(filepath.Base(full))
}

// ofFolder changes the error for a missing file to the error for a missing folder.
func ofFolder(err error) error {
	if own := (*rooted.Error)(nil); errors.As(err, &own) && own.Refusal == rooted.NotThere {
		return &rooted.Error{Refusal: rooted.NoFolder}
	}
	return err
}

func refused(path string, err error) error {
	var own *rooted.Error
	if !errors.As(err, &own) || own.Refusal == rooted.Failed {
		return &orchestrator.FileError{Path: path, Why: orchestrator.FileUnreachable, Err: err}
	}
	return &orchestrator.FileError{Path: path, Why: orchestrator.FileRefusal(own.Refusal), Size: own.Size}
}

// Host is the Environment for agents on this machine.
type Host struct{}

// ReadFile implements Environment.
func (Host) ReadFile(_ context.Context, dir, below string, most int64) ([]byte, error) {
	return rooted.Read(dir, below, most)
}

// ListFiles implements Environment.
func (Host) ListFiles(_ context.Context, dir, below string) ([]rooted.Entry, error) {
	return rooted.List(dir, below)
}

// WriteFile implements Environment.
func (Host) WriteFile(_ context.Context, dir, below string, content []byte) error {
	return rooted.Write(dir, below, content)
}

// RealPaths implements Environment.
func (Host) RealPaths(_ context.Context, paths []string) ([]string, error) {
	return rooted.RealPaths(paths), nil
}
