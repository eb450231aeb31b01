package gemini

import (
	"context"
	"strings"

	"ductor/cli"
	"ductor/cli/acp"
	"ductor/cli/turn"
)

// once describes to package turn how to run a turn in a separate process.
func (p *Provider) once() *turn.OneShot {
	return &turn.OneShot{Agent: Agent, Options: p.opts.ProviderOptions, Input: onceInput, Start: p.start, Read: read}
}

// onceInput returns the complete input of a process for one turn. It includes the system prompts, because Gemini has no
// flag for them.
func onceInput(req cli.Request, _ *cli.LeftRun) ([]byte, error) {
	switch {
	case req.Task != cli.TaskPrompt:
		return nil, cli.CannotCompact(Agent)
	case !trusted(req):
		return nil, cli.Failf(cli.Refused, Agent, "one-shot it runs here only with the settings of this project, which are not allowed; its live mode runs without them")
	}
	if f := req.Unsendable(Agent); f != nil {
		return nil, f
	}
	return []byte(withoutMentions(acp.AsText(req.Instructions()+req.Prompt, commandMarks))), nil
}

// withoutMentions escapes every "@" in a prompt, so that the model reads "\@". Otherwise, Gemini would add the content of
// each file that the prompt names, such as "@notes.md", in every permission mode and without its policies. Gemini's ACP
// mode does not search text for names.
func withoutMentions(prompt string) string { return strings.ReplaceAll(prompt, "@", `\@`) }

// read returns the rules by which package turn reads the output of a turn.
func read(t turn.Once) turn.Reading {
	if len(t.Req.Images) > 0 {
		t.Out.Pass(t.Req.WithoutPictures(Agent))
	}
	if t.Req.Resume == "" {
		for _, server := range t.Req.Servers {
			if !server.Trusted {
				t.Out.Pass(t.Req.WithoutServer(Agent, server))
			}
		}
	}
	p := newParser(t.Out, t.Req)
	p.garbage = t.Stream.Garbage
	return turn.Reading{
		Handle: p.line,
		Result: func(end turn.End) cli.Result { return p.finish(t, end) },
		Said:   func() bool { return p.done },
	}
}

func (p *Provider) start(ctx context.Context, req cli.Request) (cli.Process, string, error) {
	if req.Resume != "" {
		if err := Guard(p.opts.Launcher)(ctx, p.env(req), req.Resume); err != nil {
			return nil, "", err
		}
	}
	args, err := p.argv(req)
	if err != nil {
		return nil, "", err
	}
	req.Servers = cli.WithoutForeign(req.Servers) // only ductor's own; there is no flag for other servers
	process, err := p.opts.StartOnce(ctx, Agent, req, cli.Command{Args: args, Files: p.ownFiles(args), Env: p.env(req)})
	return process, "", err
}

// finish returns the result of the turn: Gemini's own result, if it printed one.
func (p *parser) finish(t turn.Once, end turn.End) cli.Result {
	r := p.result
	// In a resumed turn, the line with the session's ID may be lost.
	if r.Err == nil && p.session == "" && t.Left == nil {
		r.Err = turn.Unnamed(Agent)
	}
	if !p.done || r.Err != nil && (end == turn.EndCancelled || end == turn.EndStalled) {
		r = t.Stream.Outcome(end)
	}
	if r.Err != nil && r.Err.Kind == cli.Crashed && !p.done {
		if kind := exitKind(r.Err.Code, r.Err.Detail, t.Req.Resume != ""); kind != "" {
			r.Err.Kind = kind
		}
		if r.Err.Kind == cli.NotLoggedIn {
			r.Err.Reason = loginFix
		}
	}
	r.Denials = p.denials
	return r
}

// approvalMode returns the value of --approval-mode for a process for one turn, in which Gemini cannot ask users.
// caveat explains in one sentence which part of the permission mode Gemini does not support. In live mode, package acp
// chooses the mode.
//
// ductor does not use Gemini's own mode auto_edit. That mode also allows edits of hidden files, which can contain
// commands for git or a shell.
func approvalMode(mode cli.PermissionMode) (value, caveat string) {
	switch mode {
	case cli.Bypass:
		return "yolo", ""
	case cli.Auto:
		return "default", "it has no mode of its own judgement, and one-shot it cannot ask: it works as in ask"
	case cli.Plan:
		return "plan", ""
	}
	return "default", "one-shot it cannot ask: what needs permission is denied, " + cli.OnceDenies
}

// argv returns the command line of a process for one turn. It contains no prompt, because the prompt is on standard
// input.
func (p *Provider) argv(req cli.Request) ([]string, error) {
	approval, _ := approvalMode(req.Permission)
	args := []string{"--prompt=", "--output-format=stream-json", "--approval-mode=" + approval}
	if req.Model != "" {
		args = append(args, "--model="+string(req.Model))
	}
	if err := p.writePolicy(req); err != nil {
		return nil, err
	}
	args = append(args, p.liveArgs(req)...)
	if req.Resume != "" {
		args = append(args, "--resume="+string(req.Resume))
	}
	return append(args, req.ExtraArgs...), nil
}
