package conversation

import (
	"context"

	"ductor/cli"
	"ductor/orchestrator"
)

// nextPlace returns the session and the environment that the next turn of the conversation would use. It chooses them
// like sessionFor, but creates no session.
func (e *Engine) nextPlace(ctx context.Context, conv orchestrator.Conversation) (orchestrator.Session, cli.Sandbox,
	error) {
	session, ok, err := e.currentSession(ctx, conv.Session)
	if err != nil {
		return orchestrator.Session{}, "", err
	}
	if !ok {
		session = orchestrator.Session{Dir: e.opts.Places.DirOf(conv)}
	}
	in, err := e.opts.Places.Sandbox(conv.ID, session.Dir, "")
	return session, in, err
}

// next loads a conversation, and returns the session and the environment that its next turn would use. If nextPlace
// fails, it still returns the conversation.
func (e *Engine) next(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Conversation,
	orchestrator.Session, cli.Sandbox, error) {
	conv, err := e.load(ctx, id)
	if err != nil {
		return conv, orchestrator.Session{}, "", err
	}
	session, in, err := e.nextPlace(ctx, conv)
	return conv, session, in, err
}

// SideRequest returns a request without a prompt, for questions outside of a conversation's turns. The request has the
// environment and the forbidden tools of the next turn, and no permissions. SideRequest returns a *cli.Failure if no
// agent can run in that environment.
func (e *Engine) SideRequest(ctx context.Context, id orchestrator.ConversationID) (cli.Request, error) {
	conv, session, in, err := e.next(ctx, id)
	if err != nil {
		return cli.Request{}, err
	}
	return cli.Request{
		ChatID: id.Chat, Lang: e.opts.Lang.In(id.Chat), Sandbox: in, Session: string(session.ID), Dir: session.Dir,
		AddDirs:   e.opts.Places.MoreDirs(id, e.log),
		ToolLists: e.toolLists(conv, session.Dir), Accounts: conv.Settings.Accounts,
	}, e.opts.Places.CheckDir(session.Dir)
}

// Directory implements sessions.Engine, projects.Engine and changes.Engine.
func (e *Engine) Directory(path string) (string, error) {
	return e.opts.Places.Resolve(e.opts.Dir, path)
}

// projectOf returns the policy of the project that contains a directory. If several projects contain the directory,
// projectOf chooses the innermost one. If no project contains it, projectOf returns the zero value. It follows only the
// symbolic links in Places.Links: an agent could create any other link to get another policy.
func (e *Engine) projectOf(dir string) orchestrator.ProjectPolicy {
	dir = e.opts.Places.Real(dir)
	var found orchestrator.ProjectPolicy
	for _, p := range e.turns().Projects {
		if cli.Lies(dir, p.Dir) && len(p.Dir) > len(found.Dir) {
			found = p
		}
	}
	return found
}
