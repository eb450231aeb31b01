package clitest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"ductor/cli"
)

func playReplaceText(s *stage) {
	req := s.ask(s.script.Say("half of it"), s.script.Hang)
	session := s.open(req)
	p := s.begin(session, req)
	p.awaitText("half of it")
	s.replaced(session, p)
}

func playReplaceTool(s *stage) {
	file := filepath.Join(s.t.TempDir(), "pid")
	req := s.ask(s.script.Run("echo $$ >" + file + "; exec sleep 300"))
	session := s.open(req)
	p := s.begin(session, req)
	tool, err := strconv.Atoi(s.awaitFile(file))
	if err != nil {
		s.t.Fatal(err)
	}
	s.replaced(session, p)
	// If the agent runs in a container, the PID may be that of another process here. So check the command, too.
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", tool))
	if err == nil && string(line) == "sleep\x00300\x00" {
		s.t.Errorf("tool %d runs on", tool)
	}
}

// replaced simulates a user's message that replaces p: it aborts p, and runs the message as the next turn. In live
// mode, the process of p must answer the message.
func (s *stage) replaced(session cli.Session, p *playing) {
	s.t.Helper()
	before := session.Info()
	p.cancel(cli.ErrReplaced)
	over := p.end()
	if !over.result.Aborted {
		s.t.Errorf("ended as %+v, failure %+v, want aborted", over.result, over.result.Err)
	}
	if s.h.Mode == cli.Live && !session.Info().Alive {
		s.t.Fatal("the session is of no further use")
	}
	next := s.ask(s.script.Say("the next answer"))
	next.Resume = over.result.AgentSessionID
	s.answers(s.turn(session, next), "the next answer")
	if after := session.Info(); s.h.Mode == cli.Live && after.PID != before.PID {
		s.t.Errorf("process %d answers, and %d did before", after.PID, before.PID)
	}
}
