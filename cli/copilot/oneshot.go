package copilot

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"ductor/cli"
	"ductor/cli/turn"
)

// once returns the functions with which package turn runs a turn in a separate process. ductor stores the session's ID
// in cli.Purpose.Setting, where read finds it.
func (p *Provider) once() *turn.OneShot {
	return &turn.OneShot{Agent: Agent, Options: p.opts.ProviderOptions, Input: onceInput, Start: p.start, Read: read}
}

// onceInput returns the complete input of a process for one turn. The system prompts precede the prompt, because
// Copilot has no flag for them.
func onceInput(req cli.Request, _ *cli.LeftRun) ([]byte, error) {
	if req.Task != cli.TaskPrompt {
		return nil, cli.CannotCompact(Agent)
	}
	if f := refused(req); f != nil {
		return nil, f
	}
	return []byte(req.Instructions() + req.Prompt), nil
}

// read returns the functions with which package turn reads the output of a turn.
func read(t turn.Once) turn.Reading {
	p, named := newParser(t.Out, t.Req), false
	p.phase, p.session.AgentSessionID = begun, cli.AgentSessionID(t.Setting)
	return turn.Reading{
		Handle: func(line []byte) bool {
			e, err := decodeEvent(line)
			if err == nil && !named {
				named = true
				p.name()
			}
			if err == nil {
				err = p.event(e)
			}
			if err != nil {
				t.Stream.Garbage(line)
			}
			return p.phase == ended
		},
		Result: func(end turn.End) cli.Result {
			return p.outcome(end, func() cli.Result { return t.Stream.Outcome(end) })
		},
	}
}

// start starts a process for one turn. It also returns the session ID.
func (p *Provider) start(ctx context.Context, req cli.Request) (cli.Process, string, error) {
	id := cmp.Or(string(req.Resume), uuid.NewString())
	args, err := onceArgs(req, cli.AgentSessionID(id))
	if err != nil {
		return nil, "", cli.Failf(cli.Refused, Agent, "%v", err)
	}
	process, err := p.opts.StartOnce(ctx, Agent, req, cli.Command{Args: args, Env: p.environment(req), For: cli.Purpose{Setting: id}})
	return process, id, err
}
