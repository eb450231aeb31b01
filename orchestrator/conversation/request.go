package conversation

import (
	"context"
	"fmt"

	"ductor/cli"
	"ductor/orchestrator"
)

// prepare settles session, agent and model of t and makes the request. A turn that was running keeps what it
// has.
func (e *Engine) prepare(ctx context.Context, c *conversation, t *orchestrator.Turn, left cli.Remains) (cli.Request, error) {
	conv, err := e.opts.Store.Conversation(ctx, t.Prompt.Conversation)
	if err != nil {
		return cli.Request{}, fmt.Errorf("load conversation: %w", err)
	}
	conv = wanting(conv, t.Wants)
	if left != "" {
		return e.prepareLeft(ctx, conv, *t, left)
	}
	session, err := e.sessionFor(ctx, c, conv, *t)
	if err != nil {
		return cli.Request{}, err
	}
	t.Session = session.ID
	if err := e.checkDir(session.Dir); err != nil {
		return cli.Request{}, err
	}
	if t.Sandbox, err = e.sandboxOf(conv.ID, session.Dir, t.Wants.Sandbox); err != nil {
		return cli.Request{}, err
	}
	who, err := e.choice(ctx, conv, t.Sandbox)
	if err != nil {
		return cli.Request{}, err
	}
	if t.Prompt.Rights.OfChat() && e.bypassed(conv) {
		t.Bypass = conv.BypassUntil
	}
	t.Agent, t.Model, t.Started, t.State = who.agent, who.model, e.now(), orchestrator.TurnRunning
	return e.request(ctx, conv, session, *t, who)
}

// prepareLeft is prepare for a turn that the previous process was running. What a run has goes on where it is; what
// never reached an agent runs where it would run today, or not at all.
func (e *Engine) prepareLeft(ctx context.Context, conv orchestrator.Conversation, t orchestrator.Turn, left cli.Remains) (cli.Request, error) {
	session, err := e.opts.Store.Session(ctx, t.Session)
	if err != nil {
		return cli.Request{}, fmt.Errorf("load session: %w", err)
	}
	if left == cli.RemainsNothing {
		if err := e.checkDir(session.Dir); err != nil {
			return cli.Request{}, err
		}
		in, err := e.sandboxOf(conv.ID, session.Dir, t.Wants.Sandbox)
		if err == nil && in != t.Sandbox { // where it would be recorded as running is where the next process looks for it
			err = errMoved
		}
		if err != nil {
			return cli.Request{}, err
		}
	}
	req, err := e.request(ctx, conv, session, t, choice{agent: t.Agent, model: t.Model, effort: conv.Effort})
	req.Began = t.Started
	if !t.Bypass.IsZero() { // until it is told otherwise
		req.Permission = cli.Bypass
	}
	return req, err
}

// request says what the agent is asked. An agent that has no session of its own here is told the history.
func (e *Engine) request(ctx context.Context, conv orchestrator.Conversation, s orchestrator.Session, t orchestrator.Turn, who choice) (cli.Request, error) {
	role := e.opts.Roles[e.roleOf(conv)]
	req := cli.Request{
		Turn: t.ID, Conversation: conv.ID.Key(), ChatID: conv.ID.Chat,
		Model: who.model, Effort: who.effort, ExtraArgs: e.opts.Agents[t.Agent].Args,
		Sandbox: t.Sandbox, Session: string(s.ID), Files: filesOf(t.Prompt),
		Dir: s.Dir, AddDirs: e.addDirs(conv.ID),
		Resume: s.AgentSessions[t.AgentEnv()], Timeout: t.Wants.Timeout,
	}
	e.grant(&req, conv, t.Prompt.Rights)
	var err error
	if req.Project, err = e.approvals.Project(ctx, conv.ID, t, s.Dir); err != nil {
		return cli.Request{}, err
	}
	if role.Replace {
		req.SystemPrompt = role.Prompt
	} else {
		req.AppendPrompt = role.Prompt
	}
	req.Prompt, req.Images = wording(t.Prompt)
	missed, err := e.missed(ctx, s, t.AgentEnv())
	if err != nil {
		return cli.Request{}, err
	}
	req.Prompt = missed + req.Prompt
	return req, nil
}

// filesOf are the files that a prompt names.
func filesOf(p orchestrator.Prompt) []string {
	var files []string
	for _, a := range p.Attachments {
		files = append(files, a.Path)
	}
	return files
}

// wording is the prompt as the agent reads it: pictures go along, other files are named.
func wording(p orchestrator.Prompt) (string, []cli.Image) {
	text := p.Text
	var images []cli.Image
	for _, a := range p.Attachments {
		if a.Image {
			images = append(images, cli.Image{Path: a.Path, MIME: a.MIME})
		}
		text += fmt.Sprintf("\n[Attached file %q (%s): %s]", a.Name, a.MIME, a.Path)
	}
	return text, images
}
