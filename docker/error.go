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

// Error says why something cannot be had in a container, and what helps. It is found in every error of a Launcher
// that is the sandbox's fault, also as a *cli.Failure of the kind cli.NoSandbox, so that the code that shows it to users
// need not know this package.
type Error struct {
	Reason string // in words for users, without a full stop
	Fix    string // what helps, likewise; may be empty
	Err    error  // what the engine said; may be nil. It is not in the chain: a missing socket is no missing program.
	gone   bool   // there is no container, or nothing runs in it
}

// Error is the reason and the fix.
func (e *Error) Error() string {
	if e.Fix == "" {
		return e.Reason
	}
	return e.Reason + "; " + e.Fix
}

// Is says whether target is runner.ErrNoEnvironment and nothing can run in the container.
func (e *Error) Is(target error) bool { return e.gone && target == runner.ErrNoEnvironment }

// As gives a *cli.Failure.
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

// failed puts an error of the engine's into words. what is what was tried: "make a container".
func (e *Engine) failed(what string, err error) error {
	var own *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return &Error{Reason: fmt.Sprintf("Docker at %s did not %s in time", e.host, what), Fix: "look whether it works: `docker info`", Err: err}
	case errors.Is(err, syscall.EACCES):
		return &Error{Reason: fmt.Sprintf("ductor may not use Docker at %s", e.host), Fix: "add its user to the group docker, and start ductor anew", Err: err}
	case unreachable(err):
		return &Error{Reason: fmt.Sprintf("Docker at %s cannot be reached (%s)", e.host, lastCause(err)), Fix: "start it, or correct where it is in the configuration", Err: err}
	}
	if isFull(err) {
		return e.full(err)
	}
	return &Error{Reason: fmt.Sprintf("Docker at %s could not %s: %s", e.host, what, cli.Shorten(lastLine(err.Error()), 200)), Err: err}
}

// isFull says whether a disk is full. What the engine says of it is text.
func isFull(err error) bool {
	return says(err, syscall.ENOSPC) || says(err, syscall.EDQUOT)
}

// says says whether an error's text holds another's: what comes out of a container has lost its type.
func says(err, other error) bool {
	return err != nil && strings.Contains(err.Error(), other.Error())
}

func (e *Engine) full(err error) *Error {
	return &Error{Reason: fmt.Sprintf("the disk of the sandbox is full (Docker at %s)", e.host), Fix: "make room there", Err: err}
}

func crowded(err error) *Error {
	return &Error{Reason: "there is no room for another process in the sandbox's container", Fix: "raise the sandbox's `pids`, or end what runs there", Err: err}
}

// unreachable says whether an error is the connection's, and not an answer.
func unreachable(err error) bool {
	var network net.Error
	return client.IsErrConnectionFailed(err) || errors.As(err, &network) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, errSSH) || cerrdefs.IsUnavailable(err)
}

// isAway says whether an error says of the engine that it cannot be reached.
func isAway(err error) bool {
	var own *Error
	return errors.As(err, &own) && unreachable(own.Err)
}

// lastCause is the end of an error's text: what it all came from. The client library hides what the system says.
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
