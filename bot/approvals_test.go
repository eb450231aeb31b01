package bot_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/sim/telegram"
)

var errUnsupported = errors.ErrUnsupported

const gitStatus = "git status docs"

// Each way through the buttons has a result for the agent and one in the chat.
func TestApprovalsByButton(t *testing.T) {
	for _, tc := range []struct {
		name  string
		press []string // buttons, one after the other; a line that starts with > is a reply, with < a message
		told  string
		shown string
		rules []string
	}{
		{"once", []string{"Allow once"}, "a true []", "✅ Allowed.", nil},
		{"deny", []string{"Deny"}, "a false []", "⛔ Denied.", nil},
		{"for the session", []string{"Allow this session…", "Allow with this rule"}, "a true []", "✅ Allowed, and with it git status docs", []string{"Bash(git status docs)"}},
		{"a pattern", []string{"Allow pattern…", "Allow with this rule"}, "a true []", "✅ Allowed, and with it git status *", []string{"Bash(git status *)"}},
		{"a rule was read and not made", []string{"Allow pattern…", "‹ Back", "Allow once"}, "a true []", "✅ Allowed.", nil},
		{"deny with a reason", []string{"Deny with reason…", ">not today"}, "a false not today[]", "⛔ Denied: not today", nil},
		{"as the next message", []string{"Deny with reason…", "<not today"}, "a false not today[]", "⛔ Denied: not today", nil},
		{"no reason after all", []string{"Deny with reason…", "Deny without a reason"}, "a false []", "⛔ Denied.", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			withApprovals(t, agentAsking(bash("a", gitStatus)), func(s *approvalRig) {
				s.begin()
				for _, button := range tc.press {
					s.step(s.card("May Claude run this command?"), button)
				}
				s.wantTold(tc.told)
				s.wantShown(tc.shown, "The work is done.")
				if got := s.rules(); !slices.Equal(got, tc.rules) {
					s.Errorf("rules %q, want %q", got, tc.rules)
				}
				want := 2 // the approval and the answer
				if tc.name == "as the next message" {
					want++ // the button that makes a prompt of the reason
				}
				if n := len(s.in.View().FromBot()); n != want {
					s.Errorf("%d messages, want %d", n, want)
				}
			})
		})
	}
}

// step presses a button of a message, replies to it (>) or sends a message (<).
func (s *approvalRig) step(m telegram.Message, step string) {
	s.Helper()
	if words, is := strings.CutPrefix(step, ">"); is {
		s.say(words, telegram.ReplyTo(m.ID))
	} else if words, is := strings.CutPrefix(step, "<"); is {
		s.say(words)
	} else {
		s.press(m, step)
	}
}

// If an agent's protocol has no place for a reason, the agent gets it as the next prompt. The chat says so before.
func TestAReasonForAnAgentThatTakesNone(t *testing.T) {
	for _, step := range []string{">use make instead", "<use make instead"} {
		deaf := bash("a", gitStatus)
		deaf.Deaf = true
		withApprovals(t, agentAsking(deaf), func(s *approvalRig) {
			s.begin()
			s.press(s.card("May Claude"), "Deny with reason…")
			m := s.card("it gets yours as your next prompt")
			s.step(m, step)
			s.wantTold("a false use make instead[]")
			s.wantShown("⛔ Denied: use make instead")
			want := []string{"go", "[You asked to use Bash: git status docs. That was denied:]\nuse make instead"}
			if got := s.agent.prompts(); !slices.Equal(got, want) {
				s.Errorf("the agent was asked %q, want %q", got, want)
			}
			if entries, err := s.now.desk.Audit(s.Context(), time.Time{}, 1); err != nil || len(entries) != 1 || entries[0].Reason != "use make instead" {
				s.Errorf("the audit says %+v, %v", entries, err)
			}
		})
	}
}

// If a user sends a message while an agent asks, the answer says that the message does not answer the agent, as long as
// that is true. /status mentions it.
func TestAMessageWhileTheAgentAsksIsSaidToWait(t *testing.T) {
	withApprovals(t, agentAsking(bash("a", "make"), bash("b", "make test")), func(s *approvalRig) {
		s.begin()
		first, second := s.card("make\n"), s.card("make test")
		s.say("yes")
		s.card("Queued, next in line.\nThe agent is waiting for your answer")
		s.say("/status")
		s.card("The agent is waiting for the answers to 2 questions above")
		s.press(first, "Allow once")
		s.card("The agent is waiting for your answer to its question")
		s.press(second, "Deny with reason…") // "yes" is not repeated
		s.settle()
		if _, there := s.in.View().Find("Queued, next in line.\nThe agent"); !there {
			s.Error("the hint is gone before the last answer")
		}
		close(s.agent.gone)
		s.settle()
		if m, there := s.in.View().Find("is waiting for your answer to its question"); there {
			s.Errorf("nothing is asked, and %q", m.Text)
		}
	})
}

// A rule is shown, word for word, before it can be made.
func TestTheRuleIsShownBeforeItIsMade(t *testing.T) {
	withApprovals(t, agentAsking(bash("a", gitStatus)), func(s *approvalRig) {
		s.begin()
		m := s.card("May Claude")
		if m.HasButton("Allow with this rule") {
			s.Error("a rule can be made unseen")
		}
		s.press(m, "Allow pattern…")
		m = s.card("May Claude")
		if !strings.Contains(m.Text, "git status *") || m.HasButton("Allow once") {
			s.Errorf("shown %q %v", m.Text, m.Keyboard)
		}
		s.wantTold()
	})
}

func TestAPlanAndItsFullText(t *testing.T) {
	plan := cli.ApprovalAsked{ID: "p", Tool: cli.PlanTool, Detail: "# Plan\n" + strings.Repeat("One more step.\n", 400) + "The end."}
	withApprovals(t, agentAsking(plan), func(s *approvalRig) {
		s.begin()
		m := s.card("begin with this plan?")
		s.press(m, "Full text")
		s.wantAnswer(s.press(m, "Full text"), "in the chat already")
		steps, ends := 0, 0
		for _, f := range s.in.View().FromBot() {
			if f.ID != m.ID {
				steps += strings.Count(f.Text, "One more step.")
				ends += strings.Count(f.Text, "The end.")
			}
		}
		if steps != 400 || ends != 1 {
			s.Errorf("the full text has %d of 400 steps, %d ends", steps, ends)
		}
		s.press(m, "Begin")
		s.wantTold("p true []")
	})
}

// Buttons and replies of questions have these results for the agent.
func TestQuestions(t *testing.T) {
	color := cli.Question{Header: "Color", Text: "Which color?", Options: []cli.Option{{Label: "Red", Description: "warm"}, {Label: "Blue"}}}
	many := cli.Question{Text: "Which days?", Multi: true, Free: true, Options: []cli.Option{{Label: "Mon"}, {Label: "Tue"}, {Label: "Wed"}}}
	free := cli.Question{Text: "Why?", Free: true}
	for _, tc := range []struct {
		name  string
		asked []cli.Question
		steps []string
		told  string
		shown string
	}{
		{"one of several", []cli.Question{color}, []string{"Blue"}, "q true [[Blue]]", "→ Blue"},
		{"by its name", []cli.Question{color}, []string{">red"}, "q true [[Red]]", "→ Red"},
		{"some of several", []cli.Question{many}, []string{"Wed", "Mon", "Tue", "Tue", "Send"}, "q true [[Mon Wed]]", "→ Mon, Wed"},
		{"and in own words", []cli.Question{many}, []string{"Mon", ">and Sunday"}, "q true [[Mon and Sunday]]", "→ Mon, and Sunday"},
		{"own words", []cli.Question{free}, []string{">because"}, "q true [[because]]", "→ because"},
		{"own words as the next message", []cli.Question{many}, []string{"Own words…", "<Sunday"}, "q true [[Sunday]]", "→ Sunday"},
		{"no words after all", []cli.Question{many, free}, []string{"Own words…", "‹ Back", "Mon", "Next", "Own words…", "<so"}, "q true [[Mon] [so]]", "→ so"},
		{"one after the other", []cli.Question{color, many, free}, []string{"Red", "Tue", "Next", ">so"}, "q true [[Red] [Tue] [so]]", "→ so"},
		{"back again", []cli.Question{color, free}, []string{"Red", "‹ Back", "Blue", ">so"}, "q true [[Blue] [so]]", "→ Blue"},
		{"not answered", []cli.Question{color}, []string{"Don't answer"}, "q false []", "✖ Not answered."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			withApprovals(t, agentAsking(cli.QuestionAsked{ID: "q", Questions: tc.asked}), func(s *approvalRig) {
				s.begin()
				for _, step := range tc.steps {
					s.step(s.card("Claude asks"), step)
				}
				s.wantTold(tc.told)
				s.wantShown(tc.shown, "The work is done.")
				if n := len(s.in.View().FromBot()); n != 2 {
					s.Errorf("%d messages, want the question and the answer", n)
				}
			})
		})
	}
}

func TestWordsWhereNoneAreTaken(t *testing.T) {
	q := cli.Question{Text: "Which?", Options: []cli.Option{{Label: "Red"}, {Label: "Blue"}}}
	withApprovals(t, agentAsking(cli.QuestionAsked{ID: "q", Questions: []cli.Question{q}}), func(s *approvalRig) {
		s.begin()
		m := s.card("Claude asks")
		s.say("green", telegram.ReplyTo(m.ID))
		s.card("can't answer this in your own words")
		s.wantTold()
	})
}

// A secret reaches only the agent: the message is deleted and nothing shows it.
func TestASecretIsTakenOutOfTheChat(t *testing.T) {
	questions := []cli.Question{{Text: "Password?", Free: true, Secret: true}, {Text: "User?", Free: true}}
	withApprovals(t, agentAsking(cli.QuestionAsked{ID: "q", Questions: questions}), func(s *approvalRig) {
		s.begin()
		s.say("hunter2", telegram.ReplyTo(s.card("Password?").ID))
		s.card("User?")
		s.say("ann", telegram.ReplyTo(s.card("Claude asks").ID))
		s.wantTold("q true [[hunter2] [ann]]")
		s.say("hunter3", telegram.ReplyTo(s.card("✅ Answered.").ID)) // too late, and still not a prompt
		s.card("Already decided")
		for _, m := range s.in.History() {
			if m.From.Bot && strings.Contains(m.Text, "hunter") || !m.Deleted && strings.Contains(m.Text, "hunter") {
				s.Errorf("the chat shows %q", m.Text)
			}
		}
		if logged := s.log.String(); strings.Contains(logged, "hunter") {
			s.Error("the log shows the secret")
		}
	})
}

// A message that is no reply is a reason only from the user who was asked for it, and only for a while.
func TestReasonsAreThoseThatWereAskedFor(t *testing.T) {
	withApprovals(t, agentAsking(bash("a", gitStatus)), func(s *approvalRig) {
		s.begin()
		m := s.card("May Claude")
		s.say("a prompt")
		s.card("Queued")
		s.press(m, "Deny with reason…")
		time.Sleep(11 * time.Minute)
		s.say("too late without a reply")
		s.press(s.card("May Claude"), "‹ Back")
		s.say("taken back")
		s.say("and as a reply", telegram.ReplyTo(m.ID))
		s.card("Tap a button on the card: a text decides nothing, except after “Deny with reason…”.")
		s.wantTold()
		s.wantQueued(3)
	})
}

// In a private chat, a card that asks for a text also mentions the user's next message, which counts until /new.
func TestCardsMentionTheNextMessage(t *testing.T) {
	question := func(secret bool) cli.Event {
		options := []cli.Option{{Label: "None"}}
		q := cli.Question{Text: "Which word?", Free: true, Secret: secret, Options: options}
		return cli.QuestionAsked{ID: "q", Questions: []cli.Question{q}}
	}
	for _, c := range []struct {
		asked               cli.Event
		button, shown, told string
	}{
		{bash("a", gitStatus), "Deny with reason…", "send your reason as your next message, before ", "a false no[]"},
		{question(false), "Own words…", ", or send the answer as your next message, before ", "q true [[no]]"},
		{question(true), "Own words…", " with it, or send it as your next message, before ", "q true [[no]]"},
	} {
		withApprovals(t, agentAsking(c.asked), func(s *approvalRig) {
			s.begin()
			s.press(s.card("Claude"), c.button)
			m := s.card(c.shown)
			if !strings.Contains(m.Text, "After /new, only a reply counts.") {
				s.Errorf("the card says %q", m.Text)
			}
			s.say("/new")
			s.card("New session")
			s.say("a prompt")
			s.settle()
			s.wantTold()
			s.say("no", telegram.ReplyTo(m.ID))
			s.wantTold(c.told)
		})
	}
}

// A reply to a card that asks for a reason is the reason, at any time.
func TestALateReplyIsTheReason(t *testing.T) {
	withApprovals(t, agentAsking(bash("a", gitStatus)), func(s *approvalRig) {
		s.begin()
		m := s.card("May Claude")
		s.press(m, "Deny with reason…")
		time.Sleep(11 * time.Minute)
		s.say("too dear", telegram.ReplyTo(m.ID))
		s.card("⛔ Denied: too dear")
		s.wantTold("a false too dear[]")
		s.wantQueued(0)
	})
}

func (s *approvalRig) wantQueued(want int) {
	s.Helper()
	s.settle()
	if st, err := s.now.desk.Status(s.Context(), s.conv()); err != nil || len(st.Queue) != want {
		s.Errorf("%d prompts wait, want %d, %v", len(st.Queue), want, err)
	}
}

// A reply to the card of an open request decides nothing and is no prompt, also after a restart. The bot says how to
// decide. A reply to the card of a closed request is a prompt.
func TestAReplyToACardThatAsksForNoText(t *testing.T) {
	plan := cli.ApprovalAsked{ID: "a", Tool: cli.PlanTool, Detail: "One step."}
	project := cli.ApprovalAsked{ID: "a", Tool: cli.ProjectTool, Title: "/p", Detail: ".env: PATH"}
	for _, tc := range []struct {
		asked       cli.ApprovalAsked
		card, tells string
	}{
		{bash("a", gitStatus), "May Claude", "a text decides nothing, except after “Deny with reason…”."},
		{plan, "begin with this plan", "a text decides nothing, except after “Keep planning, with a reason…”."},
		{project, "settings of this project", "a text decides nothing."},
	} {
		withApprovals(t, agentAsking(tc.asked), func(s *approvalRig) {
			s.begin()
			m := s.card(tc.card)
			for _, text := range []string{"yes", "no"} {
				said := s.say(text, telegram.ReplyTo(m.ID))
				if answer := s.card(tc.tells); answer.ReplyTo != said.ID {
					s.Errorf("%q answers to %d, want %d", answer.Text, answer.ReplyTo, said.ID)
				} else {
					s.who.Delete(answer)
				}
				s.restart()
			}
			s.wantTold()
			s.wantQueued(0)
			close(s.agent.gone)
			s.wantShown("No longer needed")
			s.say("and now a prompt", telegram.ReplyTo(m.ID))
			s.settle()
			if got := s.agent.prompts(); len(got) != 2 || !strings.Contains(got[1], "and now a prompt") {
				s.Errorf("the agent was asked %q", got)
			}
		})
	}
}

// One message is the reason. What follows it is a prompt, even if it replies to the request.
func TestAReplyBehindTheReasonIsAPrompt(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		asks := bash("a", gitStatus)
		asks.Deaf = deaf
		withApprovals(t, agentAsking(asks), func(s *approvalRig) {
			s.begin()
			m := s.card("May Claude")
			s.press(m, "Deny with reason…")
			s.say("not today")
			s.say("write a test first", telegram.ReplyTo(m.ID))
			s.settle()
			if m, there := s.in.View().Find("Already decided"); there {
				s.Errorf("the second message was answered %q", m.Text)
			}
			s.wantTold("a false not today[]")
			if got := s.agent.prompts(); !strings.Contains(got[len(got)-1], "write a test first") {
				s.Errorf("the agent was asked %q", got)
			}
		})
	}
}

// In a group the card replies to the prompt and says who decided. Others who may decide can.
func TestApprovalsInAGroup(t *testing.T) {
	withApprovals(t, agentAsking(bash("a", "make"), bash("b", "make test")), func(s *approvalRig) {
		s.inForum()
		carl := s.srv.Person(9, "Carl")
		carl.SetRank(s.in, telegram.Member)
		s.bob.Send(s.in, "hello, all")
		prompt := s.say("@ductor_bot go", mention())
		m := s.card("make\n")
		if m.ReplyTo != prompt.ID {
			s.Errorf("the card answers to %d, not %d", m.ReplyTo, prompt.ID)
		}
		s.wantAnswer(s.pressBy(carl, m, "Allow once"), "Only these users can answer this: Ann, Bob.")
		carl.Send(s.in, "yes", telegram.ReplyTo(m.ID))
		s.card("Only these users can answer this: Ann, Bob.")
		s.wantTold()
		s.wantQueued(0)
		carl.Send(s.in, "@ductor_bot then test", mention())
		s.card("Queued, next in line.\nThe agent is waiting for Ann, Bob to answer its question above.")
		s.pressBy(s.bob, m, "Allow once")
		s.wantShown("✅ Allowed by Bob.")
		other := s.card("make test")
		s.pressBy(s.bob, other, "Deny with reason…")
		if m := s.card("Reply to this message with your reason before"); strings.Contains(m.Text, "next message") {
			s.Errorf("the card says %q", m.Text)
		}
		s.bob.Send(s.in, "@ductor_bot lint", mention()) // no reply
		s.card("Queued, 2 ahead.")
		s.bob.Send(s.in, "no", telegram.ReplyTo(other.ID))
		s.wantShown("⛔ Denied by Bob: no")
		s.wantTold("a true []", "b false no[]")
	})
}

// Identical requests share one card, which says so.
func TestIdenticalRequestsAreOneApproval(t *testing.T) {
	withApprovals(t, agentAsking(bash("a", "make"), bash("b", "make")), func(s *approvalRig) {
		s.begin()
		m := s.card("Your answer counts for 2 identical requests")
		s.press(m, "Allow once")
		s.wantTold("a true []", "b true []")
		if n := len(s.in.View().FromBot()); n != 2 {
			s.Errorf("%d messages", n)
		}
	})
}

func TestApprovalsThatEndWithoutADecision(t *testing.T) {
	t.Run("given up", func(t *testing.T) {
		withApprovals(t, agentAsking(bash("a", "make")), func(s *approvalRig) {
			s.begin()
			m := s.card("May Claude")
			close(s.agent.gone)
			s.wantShown("No longer needed")
			s.wantAnswer(s.tap(s.who, m, s.data(m, "Allow once")), "no longer waiting")
			s.wantTold()
		})
	})
	t.Run("expired", func(t *testing.T) {
		withApprovals(t, agentAsking(bash("a", "make")), func(s *approvalRig) {
			s.begin()
			m := s.card("May Claude")
			time.Sleep(31 * time.Minute)
			s.wantShown("⌛ Timed out at")
			s.wantAnswer(s.tap(s.who, m, s.data(m, "Allow once")), "Too late")
			s.wantTold("a false No user decided in time, so it was denied.[]")
		})
	})
	t.Run("aborted", func(t *testing.T) {
		withApprovals(t, agentAsking(bash("a", "make")), func(s *approvalRig) {
			s.begin()
			m := s.card("May Claude")
			s.say("/abort")
			s.wantShown("No longer needed")
			s.wantAnswer(s.tap(s.who, m, s.data(m, "Allow once")), "no longer waiting")
			s.wantTold()
		})
	})
}
