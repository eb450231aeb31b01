package judge

import (
	"time"

	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/scenario"
)

func verdictsOfAnswers() []verdict {
	begin := func(s *stage) telegram.MessageID {
		id := s.says("owner", ownerChat, "p1")
		s.agent(Effect, "p1", "p1.1")
		return id
	}
	return []verdict{
		{"a word is missing", plainPrompt, "shown", func(s *stage) { s.shows(ownerChat, begin(s), "p1w0") }},
		{"words behind the last effect are missing", plainPrompt, "", func(s *stage) { s.shows(ownerChat, begin(s), "p1w0 p1w1") }},
		{"words behind the last effect are missing and the turn is done", plainPrompt, "shown", func(s *stage) {
			s.shows(ownerChat, begin(s), "p1w0 p1w1")
			s.agent(Done, "p1", "")
		}},
		{"a word is missing and the chat says so", plainPrompt, "", func(s *stage) { s.shows(ownerChat, begin(s), "p1w0", "👁 Show again") }},
		{"the chat says so in German", plainPrompt, "", func(s *stage) { s.shows(ownerChat, begin(s), "p1w0", "👁 Noch einmal zeigen") }},
		{"a word is missing and a file has all", plainPrompt, "", func(s *stage) {
			s.shows(ownerChat, begin(s), "p1w0")
			s.Documents["file"] = "p1w0 p1w1"
		}},
		{"a word is missing in a deleted message", plainPrompt, "shown", func(s *stage) {
			s.shows(ownerChat, begin(s), "p1w0 p1w1")
			c := s.chat(ownerChat)
			c.History[len(c.History)-1].Deleted = true
		}},
		{"a word is missing after an abort", plainPrompt, "", func(s *stage) {
			s.shows(ownerChat, begin(s), "p1w0")
			s.says("owner", ownerChat, "/abort")
		}},
		{"a word is missing after a power failure", plainPrompt, "", func(s *stage) {
			s.shows(ownerChat, begin(s), "p1w0")
			s.stops(scenario.Power)
		}},
		{"a word is missing after a crash", plainPrompt, "shown", func(s *stage) {
			s.shows(ownerChat, begin(s), "p1w0")
			s.stops(scenario.Crash)
		}},
		{"an answer is shown twice", plainPrompt, "shown", func(s *stage) {
			id := s.whole()
			s.shows(ownerChat, id, "p1w0 p1w1 p1w2")
		}},
		{"a message is sent again after a power failure", plainPrompt, "", func(s *stage) {
			id := s.whole()
			s.stops(scenario.Power)
			s.shows(ownerChat, id, "p1w0 p1w1 p1w2")
		}},
		{"a message is sent again after a crash", plainPrompt, "shown", func(s *stage) {
			id := s.whole()
			s.stops(scenario.Crash)
			s.shows(ownerChat, id, "p1w0 p1w1 p1w2")
		}},
		{"a message is sent again long after a power failure", plainPrompt, "shown", func(s *stage) {
			id := s.whole()
			s.now = s.now.Add(time.Minute)
			s.stops(scenario.Power)
			s.shows(ownerChat, id, "p1w0 p1w1 p1w2")
		}},
		{"a word that is cut at the beginning of the next message", plainPrompt, "", func(s *stage) {
			id := begin(s)
			s.shows(ownerChat, id, "p1w0 p1w1 p1w2 p1w3 p1w4 p1w5 p1w6 p1w7 p1w8 p1w9 p1w10 p1w11")
			s.shows(ownerChat, id, "p1w1")
			s.says("owner", ownerChat, "/abort")
		}},
		{"words in the wrong order", plainPrompt, "shown", func(s *stage) { s.shows(ownerChat, begin(s), "p1w1 p1w0") }},
		{"the screen of a session shows its latest answer", plainPrompt, "", func(s *stage) {
			s.whole()
			s.shows(ownerChat, 0, "A minute ago, 1 message\n\nLatest:\n> p1 [[text \"p1w0\"]]\np1w0 p1w1 p1w2")
		}},
		{"a title quotes the prompt", plainPrompt, "", func(s *stage) {
			s.whole()
			s.shows(ownerChat, 0, "Sessions in this chat\n[[start]] p1 [[text \"p1w0 p1…\nanother")
		}},
		{"a word that is cut, and a file that has all", "owner says p1: text 13\n", "", func(s *stage) {
			id := s.says("owner", ownerChat, "p1")
			begins := "p1w0 p1w1 p1w2 p1w3 p1w4 p1w5 p1w6 p1w7 p1w8 p1w9 p1w1"
			s.shows(ownerChat, id, begins+"…\nThe whole answer comes as a file\np1w12")
			s.Documents["file"] = begins + "0 p1w11 p1w12"
			s.agent(Done, "p1", "")
		}},
		{"a word that is cut, and no file", plainPrompt, "shown", func(s *stage) {
			s.shows(ownerChat, begin(s), "p1w0 p1w1…")
			s.agent(Done, "p1", "")
		}},
		{"another chat shows an answer", plainPrompt, "here", func(s *stage) {
			s.whole()
			s.shows(annChat, 0, "p1w0 p1w1 p1w2")
		}},
		{"a word is missing where the chat blocked the bot", plainPrompt + "in owner blocks\n", "", func(s *stage) { begin(s) }},
	}
}

func verdictsOfWithdrawnText() []verdict {
	begin := func(s *stage) telegram.MessageID {
		id := s.says("owner", ownerChat, "p1")
		s.agent(Effect, "p1", "p1.1")
		return id
	}
	return []verdict{
		{"what codex exec says before a tool is missing", oneShot + plainPrompt, "", func(s *stage) {
			s.shows(ownerChat, begin(s), "p1w2")
			s.Agents[0].Agent = "codex"
			s.agent(Done, "p1", "")
		}},
		{"what codex exec says behind its last tool is missing", oneShot + plainPrompt, "shown", func(s *stage) {
			s.shows(ownerChat, begin(s), "p1w0 p1w1")
			s.Agents[0].Agent = "codex"
			s.agent(Done, "p1", "")
		}},
		{"what another agent says before a tool is missing", oneShot + plainPrompt, "shown", func(s *stage) {
			s.shows(ownerChat, begin(s), "p1w2")
			s.agent(Done, "p1", "")
		}},
		{"what a second attempt of codex says before a tool is missing", plainPrompt, "", func(s *stage) {
			s.shows(ownerChat, begin(s), "p1w2\nsecond attempt · Codex")
			s.Agents[0].Agent = "codex"
			s.agent(Done, "p1", "")
		}},
		{"what Copilot says before its model fails is missing", failPrompt, "", func(s *stage) {
			s.shows(ownerChat, begin(s), "p1w0 p1w2")
			s.Agents[0].Agent = "copilot"
			s.agent(Done, "p1", "")
		}},
		{"a word is missing after a power failure at the moment of the prompt", plainPrompt, "", func(s *stage) {
			s.shows(ownerChat, begin(s), "p1w0")
			s.agent(Done, "p1", "")
			s.stops(scenario.Power)
			s.Stops[0].At = s.Sent[0].At
		}},
		{"a word is missing after a restart because of a failed flush", failedFlush, "", func(s *stage) {
			s.shows(ownerChat, begin(s), "p1w0")
			s.agent(Done, "p1", "")
			s.diskFails(scenario.DiskFsync)
			s.stops(scenario.Restart)
		}},
		{"a word is missing long after a failed flush", failedFlush, "shown", func(s *stage) {
			s.shows(ownerChat, begin(s), "p1w0")
			s.agent(Done, "p1", "")
			s.now = s.now.Add(time.Minute)
			s.diskFails(scenario.DiskFsync)
			s.stops(scenario.Restart)
		}},
		{"an approval of a delivery by the owner", "webhook delivers p1: ask\n", "", func(s *stage) {
			s.Sent = append(s.Sent, Sent{By: Webhook, In: "owner", Token: "p1", At: s.pass()})
			s.presses("owner", ownerChat, s.shows(ownerChat, 0, "echo p1.0", "✅ Allow once"), "✅ Allow once")
			s.agent(Effect, "p1", "p1.0")
			s.chat(ownerChat).History[0].Keyboard = nil
		}},
		{"what Copilot says before it has nothing run in the background is missing", backgroundPrompt, "", func(s *stage) {
			s.shows(ownerChat, begin(s), "p1w0 p1w2")
			s.Agents[0].Agent = "copilot"
			s.agent(Done, "p1", "")
		}},
		{"what Copilot says before a tool is missing", failPrompt, "shown", func(s *stage) {
			s.shows(ownerChat, begin(s), "p1w1 p1w2")
			s.Agents[0].Agent = "copilot"
			s.agent(Done, "p1", "")
		}},
	}
}

func verdictsOfShowAgain() []verdict {
	// again presses the same button after each broken call.
	again := func(s *stage, broken ...bool) {
		s.whole()
		on := s.shows(ownerChat, 0, "⚠️ The connection broke", "👁 Show again")
		for _, breaks := range broken {
			if breaks {
				s.breaks(ownerChat)
			}
			s.presses("owner", ownerChat, on, "👁 Show again")
			s.shows(ownerChat, 0, "p1w0 p1w1 p1w2")
		}
	}
	return []verdict{
		{"an answer is shown three times by two presses of one Show again", plainPrompt, "", func(s *stage) {
			again(s, true, true)
		}},
		{"an answer is shown three times by two presses after one broken call", plainPrompt, "shown", func(s *stage) {
			again(s, true, false)
		}},
		{"an answer is shown three times by two presses and a crash", plainPrompt, "", func(s *stage) {
			again(s, true)
			s.stops(scenario.Crash)
			again := s.shows(ownerChat, 0, "⚠️ The connection broke", "👁 Show again")
			s.presses("owner", ownerChat, again, "👁 Show again")
			s.shows(ownerChat, 0, "p1w0 p1w1 p1w2")
		}},
		{"an answer is shown three times by two presses and a cut", plainPrompt, "", func(s *stage) {
			again(s, true)
			s.Faults.Cuts = append(s.Faults.Cuts, s.pass())
			s.presses("owner", ownerChat, s.shows(ownerChat, 0, "⚠️", "👁 Show again"), "👁 Show again")
			s.shows(ownerChat, 0, "p1w0 p1w1 p1w2")
		}},
		{"an answer is shown three times by one press of Show again", plainPrompt, "shown", func(s *stage) {
			again(s, true)
			s.shows(ownerChat, 0, "p1w0 p1w1 p1w2")
		}},
		{"an answer is shown twice by Show again", plainPrompt, "", func(s *stage) { again(s, true) }},
		{"an answer is shown twice by Show again although nothing is missing", plainPrompt, "shown", func(s *stage) {
			again(s, false)
		}},
		{"an answer is shown twice after a call in another chat broke", plainPrompt, "shown", func(s *stage) {
			s.breaks(annChat)
			again(s, false)
		}},
		{"an answer is shown twice by Show again after a limit", plainPrompt, "shown", func(s *stage) {
			s.calls(ownerChat, 1)
			again(s, false)
		}},
	}
}

func verdictsOfStubbornAgents() []verdict {
	begin := func(s *stage) telegram.MessageID {
		id := s.says("owner", ownerChat, "p1")
		s.agent(Effect, "p1", "p1.1")
		return id
	}
	return []verdict{
		{"what an agent says that goes on after its turn failed is missing", stubbornPrompt, "", func(s *stage) {
			s.shows(ownerChat, begin(s), "p1w0")
			s.agent(Done, "p1", "")
		}},
		{"what a process that a prompt before made go on says after a failure is missing",
			"owner says p1: break stubborn\nowner says p2: text 1; fail 401 times 1; text 1\n", "", func(s *stage) {
				s.says("owner", ownerChat, "p1")
				s.agent(Got, "p1", "")
				s.shows(ownerChat, s.says("owner", ownerChat, "p2"), "p2w0")
				s.agent(Got, "p2", "")
				s.agent(Done, "p2", "")
			}},
		{"what an agent says before its turn failed is missing", stubbornPrompt, "shown", func(s *stage) {
			s.shows(ownerChat, begin(s), "p1w1")
			s.agent(Done, "p1", "")
		}},
	}
}
