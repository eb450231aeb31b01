package claude

import (
	"context"

	"ductor/cli"
	"ductor/cli/turn"
)

// Adopt implements cli.Provider. It creates a session for a process that was running when ductor was restarted.
//
// If it is unknown whether Claude has accepted the turn's prompt, the turn sends the prompt again, with the same ID.
// Claude ignores a message whose ID it knows, so it never runs the prompt twice.
func (p *Provider) Adopt(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	switch {
	case left.Mode == cli.OneShot:
		return p.once().Adopt(ctx, left, req)
	case left.Mode != cli.Live:
		return nil, cli.Failf(cli.UnknownFailure, agent, "failure.unresumable", left.Mode)
	case req.Turn == "":
		return p.adoptIdle(ctx, left, req)
	}
	mark, ok := left.Mark(req.Turn)
	if !ok {
		return nil, cli.Failf(cli.UnknownFailure, agent, "failure.nothing-left")
	}
	s, proc, err := p.attach(ctx, left, mark)
	if err != nil {
		return nil, err
	}
	n := readNote(mark.Note)
	s.turnSettings, s.phase = n.start.Before, cutShort
	s.run = s.listen(proc, n.start.memory(), req.Dir, turn.StreamOptions{
		Past: &turn.Past{From: mark.Output, Until: left.OutputEnd}, Held: true,
	})
	s.left = &leftTurn{run: s.run, mark: mark, note: n, inputEnd: left.Input.End}
	return s, nil
}

// attach attaches to a process from before a restart of ductor. The returned session does not read the process's output
// yet.
func (p *Provider) attach(ctx context.Context, left cli.LeftRun, mark cli.Mark) (*live, *process, error) {
	attached, err := p.opts.Launcher.Attach(ctx, left, mark.Output)
	if err != nil {
		return nil, nil, cli.StartFailure(agent, err)
	}
	kept := readSetting(left.Setting)
	proc := &process{Process: attached, mark: mark}
	return &live{provider: p, conversation: left.Conversation, setting: kept, id: readNote(mark.Note).start.Session}, proc, nil
}

// adoptIdle attaches to a process that works in the background while no turn is running. The session handles output
// that Claude prints between turns.
func (p *Provider) adoptIdle(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if !left.Background() {
		return nil, cli.Failf(cli.UnknownFailure, agent, "failure.not-background")
	}
	mark := left.Marks[len(left.Marks)-1]
	s, proc, err := p.attach(ctx, left, mark)
	if err != nil {
		return nil, err
	}
	n := readNote(mark.Note)
	s.turnSettings, s.phase = n.start.During, ready
	s.run = s.listen(proc, n.start.memory(), req.Dir, turn.StreamOptions{Past: &turn.Past{From: mark.Output, Until: left.OutputEnd}})
	return p.caughtUp(ctx, s, left)
}

// caughtUp waits until the session has read the output from before the restart of ductor.
func (p *Provider) caughtUp(ctx context.Context, s *live, left cli.LeftRun) (cli.Session, error) {
	select {
	case <-s.run.stream.CaughtUp():
	case <-s.run.stream.Ended():
		s.run.stream.Detach()
		return nil, cli.Failf(cli.Crashed, agent, "failure.ended")
	case <-ctx.Done():
		s.run.stream.Detach()
		return nil, cli.AsFailure(agent, context.Cause(ctx))
	}
	for _, m := range left.Marks {
		p.opts.Launcher.Settled(m.Turn) // ductor will not resume this turn
	}
	s.run.idle.mu.Lock()
	mode := s.run.mem.mode
	s.run.idle.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if mode != "" {
		s.turnSettings.Permission = mode
	}
	return s, nil
}
