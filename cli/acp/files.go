package acp

import (
	"context"
	"encoding/json"
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
	"ductor/cli/rpc"
)

// maxFile is the largest file that is read or written for an agent, in bytes.
const maxFile = 10 << 20

// place finds path in the directories of the session. The caller closes the root. Links are followed by os.Root as
// long as they stay inside.
func (w *workspace) place(path string) (*os.Root, string, error) {
	if !filepath.IsAbs(path) {
		return nil, "", &rpc.Error{Code: rpc.CodeBadParams, Message: "the path must be absolute"}
	}
	for _, dir := range w.dirs {
		for _, begin := range []string{dir, cli.RealPath(dir)} {
			rel, err := filepath.Rel(begin, filepath.Clean(path))
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
	return nil, "", &rpc.Error{Code: rpc.CodeBadParams, Message: "the path is outside of the conversation's directories"}
}

type readParams struct {
	Path  string `json:"path"`
	Line  *int   `json:"line"` // the first, from 1
	Limit *int   `json:"limit"`
}

type readResult struct {
	Content string `json:"content"`
}

func readFile(_ context.Context, w *workspace, raw json.RawMessage) (any, error) {
	p, err := params[readParams](raw)
	if err != nil {
		return nil, err
	}
	root, rel, err := w.place(p.Path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// Without waiting for whoever else has a pipe open.
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fileError(err)
	}
	defer f.Close()
	if err := regular(f); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fileError(err)
	case len(content) > maxFile:
		return nil, errors.New("the file is too large")
	case !utf8.Valid(content):
		return nil, errors.New("the file is no text")
	}
	return readResult{part(string(content), p.Line, p.Limit)}, nil
}

func regular(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return fileError(err)
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is no regular file")
	}
	return nil
}

// part is limit lines of s from a line on.
func part(s string, line, limit *int) string {
	if line == nil && limit == nil {
		return s
	}
	lines := strings.SplitAfter(s, "\n")
	from, to := 0, len(lines)
	if line != nil {
		from = min(max(*line-1, 0), to)
	}
	if limit != nil {
		to = min(from+max(*limit, 0), to)
	}
	return strings.Join(lines[from:to], "")
}

type writeParams struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func writeFile(_ context.Context, w *workspace, raw json.RawMessage) (any, error) {
	p, err := params[writeParams](raw)
	if err != nil {
		return nil, err
	}
	if err := w.mayChange(); err != nil {
		return nil, err
	}
	if cli.Touches(w.process.provider.opts.Protected, w.dirs[0], p.Path) {
		return nil, &rpc.Error{Code: rpc.CodeBadParams, Message: "the file is ductor's own: it is not written here"}
	}
	if len(p.Content) > maxFile {
		return nil, errors.New("the file is too large")
	}
	root, rel, err := w.place(p.Path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
		return nil, fileError(err)
	}
	f, err := root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, fileError(err)
	}
	err = regular(f)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteString(p.Content)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fileError(err)
	}
	return none{}, nil
}

// fileError says what went wrong without more of the path than the agent gave.
func fileError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &rpc.Error{Code: codeNoFile, Message: "there is no such file"}
	}
	return err
}
