package claude

import (
	"context"

	"ductor/cli"
	"ductor/cli/turn"
)

// once returns the functions with which package turn runs a turn in a separate process.
func (p *Provider) once() *turn.OneShot {
	return &turn.OneShot{
		Agent: agent, Options: p.opts.ProviderOptions, Input: onceInput, Read: read,
		Start: func(ctx context.Context, req cli.Request) (cli.Process, string, error) {
			proc, err := p.launch(ctx, formatOf(req), cli.OneShot, req)
			return proc, "", err
		},
	}
}

func formatOf(req cli.Request) format {
	if len(req.Images) > 0 || freshPrompts(req) != nil || hasMention(req) {
		return formatBlocks
	}
	return formatStream
}

// onceInput returns the complete input of a process for one turn.
func onceInput(req cli.Request, left *cli.LeftRun) ([]byte, error) {
	f := formatOf(req)
	if left != nil {
		f = readSetting(left.Setting).Format
	}
	if failure := req.Unsendable(agent); failure != nil {
		return nil, failure
	}
	if f != formatBlocks {
		return []byte(promptOf(req)), nil
	}
	line, err := userLine(req, "")
	if err != nil {
		return nil, cli.UnreadPicture(agent, err)
	}
	return append(freshPrompts(req), line...), nil
}

// read returns the functions with which package turn reads the output of a turn.
func read(t turn.Once) turn.Reading {
	p := newParser(t.Out, newMemory(), t.Req.Dir)
	p.observer.garbage = t.Stream.Garbage
	return turn.Reading{
		Handle: func(raw []byte) bool { _, over := p.line(raw); return over },
		Result: func(end turn.End) cli.Result { return turnResult(t.Stream, end, p) },
		Said:   func() bool { return p.phase == finished || p.phase == interrupted },
	}
}
