package turn

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"ductor/cli"
	"ductor/lang"
)

// maxOutput limits the output of a short command, in bytes.
const maxOutput = 1 << 20

// Output runs a short command and returns what it printed, at most maxOutput. If the command takes longer than wait,
// Output kills it with its descendants. If the exit code is not zero, the error contains the end of standard error.
func Output(ctx context.Context, l cli.Launcher, cmd cli.Command, wait time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	p, err := l.Start(ctx, cmd)
	if err != nil {
		return "", fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	var out []byte
	stopErr := runToEnd(ctx, p, func(r io.Reader) { out, err = io.ReadAll(r) })
	switch code := p.Exit().Code; {
	case ctx.Err() != nil:
		return "", fmt.Errorf("run %s: %w", cmd.Path, context.Cause(ctx))
	case cmp.Or(err, stopErr) != nil:
		return "", fmt.Errorf("run %s: %w", cmd.Path, cmp.Or(err, stopErr))
	case code != 0:
		return "", fmt.Errorf("run %s: %s: %s", cmd.Path, cli.ExitText(lang.Printer{}, code),
			cli.Shorten(p.StderrTail(), 300))
	}
	return string(out), nil
}

// runToEnd closes a program's input and passes its output to read. It returns when the program and its descendants have
// ended. When ctx ends, runToEnd kills the program.
func runToEnd(ctx context.Context, p cli.Process, read func(io.Reader)) error {
	_ = p.Stdin().Close()
	stop := context.AfterFunc(ctx, func() { _ = p.Stop(context.WithoutCancel(ctx), 0) })
	defer stop()
	read(io.LimitReader(p.Stdout(), maxOutput))
	select {
	case <-p.Done():
	case <-ctx.Done():
	}
	return p.Stop(context.WithoutCancel(ctx), 0)
}
