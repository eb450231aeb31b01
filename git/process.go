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

// most is how many bytes of output are read of one command: the names of 100,000 files and more.
const most = 64 << 20

// ErrTooMuch says that git printed more than is read.
var ErrTooMuch = errors.New("git printed too much")

// command is one run of a program.
type command struct {
	program string // git, if empty
	args    []string
	dir     string
	env     []string
	input   string
	wait    time.Duration
	limit   int64 // of its output; more is an error
}

// execute runs a command to its end, and returns what it printed.
func execute(ctx context.Context, l cli.Launcher, c command) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.wait)
	defer cancel()
	if c.program == "" {
		c.program = "git"
	}
	p, err := l.Start(ctx, cli.Command{Path: c.program, Args: c.args, Dir: c.dir, Env: c.env, For: cli.Purpose{Agent: "git"}})
	if err != nil {
		return "", fmt.Errorf("start %s: %w", c.program, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = p.Stop(context.WithoutCancel(ctx), 0) })
	defer stop()
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		_, _ = io.Copy(p.Stdin(), strings.NewReader(c.input)) // its exit says what it did not get
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
		if m := foreign().FindStringSubmatch(err.Stderr); m != nil {
			return "", fmt.Errorf("%w: %w", &orchestrator.ForeignRepository{Dir: m[1]}, err)
		}
		return "", err
	}
	return string(out), nil
}

// foreign is how git says that it does not trust the owner of a repository.
var foreign = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`dubious ownership in repository at '(.*)'`) })

// ExitError says that a command did not go well.
type ExitError struct {
	What   string
	Code   int
	Stderr string // the end of it
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.What, cli.ExitText(lang.Printer{}, e.Code), cli.Shorten(e.Stderr, 300))
}
