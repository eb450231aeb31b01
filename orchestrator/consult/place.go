package consult

import (
	"context"
	"slices"

	"ductor/cli"
	"ductor/orchestrator"
)

// place returns a request with the environment and the directory in which a question is answered. For the question of a
// user, place uses those of the conversation's next turn. For the question of an agent, it uses those of the agent's
// turn: a user may already have chosen another project for the next turn, and the agent must not get access to that
// project.
func (e *Engine) place(ctx context.Context, q orchestrator.ConsultQuestion) (cli.Request, error) {
	if q.For != nil {
		return placeOf(q.For.Request), e.opts.CheckDir(q.For.Request.Dir)
	}
	return e.opts.SideRequest(ctx, q.Conversation)
}

// placeOf returns a request with the environment, the directory and the tool lists of another request, but without its
// permissions.
func placeOf(of cli.Request) cli.Request {
	return cli.Request{
		ChatID: of.ChatID, Lang: of.Lang, Accounts: of.Accounts,
		Sandbox: of.Sandbox, Session: of.Session, Dir: of.Dir, AddDirs: of.AddDirs,
		ToolLists: slices.Clone(of.ToolLists),
	}
}
