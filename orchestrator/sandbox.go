package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"ductor/cli"
)

// Sandboxes is the policy of where agents run. It makes no request and does not wait. Safe for concurrent use.
type Sandboxes interface {
	// Of is the sandbox of the project that dir is in, or the conversation's own part of it; empty for this host.
	Of(dir string, conv ConversationID) cli.Sandbox
	// Forced is the sandbox for work in dir that is to run in one although its project has none.
	Forced(dir string, conv ConversationID) (cli.Sandbox, error)
}

// The words of Wants.Sandbox. Empty is as the project of the directory has it.
const (
	SandboxDocker = "docker"
	SandboxOff    = "off"
)

var (
	errNotOutside = errors.New("this task is to run outside of a sandbox, and everything in its directory runs in one")
	errNotInside  = errors.New("this task is to run in one, and none is configured")
	errMoved      = errors.New("where agents run was changed in the configuration before it began")
)

// sandboxOf says where a conversation's work in a directory runs. A task may ask for a sandbox where the policy names none, and
// never gets out of one.
func (o *Orchestrator) sandboxOf(conv ConversationID, dir, wanted string) (cli.Sandbox, error) {
	var policy cli.Sandbox
	if o.opts.Sandboxes != nil {
		policy = o.opts.Sandboxes.Of(dir, conv)
	}
	switch {
	case wanted == "" || wanted == SandboxDocker && policy != "" || wanted == SandboxOff && policy == "":
		return policy, nil
	case wanted == SandboxOff:
		return "", errNotOutside
	case wanted != SandboxDocker || o.opts.Sandboxes == nil:
		return "", noSandbox(errNotInside)
	}
	forced, err := o.opts.Sandboxes.Forced(dir, conv)
	if err == nil && forced == "" {
		err = errNotInside
	}
	if err != nil {
		return "", noSandbox(err)
	}
	return forced, nil
}

func noSandbox(err error) *cli.Failure {
	return &cli.Failure{Kind: cli.NoSandbox, Reason: err.Error(), Cause: err}
}

// whereabouts are the session that the conversation's next turn would run in, as sessionFor would give it, and where.
func (o *Orchestrator) whereabouts(ctx context.Context, conv Conversation) (Session, cli.Sandbox, error) {
	session := Session{Dir: o.dirOf(conv)}
	if conv.Session != "" {
		s, err := o.opts.Store.Session(ctx, conv.Session)
		if err != nil && !errors.Is(err, ErrNoSession) {
			return Session{}, "", fmt.Errorf("load session: %w", err)
		}
		if err == nil && !o.expired(s) {
			session = s
		}
	}
	in, err := o.sandboxOf(conv.ID, session.Dir, "")
	return session, in, err
}
