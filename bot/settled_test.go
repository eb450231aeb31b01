package bot_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/sim/telegram"
)

// talker is an agent that asks at the start of its first turn and then talks all the time, so that its answer grows at
// every moment.
type talker struct {
	*askingAgent
	talks time.Duration
}

func (p *talker) Run(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	if err := req.Started(ctx, cli.Start{Run: "run"}); err != nil {
		return cli.StartResult(ctx, agent, err)
	}
	p.mu.Lock()
	p.given = append(p.given, req.Prompt)
	first := len(p.given) == 1
	p.mu.Unlock()
	emit(cli.SessionStarted{AgentSessionID: "native"})
	if first {
		for _, ev := range p.asks {
			p.mu.Lock()
			p.waits[idOf(ev)] = make(chan cli.Decision, 1)
			p.mu.Unlock()
			emit(clitest.WithEffect(ev, req.Dir))
		}
	}
	var said strings.Builder
	for end := time.Now().Add(p.talks); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(250 * time.Millisecond) {
		emit(cli.TextDelta{Text: "word "})
		said.WriteString("word ")
	}
	if ctx.Err() != nil {
		return cli.Cut(ctx, agent)
	}
	r := cli.Result{Text: said.String()}
	emit(r)
	return r
}

// soon is how long a button that no longer works may stay, with a budget of one call a second.
const soon = 3 * time.Second

// awaitSettled waits until a message has no buttons, or is gone.
func (s *approvalRig) awaitSettled(what string, id telegram.MessageID) {
	s.Helper()
	began := time.Now()
	for ; time.Since(began) <= soon; time.Sleep(50 * time.Millisecond) {
		synctest.Wait()
		if m, there := s.message(id); !there || len(m.Keyboard) == 0 {
			return
		}
	}
	s.Errorf("%s has its buttons %s later", what, soon)
}

func (s *approvalRig) message(id telegram.MessageID) (telegram.Message, bool) {
	for _, m := range s.in.View().Messages {
		if m.ID == id {
			return m, true
		}
	}
	return telegram.Message{}, false
}

// A finished approval loses its buttons at once, while an answer grows and uses the whole budget. A single edit, which
// Telegram does not reject, makes the approval one line.
func TestWhatIsSettledLosesItsButtonsWhileAnAnswerGrows(t *testing.T) {
	question := cli.Question{Text: "Which color?", Options: []cli.Option{{Label: "Red"}, {Label: "Blue"}}}
	agent := agentAsking(bash("a", "make a"), bash("b", "make b"), bash("c", "make c"), bash("d", "make d"), cli.QuestionAsked{ID: "q", Questions: []cli.Question{question}})
	talker := &talker{agent, 2 * time.Minute}
	withTalker(t, talker, func(s *approvalRig) {
		s.begin()
		s.settle()
		s.say("and then this")
		time.Sleep(time.Minute) // the burst is spent
		queued, _ := s.in.View().Find("Queued, next in line.")
		for _, c := range []struct{ part, button, shown string }{
			{"make a", "Allow once", "✅ Allowed. make a"},
			{"make b", "Deny", "⛔ Denied. make b"},
			{"make c", "Allow once", "✅ Allowed. make c"},
			{"Which color?", "Blue", "✅ Answered. Which color? → Blue"},
			{"make d", "Deny", "⛔ Denied. make d"},
		} {
			m, _ := s.in.View().Find(c.part)
			s.who.TapData(m, s.data(m, c.button))
			s.who.TapData(m, s.data(m, c.button)) // twice, as users do
			s.awaitSettled(c.part, m.ID)
			now, _ := s.message(m.ID)
			if now.Text != c.shown {
				s.Errorf("the chat shows %q, want %q", now.Text, c.shown)
			}
		}
		for len(talker.prompts()) < 2 {
			time.Sleep(50 * time.Millisecond)
		}
		s.awaitSettled("the prompt that ran", queued.ID)
		s.settle()
		s.wantEditedOnce()
	})
}

// The last answer to a question is decided before the chat shows it. So no message has both the answer and a button
// that sends it.
func TestTheLastAnswerIsNotShownAsADraft(t *testing.T) {
	color := cli.Question{Text: "Which color?", Options: []cli.Option{{Label: "Red"}, {Label: "Blue"}}}
	many := cli.Question{Text: "Which days?", Multi: true, Free: true, Options: []cli.Option{{Label: "Mon"}, {Label: "Tue"}}}
	free := cli.Question{Text: "Why?", Free: true}
	for _, c := range []struct {
		name     string
		asked    []cli.Question
		steps    []string
		versions int // of the message: as sent, after each step but the last, and decided
	}{
		{"an option", []cli.Question{color}, []string{"Blue"}, 2},
		{"a reply that names an option", []cli.Question{color}, []string{">red"}, 2},
		{"some options", []cli.Question{many}, []string{"Mon", "Send"}, 3},
		{"own words", []cli.Question{free}, []string{">because"}, 2},
		{"own words that a button asked for", []cli.Question{many}, []string{"Own words…", "<Sunday"}, 3},
		{"several questions", []cli.Question{color, free}, []string{"Red", ">so"}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			withApprovals(t, agentAsking(cli.QuestionAsked{ID: "q", Questions: c.asked}), func(s *approvalRig) {
				s.begin()
				id := s.card("Claude asks").ID
				for _, step := range c.steps {
					m, _ := s.message(id)
					s.step(m, step)
					s.settle()
				}
				m, _ := s.message(id)
				if len(m.Versions) != c.versions || !strings.HasPrefix(m.Text, "✅ Answered.") {
					s.Errorf("%d versions, want %d: %+v", len(m.Versions), c.versions, m.Versions)
				}
			})
		})
	}
}

// After a restart an approval's message is edited only if its content is outdated.
func TestARestartEditsNoApprovalThatDidNotChange(t *testing.T) {
	withApprovals(t, agentAsking(bash("a", "make a"), bash("b", "make b")), func(s *approvalRig) {
		s.begin()
		first, second := s.card("make a"), s.card("make b")
		s.press(second, "Deny with reason…")
		s.restart()
		s.restart()
		for _, c := range s.srv.Calls(telegram.Methods("editMessageText")) {
			if strings.Contains(c.Params["text"], "make a") {
				s.Errorf("what did not change is edited: %s", c.Description)
			}
		}
		s.press(first, "Allow once")
		s.wantShown("✅ Allowed. make a")
		second, _ = s.message(second.ID)
		s.press(second, "Deny without a reason")
		s.wantShown("⛔ Denied. make b")
	})
}

// wantEditedOnce checks that each card of an approval was edited once, and that Telegram rejected no edit.
func (s *approvalRig) wantEditedOnce() {
	s.Helper()
	for _, m := range s.in.History() {
		if first := m.Versions[0]; len(first.Keyboard) > 0 && strings.Contains(first.Keyboard[0][0].Data, "a:") && len(m.Versions) != 2 {
			s.Errorf("%q was edited %d times", first.Text, len(m.Versions)-1)
		}
	}
	for _, c := range s.srv.Calls(telegram.Failed) {
		if strings.Contains(c.Description, "not modified") {
			s.Errorf("an edit changes nothing: %s", c.Params["text"])
		}
	}
}

// withTalker is withApprovals with an agent that talks.
func withTalker(t *testing.T, agent *talker, test func(s *approvalRig)) {
	t.Helper()
	withGateway(t, agent.askingAgent, agent, test)
}
