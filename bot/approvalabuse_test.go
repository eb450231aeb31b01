package bot_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
)

// These presses must change nothing: whatever the answer, they allow the agent nothing.
func TestPressesThatChangeNothing(t *testing.T) {
	swap := func(data, from, to string) string { return strings.Replace(data, from, to, 1) }
	for _, tc := range []struct {
		name string
		do   func(s *approvalRig, m telegram.Message, allow string) string
		want string
	}{
		{"a forged nonce", func(s *approvalRig, m telegram.Message, allow string) string {
			parts := strings.Split(allow, ":")
			return s.tap(s.who, m, swap(allow, parts[2], strings.Repeat("A", len(parts[2]))))
		}, "no longer works"},
		{"an approval that is not there", func(s *approvalRig, m telegram.Message, allow string) string {
			parts := strings.Split(allow, ":")
			return s.tap(s.who, m, swap(allow, parts[1], "NOSUCHASK"))
		}, "no longer works"},
		{"half the data", func(s *approvalRig, m telegram.Message, allow string) string {
			return s.tap(s.who, m, allow[:len(allow)-2])
		}, "no longer works"},
		{"an option of no question", func(s *approvalRig, m telegram.Message, allow string) string {
			return s.tap(s.who, m, strings.TrimSuffix(allow, ":1")+":o0.0")
		}, "no longer works"},
		{"a foreign operation", func(s *approvalRig, m telegram.Message, allow string) string {
			return s.tap(s.who, m, strings.TrimSuffix(allow, ":1")+":Z")
		}, "no longer works"},
		{"somebody else's chat", func(s *approvalRig, m telegram.Message, allow string) string {
			chat := s.srv.Private(9, "Carl")
			own := chat.Person().Send(chat, "/status")
			return s.tap(chat.Person(), own, allow)
		}, "no longer works"},
		{"another chat of the same person", func(s *approvalRig, m telegram.Message, allow string) string {
			forum := s.srv.Forum(-100, "Team")
			s.who.SetRank(forum, telegram.Member)
			own := s.who.Send(forum, "hello")
			return s.tap(s.who, own, allow)
		}, "no longer works"},
		{"after the end of its time", func(s *approvalRig, m telegram.Message, allow string) string {
			time.Sleep(time.Hour)
			return s.tap(s.who, m, allow)
		}, "Too late"},
		{"after a denial", func(s *approvalRig, m telegram.Message, allow string) string {
			s.press(m, "Deny")
			return s.tap(s.who, m, allow)
		}, "Already decided: denied"},
		{"after an abort", func(s *approvalRig, m telegram.Message, allow string) string {
			s.say("/abort")
			s.settle()
			return s.tap(s.who, m, allow)
		}, "no longer waiting"},
		{"after an abort and a restart", func(s *approvalRig, m telegram.Message, allow string) string {
			s.say("/abort")
			s.settle()
			s.restart()
			return s.tap(s.who, m, allow)
		}, "no longer waiting"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			withApprovals(t, agentAsking(bash("a", gitStatus)), func(s *approvalRig) {
				s.begin()
				m := s.card("May Claude")
				s.wantAnswer(tc.do(s, m, s.data(m, "Allow once")), tc.want)
				for _, told := range s.agent.toldAll() {
					if strings.Contains(told, "true") {
						s.Errorf("the agent was told %q", told)
					}
				}
				if rules := s.rules(); len(rules) > 0 {
					s.Errorf("rules %q", rules)
				}
			})
		})
	}
}

// A stranger gets no answer at all.
func TestAStrangersPressIsNotAnswered(t *testing.T) {
	withApprovals(t, agentAsking(bash("a", gitStatus)), func(s *approvalRig) {
		s.begin()
		m := s.card("May Claude")
		s.srv.Person(66, "Eve").TapData(m, s.data(m, "Allow once"))
		s.wantTold()
		s.press(m, "Allow once")
		s.wantTold("a true []")
	})
}

// Of two presses at once, one counts.
func TestADoublePressDecidesOnce(t *testing.T) {
	withApprovals(t, agentAsking(bash("a", gitStatus)), func(s *approvalRig) {
		s.begin()
		m := s.card("May Claude")
		allow := s.data(m, "Allow once")
		one, two := s.who.TapData(m, allow), s.who.TapData(m, allow)
		first, err := one.Answer(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		second, err := two.Answer(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		s.wantAnswer(first.Text, "Allowed.")
		s.wantAnswer(second.Text, "Already decided: allowed")
		s.wantTold("a true []")
	})
}

// A pending approval outlives ductor: it continues in the same message, with the user's progress.
func TestApprovalsOutliveARestart(t *testing.T) {
	for _, step := range []string{">because", "<because"} {
		withApprovals(t, agentAsking(bash("a", gitStatus)), func(s *approvalRig) {
			s.begin()
			s.press(s.card("May Claude"), "Deny with reason…")
			s.restart()
			s.step(s.card("send your reason as your next message"), step)
			s.wantTold("a false because[]")
			s.wantShown("⛔ Denied: because")
			if n := strings.Count(s.in.Transcript(), gitStatus); n != 1 {
				s.Errorf("it is shown %d times", n)
			}
		})
	}
}

// slowGateway resumes turns slowly.
type slowGateway struct{ orchestrator.Gateway }

const slowResume = 20 * time.Second

func (g slowGateway) Resume(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	time.Sleep(slowResume)
	return g.Gateway.Resume(ctx, agent, req, emit)
}

// A reason or an answer that the user sends while ductor is down reaches the agent also if the agent is slow to repeat
// its request. The next prompt is a prompt.
func TestWordsThatArriveBeforeTheAgentAsksAgain(t *testing.T) {
	question := cli.QuestionAsked{ID: "q", Questions: []cli.Question{
		{Text: "Which colour?", Free: true, Options: []cli.Option{{Label: "Red"}}},
	}}
	for _, tc := range []struct {
		asked         cli.Event
		shown, button string
		told          string
	}{
		{bash("a", gitStatus), "May Claude", "Deny with reason…", "a false because no[]"},
		{question, "Which colour?", "Own words…", "q true [[because no]]"},
	} {
		agent := agentAsking(tc.asked)
		withGateway(t, agent, slowGateway{agent}, func(s *approvalRig) {
			s.begin()
			s.press(s.card(tc.shown), tc.button)
			s.restartAfter(func() { s.say("because no") })
			time.Sleep(slowResume)
			s.wantTold(tc.told)
			if got := s.agent.prompts(); !slices.Equal(got, []string{"go"}) {
				s.Errorf("the agent was asked %q", got)
			}
			if tc.shown == "May Claude" {
				s.press(s.card("I passed this on as your answer"), "No, a new prompt")
				if got := s.agent.prompts(); !slices.Equal(got, []string{"go", "because no"}) {
					s.Errorf("the agent was asked %q", got)
				}
			}
		})
	}
}

// An approval that may not have arrived is not sent again. A notice says so, and becomes the approval when the user
// asks for it.
func TestAnApprovalThatMayBeMissing(t *testing.T) {
	for _, kind := range []telegram.FaultKind{telegram.DropBefore, telegram.DropAfter} {
		t.Run(string(kind), func(t *testing.T) {
			withApprovals(t, agentAsking(bash("a", gitStatus)), func(s *approvalRig) {
				s.srv.Inject(telegram.Fault{Method: "sendMessage", Kind: kind, Times: 1})
				s.begin()
				m := s.card("may be missing here")
				s.restart()
				if n := strings.Count(s.in.Transcript(), "may be missing here"); n != 1 {
					s.Errorf("the notice is there %d times", n)
				}
				if card, there := s.in.View().Find("May Claude"); there {
					s.press(card, "Allow once")
				} else {
					s.press(m, "Show it")
					s.press(s.card("May Claude"), "Allow once")
				}
				s.wantTold("a true []")
				s.wantShown("✅ Allowed.")
				if _, there := s.in.View().Find("may be missing"); there {
					s.Error("the notice is still there")
				}
				if n := strings.Count(s.in.Transcript(), gitStatus); n != 1 {
					s.Errorf("the approval is shown %d times", n)
				}
			})
		})
	}
}

// A user who deletes the message of an approval gets it once more. If its topic was deleted, it appears in the main
// topic.
func TestApprovalsWhoseMessageOrTopicIsDeleted(t *testing.T) {
	t.Run("deleted", func(t *testing.T) {
		withApprovals(t, agentAsking(bash("a", "make"), bash("b", "make")), func(s *approvalRig) {
			s.begin()
			m := s.card("May Claude")
			s.press(m, "Deny with reason…")
			s.who.Delete(m)
			back := strings.TrimSuffix(s.data(m, "Deny"), ":d") + ":b"
			s.answerTo(s.who.TapData(m, back), back)
			s.press(s.card("May Claude"), "Allow once")
			s.wantTold("a true []", "b true []")
		})
	})
	t.Run("no topic", func(t *testing.T) {
		withApprovals(t, agentAsking(bash("a", "make")), func(s *approvalRig) {
			s.inForum()
			topic := s.who.Topic(s.in, "Work").ID
			s.opts = append(s.opts, telegram.InTopic(topic))
			hit := s.srv.Inject(telegram.Fault{Method: "sendMessage", Delay: 20 * time.Second, Times: 1})
			s.say("@ductor_bot go", mention())
			time.Sleep(time.Second)
			s.in.DeleteTopic(topic)
			time.Sleep(time.Minute)
			m := s.card("The topic is gone")
			s.press(m, "Allow once")
			s.wantTold("a true []")
			if hit.Hits() != 1 {
				s.Error("the topic was there as the card came")
			}
		})
	})
}

// A user can reply before Telegram has answered the call that sent the message. The words still reach the agent: they
// may be a secret, which must not become a prompt.
func TestWordsBeforeDuctorKnowsItsOwnMessage(t *testing.T) {
	asked := cli.QuestionAsked{ID: "q", Questions: []cli.Question{{Text: "Which password?", Free: true, Secret: true, Options: []cli.Option{{Label: "None"}}}}}
	withApprovals(t, agentAsking(asked), func(s *approvalRig) {
		late := s.srv.Inject(telegram.Fault{
			Method: "sendMessage", Late: 25 * time.Second,
			When: func(c telegram.Call) bool { return strings.Contains(c.Params["text"], "Which password?") },
		})
		s.begin()
		m := s.card("Which password?")
		s.press(m, "Own words…")
		s.step(m, ">quaint-zebra")
		s.wantTold("q true [[quaint-zebra]]")
		if late.Hits() != 1 {
			s.Errorf("%d answers were late", late.Hits())
		}
		if got := s.agent.prompts(); !slices.Equal(got, []string{"go"}) {
			s.Errorf("the agent was asked %q", got)
		}
	})
}

// The same holds for a user who replies to such a message at once, without pressing a button.
func TestAReplyBeforeDuctorKnowsItsOwnMessage(t *testing.T) {
	asked := cli.QuestionAsked{ID: "q", Questions: []cli.Question{{Text: "Which colour?", Free: true, Options: []cli.Option{{Label: "Red"}}}}}
	withApprovals(t, agentAsking(asked), func(s *approvalRig) {
		late := s.srv.Inject(telegram.Fault{
			Method: "sendMessage", Late: 11 * time.Second,
			When: func(c telegram.Call) bool { return strings.Contains(c.Params["text"], "Which colour?") },
		})
		s.begin()
		s.step(s.card("Which colour?"), ">a shade of green")
		s.wantTold("q true [[a shade of green]]")
		if got := s.agent.prompts(); late.Hits() != 1 || !slices.Equal(got, []string{"go"}) {
			s.Errorf("%d answers were late, and the agent was asked %q", late.Hits(), got)
		}
	})
}
