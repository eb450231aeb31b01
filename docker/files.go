package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"ductor/internal/rooted"
)

// ReadFile returns the content of a file in the container. name is relative to the directory dir. ReadFile reads with
// the rights of the agents' user; see rooted.Read. The error is a *rooted.Error, or an *Error if the container is
// unavailable.
func (l *Launcher) ReadFile(ctx context.Context, dir, name string, limit int64) ([]byte, error) {
	_, content, err := l.files(ctx, nil, limit, rooted.GetAction, dir, name, strconv.FormatInt(limit, 10))
	return content, err
}

// ListFiles lists a directory in the container; see rooted.List. It returns the same errors as ReadFile.
func (l *Launcher) ListFiles(ctx context.Context, dir, name string) ([]rooted.Entry, error) {
	answer, _, err := l.files(ctx, nil, 0, rooted.ListAction, dir, name)
	return answer.Entries, err
}

// WriteFile creates a file in the container; see rooted.Write. It returns the same errors as ReadFile.
func (l *Launcher) WriteFile(ctx context.Context, dir, name string, content []byte) error {
	_, _, err := l.files(ctx, bytes.NewBuffer(content), 0, rooted.PutAction, dir, name, strconv.Itoa(len(content)))
	return err
}

// maxRealBytes limits the size of the answer of RealPaths.
const maxRealBytes = 16 << 20

// RealPaths is rooted.RealPaths for files of the container. It returns the same errors as ReadFile.
func (l *Launcher) RealPaths(ctx context.Context, paths []string) (all []string, err error) {
	in, err := json.Marshal(paths)
	if err != nil {
		return nil, fmt.Errorf("list paths: %w", err)
	}
	_, content, err := l.files(ctx, bytes.NewBuffer(in), maxRealBytes, rooted.RealAction, "/", ".",
		strconv.Itoa(len(in)))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(content, &all); err != nil || len(all) != len(paths) {
		return nil, versionError(fmt.Errorf("%w: %d paths for %d", rooted.ErrAnswer, len(all), len(paths)))
	}
	return all, nil
}

// files runs ductor-runner in the container with an action of package rooted. The action reads input, and prints a
// content of at most limit bytes.
func (l *Launcher) files(ctx context.Context, input *bytes.Buffer, limit int64, args ...string) (answer rooted.Answer,
	content []byte, err error) {
	l.touch()
	if err := l.remote.ensure(ctx); err != nil {
		return answer, nil, fmt.Errorf("access files in a sandbox: %w", err)
	}
	err = l.remote.runProgram(ctx, input, nil, append([]string{rooted.Verb}, args...), func(out io.Reader) (err error) {
		answer, content, err = rooted.ReadAnswer(out, limit)
		if errors.Is(err, rooted.ErrAnswer) {
			return versionError(err)
		}
		return err
	})
	if err == nil && answer.Error != nil {
		err = answer.Error
	}
	return answer, content, err
}
