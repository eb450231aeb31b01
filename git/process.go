package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// maxOutput limits the output of a command in bytes. It suffices for the names of more than 100,000 files.
const maxOutput = 64 << 20

// ErrTooMuch means that the output of Git exceeds a limit.
var ErrTooMuch = errors.New("git printed too much")

type command struct {
	program string // empty means git
	args    []string
	dir     string
	env     []string
	input   string
	timeout time.Duration
	limit   int64  // greatest size of the output in bytes; execute returns ErrTooMuch for more
	tree    string // working tree on this host for which endIfBlocked applies; may be empty
}

// execute runs a command to its end and returns its output. If the exit code is not zero, it returns an *ExitError.
func execute(ctx context.Context, l cli.Launcher, c command) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if c.program == "" {
		c.program = "git"
	}
	if c.tree != "" {
		limited, stop := endIfBlocked(ctx, l, c.tree)
		defer stop()
		ctx = limited
	}
	p, err := l.Start(ctx, cli.Command{Path: c.program, Args: c.args, Dir: c.dir, Env: c.env,
		For: cli.Purpose{Agent: "git"}})
	if err != nil {
		return "", fmt.Errorf("start %s: %w", c.program, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = p.Stop(context.WithoutCancel(ctx), 0) })
	defer stop()
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		// Ignore the error: if Git does not get the whole input, its exit code is not zero.
		_, _ = io.Copy(p.Stdin(), strings.NewReader(c.input))
		_ = p.Stdin().Close()
	}()
	out, err := io.ReadAll(io.LimitReader(p.Stdout(), c.limit+1))
	if int64(len(out)) > c.limit {
		err = ErrTooMuch
	}
	if err == nil {
		select {
		case <-p.Done():
		case <-ctx.Done():
		}
	}
	if stopErr := p.Stop(context.WithoutCancel(ctx), 0); err == nil {
		err = stopErr
	}
	<-fed
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s %s: %w", c.program, c.args[0], context.Cause(ctx))
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", c.program, c.args[0], err)
	}
	if code := p.Exit().Code; code != 0 {
		err := &ExitError{What: c.program + " " + c.args[0], Code: code, Stderr: p.StderrTail()}
		if m := foreignPattern().FindStringSubmatch(err.Stderr); m != nil {
			return "", fmt.Errorf("%w: %w", &orchestrator.ForeignRepository{Dir: m[1]}, err)
		}
		return "", err
	}
	return string(out), nil
}

// foreignPattern matches Git's error that another user owns the repository. The first group of the pattern is the
// directory of the repository.
var foreignPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`dubious ownership in repository at '(.*)'`) })

// ExitError is the error of a command that exited with a non-zero code.
type ExitError struct {
	What   string
	Code   int
	Stderr string // end of standard error
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.What, cli.ExitText(lang.Printer{}, e.Code), cli.Shorten(e.Stderr, 300))
}
