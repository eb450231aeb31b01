package bot_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
)

// A message that waits behind a turn has these buttons, with these effects.
func TestWaitingMessagesByButton(t *testing.T) {
	for _, tc := range []struct {
		name   string
		steer  func(string) error // the agent's reaction to a message while it works
		press  string
		answer string
		shown  string // the content that replaces the queue card
		queue  int    // prompts that wait then
	}{
		{"steered", func(string) error { return nil }, "Steer", "The agent has it.", "↪ Handed to the agent", 1},
		{"cannot be steered", nil, "Steer", "runs next", "Queued, next in line.", 2},
		{"perhaps steered", func(string) error { return errors.New("the pipe broke") }, "Steer", "I don't know", "I don't know whether this reached", 1},
		{"interrupts", nil, "Interrupt", "runs next", "⏹ Aborted.", 1},
		{"cancelled", nil, "Cancel", "Cancelled.", "✖ Cancelled", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			agent := agentAsking(bash("a", "make"))
			agent.steer = tc.steer
			withApprovals(t, agent, func(s *approvalRig) {
				s.begin()
				s.say("first")
				s.say("second")
				m := s.card("2 ahead")
				s.wantAnswer(s.press(m, tc.press), tc.answer)
				s.card(tc.shown)
				st, err := s.now.desk.Status(s.Context(), s.conv())
				if err != nil || len(st.Queue) != tc.queue {
					s.Errorf("%d wait, %v", len(st.Queue), err)
				}
				// The button of an old client is too late.
				if tc.name != "cannot be steered" {
					s.wantAnswer(s.tap(s.who, m, s.data(m, "Interrupt")), "Too late")
				}
			})
		})
	}
}

// A command sets the default of a conversation, and explains the effect on the next message.
func TestTheQueueCommand(t *testing.T) {
	agent := agentAsking(bash("a", "make"))
	var got []string
	agent.steer = func(text string) error { got = append(got, text); return nil }
	withApprovals(t, agent, func(s *approvalRig) {
		s.begin()
		s.say("/queue nonsense")
		s.card("There is no such mode")
		s.say("/queue")
		s.wantAnswer(s.press(s.card("What happens to a message"), "steer"), "While the agent works: steer")
		s.say("/status")
		s.card("While the agent works: steer")
		s.say("look here")
		s.settle()
		if !slices.Equal(got, []string{"look here"}) {
			s.Errorf("the agent got %q", got)
		}
		if _, there := s.in.View().Find("Queued"); there {
			s.Error("it waits all the same")
		}
	})
}

// Editing the running message offers to start over. The newest text counts, once.
func TestEditingWhatRunsOffersToStartOver(t *testing.T) {
	withApprovals(t, agentAsking(bash("a", "make")), func(s *approvalRig) {
		sent := s.begin()
		s.card("May Claude")
		s.who.Edit(sent, "go left")
		s.card("start over")
		s.who.Edit(sent, "go right")
		s.settle()
		if n := strings.Count(s.in.Transcript(), "start over with"); n != 1 {
			s.Errorf("it is offered %d times", n)
		}
		s.restart()
		m := s.card("start over")
		over := s.data(m, "Start over")
		s.wantAnswer(s.press(m, "Start over"), "Starting over.")
		s.wantShown("Started over", "⏹ Aborted.")
		s.wantAnswer(s.tap(s.who, m, over), "started over already")
		turns, err := s.db.History(s.Context(), s.session(), 10)
		if err != nil {
			s.Fatal(err)
		}
		var prompts []string
		for _, t := range turns {
			prompts = append(prompts, t.Prompt.Text+" "+string(t.State))
		}
		st, err := s.now.desk.Status(s.Context(), s.conv())
		if err != nil || st.Running == nil || st.Running.Title != "go right" || len(st.Queue) != 0 {
			s.Errorf("runs %+v, %d wait, %v", st.Running, len(st.Queue), err)
		}
		if !slices.Equal(prompts, []string{"go " + string(orchestrator.TurnAborted)}) {
			s.Errorf("ended %q", prompts)
		}
	})
}

// waitingPrompts returns the texts of the prompts that wait.
func (s *approvalRig) waitingPrompts() (texts []string) {
	s.Helper()
	s.settle()
	open, err := s.db.OpenTurns(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for _, t := range open {
		if t.State == orchestrator.TurnQueued {
			texts = append(texts, t.Prompt.Text)
		}
	}
	return texts
}

// An edit that makes a command of a prompt runs no command. The user reads so, and can cancel a prompt that waits.
func TestAnEditMakesACommandOfAPrompt(t *testing.T) {
	const notice = "This message still runs with its old text."
	for _, command := range []string{"/model opus", "/new look", "/status", "/abrot"} {
		withApprovals(t, agentAsking(bash("a", "make")), func(s *approvalRig) {
			running := s.begin()
			waiting := s.say("second")
			s.card("May Claude")
			s.who.Edit(waiting, command)
			m := s.card(notice)
			if m.ReplyTo != waiting.ID {
				s.Errorf("%s: the notice replies to %d", command, m.ReplyTo)
			}
			if got := s.waitingPrompts(); !slices.Equal(got, []string{"second"}) {
				s.Errorf("%s: %q wait", command, got)
			}
			s.wantAnswer(s.press(m, "Cancel"), "Cancelled.")
			if got := s.waitingPrompts(); len(got) > 0 {
				s.Errorf("%s: %q wait after Cancel", command, got)
			}
			s.who.Edit(running, command)
			s.settle()
			if n := strings.Count(s.in.Transcript(), notice); n != 2 {
				s.Errorf("%s: %d notices after an edit of the prompt that runs:\n%s", command, n, s.in.Transcript())
			}
		})
	}
}

// An edit that adds the name of an agent to a prompt is refused. An edit with the name that the prompt already had
// changes its text.
func TestAnEditNamesAnAgent(t *testing.T) {
	const notice = "An edit can't change the agent or the model"
	agent := agentAsking(bash("a", "make"))
	withGateway(t, agent, listedAgent{agent}, func(s *approvalRig) {
		running, plain, named := s.begin(), s.say("second"), s.say("@claude third")
		s.settle()
		s.who.Edit(plain, "@claude look")
		if m := s.card(notice); m.ReplyTo != plain.ID || !m.HasButton("✖ Cancel") {
			s.Errorf("a reply to %d with the buttons %v", m.ReplyTo, m.Keyboard)
		}
		s.who.Edit(named, "@claude better")
		if got := s.waitingPrompts(); !slices.Equal(got, []string{"second", "better"}) {
			s.Errorf("%q wait", got)
		}
		s.who.Edit(running, "@claude look")
		s.settle()
		if n := strings.Count(s.in.Transcript(), notice); n != 2 {
			s.Errorf("%d notices:\n%s", n, s.in.Transcript())
		}
	})
}

// listedAgent is an askingAgent that users can name.
type listedAgent struct{ *askingAgent }

func (listedAgent) Menu(context.Context, cli.Sandbox, cli.Accounts, ...cli.Agent) []cli.MenuEntry {
	return []cli.MenuEntry{{Agent: "claude", Auth: cli.Auth{State: cli.Authenticated}}}
}

// An edit that makes an abort of a prompt aborts, whether this prompt waits or runs.
func TestAnEditMakesAnAbortOfAPrompt(t *testing.T) {
	for i := range 2 {
		withApprovals(t, agentAsking(bash("a", "make")), func(s *approvalRig) {
			sent := []telegram.Message{s.begin(), s.say("second")}
			s.card("next in line")
			s.who.Edit(sent[i], "/abort")
			s.card("⏹ Aborted.")
			s.settle()
			if got := s.waitingPrompts(); len(got) > 0 {
				s.Errorf("%q wait", got)
			}
		})
	}
}

func TestAnOfferToStartOverIsTurnedDown(t *testing.T) {
	withApprovals(t, agentAsking(bash("a", "make")), func(s *approvalRig) {
		sent := s.begin()
		s.card("May Claude")
		s.who.Edit(sent, "go left")
		m := s.card("start over")
		s.press(m, "Keep it running")
		s.wantShown("It keeps running with the old text.")
		s.who.Edit(sent, "go right")
		later := s.card("start over")
		over := s.data(later, "Start over") // a phone may still show the button
		s.press(s.card("May Claude"), "Allow once")
		time.Sleep(time.Minute)
		s.wantAnswer(s.tap(s.who, later, over), "Too late")
		s.wantTold("a true []")
	})
}

// Rules are listed and revoked by a button. Requests that they allowed must be approved again.
func TestRulesAreRevoked(t *testing.T) {
	withApprovals(t, agentAsking(bash("a", gitStatus)), func(s *approvalRig) {
		s.begin()
		s.press(s.card("May Claude"), "Allow pattern…")
		s.press(s.card("May Claude"), "Allow with this rule")
		s.say("/permissions")
		m := s.card("1 rule also allows")
		s.press(m, "Rules (1)")
		m = s.card("because a user allowed it")
		if !strings.Contains(m.Text, "1. git status * · Claude in /, until it is revoked") {
			s.Errorf("listed %q", m.Text)
		}
		old := s.data(m, "🗑 1.")
		s.wantAnswer(s.press(m, "🗑 1."), "Revoked.")
		s.wantShown("Revoked: git status *")
		if rules := s.rules(); len(rules) > 0 {
			s.Errorf("rules %q", rules)
		}
		s.wantAnswer(s.tap(s.who, m, old), "expired")
		log, err := s.now.desk.Audit(s.Context(), time.Time{}, 1)
		if err != nil || len(log) != 1 || log[0].What != orchestrator.AuditRevoked || log[0].By != 7 {
			s.Errorf("audited %+v, %v", log, err)
		}
	})
}

// The offer to start over with an edited prompt is withdrawn when the turn ends, also after a restart.
func TestAnOfferToStartOverEndsWithItsTurn(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		withApprovals(t, agentAsking(bash("a", gitStatus)), func(s *approvalRig) {
			sent := s.begin()
			m := s.card("May Claude")
			s.who.Edit(sent, "go elsewhere")
			if offer := s.card("working on the old text"); !offer.HasButton("🔁 Start over") {
				s.Errorf("the offer has the buttons %v", offer.Keyboard)
			}
			if restarts {
				s.restart()
			}
			s.press(m, "Allow once")
			s.wantShown("The work is done.", "It has ended. To run the new text, send it again.")
			if stale, there := s.in.View().Find("working on the old text"); there {
				s.Errorf("the offer stays: %v", stale.Keyboard)
			}
		})
	}
}
