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

// ReadFile gives the content of a file below a directory of the container, as the agents' user sees it; see rooted.Read. The
// error is a *rooted.Error, or an *Error where there is no container to ask.
func (l *Launcher) ReadFile(ctx context.Context, dir, below string, most int64) ([]byte, error) {
	_, content, err := l.files(ctx, nil, most, rooted.GetAction, dir, below, strconv.FormatInt(most, 10))
	return content, err
}

// ListFiles lists a directory of the container; see rooted.List. Errors are those of ReadFile.
func (l *Launcher) ListFiles(ctx context.Context, dir, below string) ([]rooted.Entry, error) {
	answer, _, err := l.files(ctx, nil, 0, rooted.ListAction, dir, below)
	return answer.Entries, err
}

// WriteFile makes a file in the container; see rooted.Write. Errors are those of ReadFile.
func (l *Launcher) WriteFile(ctx context.Context, dir, below string, content []byte) error {
	_, _, err := l.files(ctx, bytes.NewBuffer(content), 0, rooted.PutAction, dir, below, strconv.Itoa(len(content)))
	return err
}

// mostRealBytes is how long a list of resolved paths may be.
const mostRealBytes = 16 << 20

// RealPaths resolves links as the container has them; see rooted.RealPaths. Errors are those of ReadFile.
func (l *Launcher) RealPaths(ctx context.Context, paths []string) (all []string, err error) {
	in, err := json.Marshal(paths)
	if err != nil {
		return nil, fmt.Errorf("list paths: %w", err)
	}
	_, content, err := l.files(ctx, bytes.NewBuffer(in), mostRealBytes, rooted.RealAction, "/", ".", strconv.Itoa(len(in)))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(content, &all); err != nil || len(all) != len(paths) {
		return nil, asVersion(fmt.Errorf("%w: %d paths for %d", rooted.ErrAnswer, len(all), len(paths)))
	}
	return all, nil
}

// files has ductor-runner in the container do something with files.
func (l *Launcher) files(ctx context.Context, in *bytes.Buffer, most int64, args ...string) (answer rooted.Answer, content []byte, err error) {
	l.touch()
	if err := l.place.make(ctx); err != nil {
		return answer, nil, fmt.Errorf("look for files in a sandbox: %w", err)
	}
	err = l.place.converse(ctx, in, nil, append([]string{rooted.Verb}, args...), func(out io.Reader) (err error) {
		answer, content, err = rooted.ReadAnswer(out, most)
		if errors.Is(err, rooted.ErrAnswer) {
			return asVersion(err)
		}
		return err
	})
	if err == nil && answer.Error != nil {
		err = answer.Error
	}
	return answer, content, err
}
