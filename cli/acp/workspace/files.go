package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"ductor/cli"
	"ductor/cli/acp/toolcall"
	"ductor/cli/rpc"
)

// maxFile is the maximum size of a file that ductor reads or writes for an agent, in bytes.
const maxFile = 10 << 20

// maxDiffed is the maximum size of a change for which ductor computes a diff: the old and the new text together, in
// bytes.
const maxDiffed = 1 << 20

// codeNoFile is the protocol's error code for a file that does not exist.
const codeNoFile = -32002

// file opens a regular file in one of the session's directories. It does not follow symbolic links that lead out of the
// directory, and does not block at a named pipe. If flag contains os.O_CREATE, file also creates missing parent
// directories.
func (w *Workspace) file(path string, flag int) (*os.File, error) {
	root, rel, err := w.root(path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if flag&os.O_CREATE != 0 {
		if err := root.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
			return nil, err
		}
	}
	f, err := root.OpenFile(rel, flag|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// root opens the directory of the session that contains path. It also returns path relative to that directory. The
// caller must close the root.
func (w *Workspace) root(path string) (*os.Root, string, error) {
	for _, dir := range w.opts.Dirs {
		for _, begin := range []string{dir, cli.RealPath(dir)} {
			rel, err := filepath.Rel(begin, path)
			if err != nil || !filepath.IsLocal(rel) {
				continue
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				return nil, "", fmt.Errorf("open the directory of the conversation: %w", err)
			}
			return root, rel, nil
		}
	}
	return nil, "", badParams("the path is not absolute, or outside of the conversation's directories")
}

type readParams struct {
	Path  string `json:"path"`
	Line  *int   `json:"line"` // number of the first line, starting at 1
	Limit *int   `json:"limit"`
}

// ReadResult is a part of a file.
type ReadResult struct {
	Content string `json:"content"`
}

func (w *Workspace) read(_ context.Context, p readParams) (any, error) {
	// Do not open ductor's own database. Closing it here would release the locks that SQLite holds.
	if cli.Touches(w.opts.Protected, w.opts.Dirs[0], p.Path) {
		return nil, badParams("the file is ductor's own: it is not read here")
	}
	f, err := w.file(p.Path, os.O_RDONLY)
	switch {
	case errors.Is(err, fs.ErrNotExist) && w.opts.MissingIsEmpty:
		return ReadResult{}, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, &rpc.Error{Code: codeNoFile, Message: "Resource not found: there is no such file"}
	case err != nil:
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(content) > maxFile:
		return nil, errors.New("the file is too large")
	case !utf8.Valid(content):
		return nil, errors.New("the file is no text")
	}
	return ReadResult{p.part(string(content))}, nil
}

// part returns the requested lines of s.
func (p readParams) part(s string) string {
	lines := strings.SplitAfter(s, "\n")
	if p.Line != nil {
		lines = lines[min(max(*p.Line-1, 0), len(lines)):]
	}
	if p.Limit != nil {
		lines = lines[:min(max(*p.Limit, 0), len(lines))]
	}
	return strings.Join(lines, "")
}

// WriteResult is the response after a file was written. The agent receives an empty object; only users see Change.
type WriteResult struct {
	Change cli.FileChanged `json:"-"` // without a diff if the texts are longer than maxDiffed
}

type writeParams struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (w *Workspace) write(ctx context.Context, p writeParams) (any, error) {
	switch err := w.mayChange(); {
	case err != nil:
		return nil, err
	case cli.Touches(w.opts.Protected, w.opts.Dirs[0], p.Path):
		return nil, badParams("the file is ductor's own: it is not written here")
	case len(p.Content) > maxFile:
		return nil, errors.New("the file is too large")
	}
	before, _ := w.read(ctx, readParams{Path: p.Path})
	old, _ := before.(ReadResult) // empty if the file does not exist or is not text
	f, err := w.file(p.Path, os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteString(p.Content)
	}
	change := toolcall.Edit{Path: p.Path, Before: old.Content, After: p.Content}
	return WriteResult{w.changeOf(change)}, errors.Join(err, f.Close())
}

// changeOf returns the change that a write made. The old text is empty if the file did not exist or was not text.
func (w *Workspace) changeOf(e toolcall.Edit) cli.FileChanged {
	if len(e.Before)+len(e.After) > maxDiffed {
		return cli.FileChanged{Path: cli.Relative(w.opts.Dirs[0], e.Path), Kind: e.Kind()}
	}
	return e.Change(w.opts.Dirs[0])
}
