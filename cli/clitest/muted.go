package clitest

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	"ductor/cli"
)

func playAdoptUnsent(s *stage) {
	first, g := s.ductor().wrapLauncher(func(l cli.Launcher) cli.Launcher { return muted{l} }), s.gate()
	g.pass(s)
	req := s.ask("about the windmill", s.script.Run(g.command()), s.script.Say("Done."))
	session := first.open(req)
	p := s.begin(session, req)
	d := time.Now().Add(s.h.Patience)
	for marked := false; !marked; time.Sleep(look) {
		marked = s.marked(req.Turn)
		if time.Now().After(d) {
			s.t.Fatal("no run ever got the mark of the turn")
		}
	}
	first.leave(session, p)
	g.ran(s, 0)

	second := s.ductor()
	session = second.adopt(req)
	over := s.turn(session, req)
	if over.result.Err != nil || !strings.HasSuffix(over.result.Text, "Done.") {
		s.t.Errorf("answered %s, %+v", shown(over.result.Text), over.result.Err)
	}
	s.caughtUp(over)
	g.ran(s, 1)
	s.askedOnce(second, session, over.result.AgentSessionID)
}

// marked reports whether the start of a turn was stored.
func (s *stage) marked(turn cli.TurnID) bool {
	raw, err := os.ReadFile(startsIn(s.runs).path)
	return err == nil && strings.Contains(string(raw), string(turn))
}

// muted is a launcher that drops the input of turns. It simulates that ductor was killed after it had stored the start
// of a turn, but before it sent the prompt.
type muted struct{ cli.Launcher }

func (m muted) Start(ctx context.Context, cmd cli.Command) (cli.Process, error) {
	p, err := m.Launcher.Start(ctx, cmd)
	if err != nil {
		return nil, err
	}
	return &mutedProcess{Process: p, in: mutedInput{WriteCloser: p.Stdin(), begun: make(chan struct{}),
		forTurn: cmd.Turn != ""}}, nil
}

type mutedProcess struct {
	cli.Process
	in mutedInput
}

func (p *mutedProcess) Stdin() io.WriteCloser { return &p.in }

func (p *mutedProcess) Begin(ctx context.Context, m cli.Mark) error {
	close(p.in.begun)
	return p.Process.Begin(ctx, m)
}

type mutedInput struct {
	io.WriteCloser
	begun   chan struct{} // closed by Begin
	forTurn bool          // set for a process that serves a single turn; Begin is not called for such a process
}

func (i *mutedInput) muted() bool {
	select {
	case <-i.begun:
		return true
	default:
		return i.forTurn
	}
}

func (i *mutedInput) Write(p []byte) (int, error) {
	if i.muted() {
		return len(p), nil
	}
	return i.WriteCloser.Write(p)
}

func (i *mutedInput) Close() error {
	if i.muted() {
		return nil
	}
	return i.WriteCloser.Close()
}
