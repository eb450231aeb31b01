package turn

import (
	"context"
	"fmt"
	"io"
	"time"

	"ductor/cli"
	"ductor/lang"
)

// maxOutput is more than any answer of a short question, such as --version.
const maxOutput = 1 << 20

// Output runs a short command to its end and returns what it printed, at most a megabyte of it. It is
// killed with everything it started when wait is over. A non-zero exit is an error with the tail of stderr.
func Output(ctx context.Context, l cli.Launcher, cmd cli.Command, wait time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	p, err := l.Start(ctx, cmd)
	if err != nil {
		return "", fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	_ = p.Stdin().Close()
	stop := context.AfterFunc(ctx, func() { _ = p.Stop(context.WithoutCancel(ctx), 0) })
	defer stop()
	out, err := io.ReadAll(io.LimitReader(p.Stdout(), maxOutput))
	select {
	case <-p.Done():
	case <-ctx.Done():
	}
	if stopErr := p.Stop(context.WithoutCancel(ctx), 0); err == nil {
		err = stopErr
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("run %s: %w", cmd.Path, context.Cause(ctx))
	}
	if err != nil {
		return "", fmt.Errorf("run %s: %w", cmd.Path, err)
	}
	if code := p.Exit().Code; code != 0 {
		return "", fmt.Errorf("run %s: %s: %s", cmd.Path, cli.ExitText(lang.Printer{}, code), cli.Shorten(p.StderrTail(), 300))
	}
	return string(out), nil
}
