package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"ductor/cli"
	"ductor/internal/runner"
)

// Error explains why a container cannot do something, and how to fix that. A Launcher returns it, possibly wrapped, for
// every error that the sandbox causes. errors.As can convert it to a *cli.Failure of kind cli.NoSandbox, so callers
// need not import this package.
type Error struct {
	Reason string // reason for users, without a full stop
	Fix    string // how to fix the problem, for users, without a full stop; may be empty
	// Err is the engine's error, or nil. Error does not unwrap to it: if the engine's socket is missing, Err is
	// fs.ErrNotExist, and callers would conclude that a program is missing.
	Err  error
	gone bool // the container does not exist, or no program can run in it any more
}

// Error returns the reason and the fix.
func (e *Error) Error() string {
	if e.Fix == "" {
		return e.Reason
	}
	return e.Reason + "; " + e.Fix
}

// Is reports whether target is runner.ErrNoEnvironment and e means that no program can run in the container any more.
func (e *Error) Is(target error) bool { return e.gone && target == runner.ErrNoEnvironment }

// As implements errors.As for a *cli.Failure.
func (e *Error) As(target any) bool {
	f, ok := target.(**cli.Failure)
	if ok {
		*f = &cli.Failure{Kind: cli.NoSandbox, Reason: e.Error(), Detail: detail(e.Err)}
	}
	return ok
}

func detail(err error) string {
	if err == nil {
		return ""
	}
	return cli.Shorten(err.Error(), 2<<10)
}

// describe converts an error of the engine to an *Error. operation names the operation that failed, such as "make a
// container".
func (e *Engine) describe(operation string, err error) error {
	var own *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, os.ErrDeadlineExceeded):
		return &Error{Reason: fmt.Sprintf("Docker at %s did not %s in time", e.host, operation),
			Fix: "check that it works: `docker info`", Err: err}
	case errors.Is(err, syscall.EACCES):
		return &Error{Reason: fmt.Sprintf("ductor may not use Docker at %s", e.host),
			Fix: "add its user to the group docker, and restart ductor", Err: err}
	case isConnectionError(err):
		return &Error{Reason: fmt.Sprintf("Docker at %s cannot be reached (%s)", e.host, lastCause(err)),
			Fix: "start it, or fix its address in the configuration", Err: err}
	}
	if isFull(err) {
		return e.diskFullError(err)
	}
	return &Error{Reason: fmt.Sprintf("Docker at %s could not %s: %s", e.host, operation,
		cli.Shorten(lastLine(err.Error()), 200)), Err: err}
}

// isFull reports whether err means that a disk is full. The engine sends no error codes, so isFull compares texts.
func isFull(err error) bool {
	return containsText(err, syscall.ENOSPC) || containsText(err, syscall.EDQUOT)
}

// containsText reports whether the text of err contains that of other. Errors from inside a container arrive only as
// text.
func containsText(err, other error) bool {
	return err != nil && strings.Contains(err.Error(), other.Error())
}

func (e *Engine) diskFullError(err error) *Error {
	return &Error{Reason: fmt.Sprintf("the disk of the sandbox is full (Docker at %s)", e.host),
		Fix: "free some space there", Err: err}
}

func noProcessSlot(err error) *Error {
	return &Error{Reason: "there is no room for another process in the sandbox's container",
		Fix: "raise the sandbox's `pids`, or stop something that runs there", Err: err}
}

// isConnectionError reports whether ductor could not exchange a request and an answer with the engine. It returns false
// if the engine answered with an error.
func isConnectionError(err error) bool {
	var network net.Error
	return client.IsErrConnectionFailed(err) || errors.As(err, &network) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, errSSH) || cerrdefs.IsUnavailable(err)
}

// isUnreachable reports whether err means that ductor cannot reach the engine.
func isUnreachable(err error) bool {
	var own *Error
	return errors.As(err, &own) && isConnectionError(own.Err)
}

// lastCause returns the last part of an error's text, which usually is the original cause.
func lastCause(err error) string {
	var network *net.OpError
	if errors.As(err, &network) {
		err = network.Err
	}
	if client.IsErrConnectionFailed(err) && !errors.Is(err, errSSH) && !strings.Contains(err.Error(), errSSH.Error()) {
		return "no engine answers there"
	}
	text := strings.TrimSpace(lastLine(err.Error()))
	if i := strings.Index(text, errSSH.Error()); i >= 0 {
		text = text[i:]
	} else if i := strings.LastIndex(text, ": "); i >= 0 {
		text = text[i+2:]
	}
	return cli.Shorten(strings.TrimRight(text, "."), 160)
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
