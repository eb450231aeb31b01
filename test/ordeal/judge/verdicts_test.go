package judge

import (
	"time"

	"ductor/internal/sim/telegram"
	"ductor/lang"
	"ductor/test/ordeal/scenario"
)

func verdictsOfTurns() []verdict {
	return []verdict{
		{"all is well", plainPrompt, "", func(s *stage) { s.whole() }},
		{"an effect twice", plainPrompt, "once", func(s *stage) {
			s.whole()
			s.agent(Effect, "p1", "p1.1")
		}},
		{"an effect twice by Run again", plainPrompt, "", func(s *stage) {
			s.whole()
			s.presses("owner", ownerChat, s.next, "🔁 Run again")
			s.agent(Effect, "p1", "p1.1")
		}},
		{"Run again pressed by a viewer", plainPrompt, "once", func(s *stage) {
			s.whole()
			s.presses("bob", ownerChat, s.next, "🔁 Run again")
			s.agent(Effect, "p1", "p1.1")
		}},
		{"an effect twice by a crash", plainPrompt, "once", func(s *stage) {
			s.whole()
			s.stops(scenario.Crash)
			s.agent(Effect, "p1", "p1.1")
		}},
		{"an effect twice by a power failure just behind the begin", plainPrompt, "", func(s *stage) {
			id := s.says("owner", ownerChat, "p1")
			s.agent(Effect, "p1", "p1.1")
			s.stops(scenario.Power)
			s.agent(Effect, "p1", "p1.1")
			s.shows(ownerChat, id, "p1w0 p1w1")
		}},
		{"an effect twice by a power failure much later", plainPrompt, "once", func(s *stage) {
			s.whole()
			s.now = s.now.Add(time.Hour)
			s.stops(scenario.Power)
			s.agent(Effect, "p1", "p1.1")
		}},
		{"a prompt of which nothing is heard", plainPrompt, "ran", func(s *stage) { s.says("owner", ownerChat, "p1") }},
		{"a prompt that became the reason of a denial", plainPrompt, "", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.shows(ownerChat, 0, "⛔ Denied: p1 · echo p0.0")
		}},
		{"a prompt of a viewer of which nothing is heard", "bob says p1: run\n", "", func(s *stage) { s.says("bob", ownerChat, "p1") }},
		{"a prompt that is refused", plainPrompt, "", func(s *stage) {
			id := s.says("owner", ownerChat, "p1")
			s.shows(ownerChat, id, "The queue is full, so I didn't take this message.")
		}},
		{"a prompt that an abort took", plainPrompt, "", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.says("owner", ownerChat, "/abort")
		}},
		{"an abort before a prompt", plainPrompt, "ran", func(s *stage) {
			s.says("owner", ownerChat, "/abort")
			s.says("owner", ownerChat, "p1")
		}},
		{"the wrong order", plainPrompt + "owner says p2: run\n", "order", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.says("owner", ownerChat, "p2")
			s.agent(Effect, "p2", "p2.0")
			s.agent(Effect, "p1", "p1.1")
			s.shows(ownerChat, 0, "p1w0 p1w1")
		}},
		{"the wrong order by Interrupt", plainPrompt + "owner says p2: run\nowner presses bot.interrupt of p2\n", "", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.says("owner", ownerChat, "p2")
			s.agent(Effect, "p2", "p2.0")
			s.agent(Effect, "p1", "p1.1")
			s.shows(ownerChat, 0, "p1w0 p1w1")
		}},
	}
}

func verdictsOfJobs() []verdict {
	const once = "owner schedules p1 after 1h: run\n"
	addJob := func(s *stage) telegram.MessageID {
		id := s.shows(ownerChat, s.says("owner", ownerChat, "p1"), "⏰ New job: p1", "✅ Add")
		s.presses("owner", ownerChat, id, "✅ Add")
		s.Presses[0].Answer = "Added."
		return id
	}
	return []verdict{
		{"a job that is due twice", "owner schedules p1 every 1h: run\n", "", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.agent(Effect, "p1", "p1.0")
			s.now = s.now.Add(time.Hour)
			s.agent(Effect, "p1", "p1.0")
		}},
		{"a job that runs too often", once, "once", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.agent(Effect, "p1", "p1.0")
			s.agent(Effect, "p1", "p1.0")
		}},
		{"a job that does not run", once, "ran", func(s *stage) {
			addJob(s)
			s.now = s.now.Add(2 * time.Hour)
			s.pass()
		}},
		{"a job whose time has not come", once, "", func(s *stage) {
			addJob(s)
			s.now = s.now.Add(time.Minute)
			s.pass()
		}},
		{"a job that a user changes", once, "", func(s *stage) {
			s.presses("owner", ownerChat, addJob(s), "🗑 Delete")
			s.now = s.now.Add(2 * time.Hour)
			s.pass()
		}},
		{"a job that a power failure takes back", once, "", func(s *stage) {
			addJob(s)
			s.stops(scenario.Power)
			s.now = s.now.Add(2 * time.Hour)
			s.pass()
		}},
		{"a job that is not added", once, "", func(s *stage) {
			s.shows(ownerChat, s.says("owner", ownerChat, "p1"), "⏰ New job: p1", "✅ Add")
			s.now = s.now.Add(2 * time.Hour)
			s.pass()
		}},
	}
}

func verdictsOfLostBegins() []verdict {
	return []verdict{
		{"an effect three times by Run again and a power failure just behind that", plainPrompt, "", func(s *stage) {
			s.whole()
			s.now = s.now.Add(time.Minute)
			s.presses("owner", ownerChat, s.next, "🔁 Run again")
			for range 2 {
				s.agent(Got, "p1", "")
				s.agent(Effect, "p1", "p1.1")
				s.stops(scenario.Power)
			}
		}},
		{"an effect twice by a flush that failed just then", failedFlush, "", func(s *stage) {
			s.agent(Effect, "p1", "p1.1")
			s.diskFails(scenario.DiskFsync)
			s.stops(scenario.Restart)
			s.whole()
		}},
		{"an effect twice by a flush that failed while ductor let go of its work", failedFlush, "", func(s *stage) {
			s.agent(Effect, "p1", "p1.1")
			s.diskFails(scenario.DiskFsync)
			s.now = s.now.Add(10 * time.Second)
			s.stops(scenario.Restart)
			s.whole()
		}},
		{"an effect twice by a flush that failed much later", failedFlush, "once", func(s *stage) {
			s.agent(Effect, "p1", "p1.1")
			s.now = s.now.Add(5 * time.Second)
			s.diskFails(scenario.DiskFsync)
			s.stops(scenario.Restart)
			s.whole()
		}},
		{"an effect twice by a crash before a flush failed", failedFlush, "once", func(s *stage) {
			s.agent(Effect, "p1", "p1.1")
			s.stops(scenario.Crash)
			s.whole()
			s.diskFails(scenario.DiskFsync)
			s.stops(scenario.Restart)
		}},
		{"an effect twice by a crash and a start whose flush failed", failedFlush, "", func(s *stage) {
			s.agent(Effect, "p1", "p1.1")
			s.Stops = append(s.Stops, Stop{How: scenario.Crash, At: s.pass()})
			s.diskFails(scenario.DiskFsync)
			s.Stops[0].Up = s.pass()
			s.whole()
		}},
		{"an effect twice by a disk that failed before it", failedDisk, "", func(s *stage) {
			s.diskFails(scenario.DiskEIO)
			s.agent(Effect, "p1", "p1.1")
			s.stops(scenario.Restart)
			s.whole()
		}},
		{"an effect twice by a disk that failed after the begin was stored", failedDisk, "once", func(s *stage) {
			s.agent(Effect, "p1", "p1.1")
			s.diskFails(scenario.DiskEIO)
			s.stops(scenario.Restart)
			s.whole()
		}},
		{"an effect twice by a power failure behind a slow flush", slowDisk, "", func(s *stage) {
			s.agent(Effect, "p1", "p1.1")
			s.diskFails(scenario.DiskSlow)
			s.now = s.now.Add(time.Minute)
			s.stops(scenario.Power)
			s.whole()
		}},
		{"an effect twice by a power failure long behind a slow flush", slowDisk, "once", func(s *stage) {
			s.diskFails(scenario.DiskSlow)
			s.now = s.now.Add(5 * time.Minute)
			s.agent(Effect, "p1", "p1.1")
			s.now = s.now.Add(10 * time.Second)
			s.stops(scenario.Power)
			s.whole()
		}},
	}
}

func verdictsOfLostPrompts() []verdict {
	const lostPrompts = "owner says p1: run\nowner says p2: run\n"
	const twice = "webhook delivers p1: run\nwebhook repeats p1\n"
	delivers := func(s *stage) {
		s.Sent = append(s.Sent, Sent{By: Webhook, In: "owner", Token: "p1", At: s.pass()})
	}
	return []verdict{
		{"a prompt of which only is said that the disk is full", plainPrompt, "ran", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.shows(ownerChat, 0, lang.Language("en").Printer().Text("updates.disk-full"))
		}},
		{"prompts before a loss, of which the chat hears at the first", lostPrompts, "", func(s *stage) {
			id := s.says("owner", ownerChat, "p1")
			s.says("owner", ownerChat, "p2")
			s.shows(ownerChat, id, lang.Language("de").Printer().Text("updates.dropped"))
		}},
		{"prompts of which the chat hears at the first only", lostPrompts, "ran", func(s *stage) {
			id := s.says("owner", ownerChat, "p1")
			s.says("owner", ownerChat, "p2")
			s.shows(ownerChat, id, "No.")
		}},
		{"a prompt that joined a turn before its agent died", lostPrompts, "", func(s *stage) {
			s.says("owner", ownerChat, "/queue steer")
			s.fails(s.cardOf("p1"), "p2")
		}},
		{"a prompt that waited for a turn whose agent died", lostPrompts, "ran", func(s *stage) {
			s.fails(s.cardOf("p1"), "p2")
		}},
		{"a delivery of which nothing is heard", twice, "ran", delivers},
		{"a delivery that was not accepted", twice, "", func(*stage) {}},
		{"a delivery that a user cancelled while it waited", twice, "", func(s *stage) {
			delivers(s)
			s.presses("owner", ownerChat, s.shows(ownerChat, 0, "✖ Cancelled: this message will not run."), "✖ Cancel")
		}},
		{"a delivery where a user cancelled in another chat", twice, "ran", func(s *stage) {
			delivers(s)
			s.presses("ann", annChat, s.shows(annChat, 0, "✖ Cancelled: this message will not run."), "✖ Cancel")
		}},
		{"a delivery that came twice", twice, "", func(s *stage) {
			delivers(s)
			delivers(s)
			s.agent(Effect, "p1", "p1.0")
		}},
		{"a delivery that runs twice", twice, "once", func(s *stage) {
			delivers(s)
			s.agent(Effect, "p1", "p1.0")
			s.agent(Effect, "p1", "p1.0")
		}},
	}
}

func verdictsOfEdits() []verdict {
	text := "owner says p1: run\nowner edits p1 into p2: run\n"
	abort := func(s *stage) telegram.MessageID {
		id := s.says("owner", ownerChat, "p1")
		s.agent(Effect, "p1", "p1.0")
		s.shows(ownerChat, s.says("owner", ownerChat, "/abort"), "Stopped.")
		return id
	}
	change := func(s *stage, id telegram.MessageID) {
		s.Sent = append(s.Sent, Sent{By: "owner", In: "owner", Token: "p2", Old: "p1", Chat: ownerChat, ID: id,
			At: s.pass()})
		s.chat(ownerChat).History[0].Reactions = []telegram.Reaction{{Emoji: "✍"}}
	}
	powerThenEdit := func(s *stage) {
		id := s.says("owner", ownerChat, "p1")
		s.agent(Effect, "p1", "p1.0")
		s.stops(scenario.Power)
		change(s, id)
		s.agent(Effect, "p2", "p2.0")
	}
	runAgainThenEdit := func(s *stage) {
		id := s.says("owner", ownerChat, "p1")
		s.agent(Effect, "p1", "p1.0")
		s.presses("owner", ownerChat, s.shows(ownerChat, id, "⚠️ Interrupted", "🔁 Run again"), "🔁 Run again")
		change(s, id)
	}
	edit := func(s *stage) { change(s, s.says("owner", ownerChat, "p1")) }
	return []verdict{
		{"an edit in time", text, "", func(s *stage) {
			edit(s)
			s.agent(Effect, "p2", "p2.0")
		}},
		{"an edit behind a power failure that took the begin back", text, "", powerThenEdit},
		{"an edit that comes late, behind a power failure that took the begin back", text, "", func(s *stage) {
			id := s.says("owner", ownerChat, "p1")
			s.agent(Effect, "p1", "p1.0")
			change(s, id)
			s.stops(scenario.Power)
			s.agent(Effect, "p2", "p2.0")
		}},
		{"an edit that is lost behind a power failure", text, "edited", func(s *stage) {
			powerThenEdit(s)
			s.agent(Effect, "p1", "p1.0")
		}},
		{"an edit after an abort", text, "", func(s *stage) {
			id := abort(s)
			s.shows(ownerChat, id, "⏹ Aborted.")
			change(s, id)
			s.chat(ownerChat).History[0].Reactions = nil
		}},
		{"an edit during an abort", text, "", func(s *stage) {
			id := s.says("owner", ownerChat, "p1")
			s.agent(Effect, "p1", "p1.0")
			stop := s.says("owner", ownerChat, "/abort")
			s.shows(ownerChat, stop, "Stopping…")
			change(s, id)
			s.chat(ownerChat).History[0].Reactions = nil
			s.shows(ownerChat, id, "⏹ Aborted.")
			s.shows(ownerChat, stop, "Stopped.")
		}},
		{"an edit whose turn no user aborted", text, "aborted", func(s *stage) {
			id := abort(s)
			change(s, id)
			s.chat(ownerChat).History[0].Reactions = nil
			s.shows(ownerChat, id, "⏹ Aborted.")
		}},
		{"an edit that came too late", text, "", func(s *stage) {
			edit(s)
			s.chat(ownerChat).History[0].Reactions = nil
			s.agent(Effect, "p1", "p1.0")
		}},
		{"an edit that is lost", text, "edited edited", func(s *stage) {
			edit(s)
			s.agent(Effect, "p1", "p1.0")
		}},
		{"an edit of a message that waits to run again", text, "", func(s *stage) {
			runAgainThenEdit(s)
			s.agent(Effect, "p2", "p2.0")
		}},
		{"an edit that is lost for a message that waits to run again", text, "edited", func(s *stage) {
			runAgainThenEdit(s)
			s.agent(Effect, "p2", "p2.0")
			s.agent(Effect, "p1", "p1.0")
		}},
		{"Run again pressed twice", plainPrompt, "once", func(s *stage) {
			s.whole()
			for range 2 {
				s.presses("owner", ownerChat, s.next, "🔁 Run again")
				s.agent(Effect, "p1", "p1.1")
			}
		}},
	}
}

func verdictsOfApprovals() []verdict {
	ask := func(s *stage) telegram.MessageID {
		id := s.says("owner", ownerChat, "p1")
		s.agent(Got, "p1", "")
		return s.shows(ownerChat, id, "May Claude run this command?\necho p1.0", "✅ Allow once", "⛔ Deny")
	}
	rule := func(s *stage, command string) {
		id := s.shows(ownerChat, 0, "For this session, this also allows:\n"+command, "✅ Allow with this rule")
		s.presses("owner", ownerChat, id, "✅ Allow with this rule")
	}
	happens := func(s *stage) {
		s.agent(Allowed, "p1", "p1.0")
		s.agent(Effect, "p1", "p1.0")
		c := s.chat(ownerChat)
		c.History[len(c.History)-1].Keyboard = nil
	}
	return []verdict{
		{"an approval by the owner", askPrompt, "", func(s *stage) {
			s.presses("owner", ownerChat, ask(s), "✅ Allow once")
			happens(s)
		}},
		{"no approval", askPrompt, "approved", func(s *stage) {
			ask(s)
			happens(s)
		}},
		{"a denial", askPrompt, "approved", func(s *stage) {
			s.presses("owner", ownerChat, ask(s), "⛔ Deny")
			happens(s)
		}},
		{"an approval by a stranger", askPrompt, "approved", func(s *stage) {
			s.presses("mallory", ownerChat, ask(s), "✅ Allow once")
			happens(s)
		}},
		{"an approval by a user of another chat", askPrompt, "approved", func(s *stage) {
			s.presses("ann", ownerChat, ask(s), "✅ Allow once")
			happens(s)
		}},
		{"an approval of something else", askPrompt, "approved", func(s *stage) {
			ask(s)
			s.presses("owner", ownerChat, s.shows(ownerChat, 0, "echo p2.0", "✅ Allow once"), "✅ Allow once")
			happens(s)
		}},
		{"an approval that came too late", askPrompt, "approved", func(s *stage) {
			id := ask(s)
			happens(s)
			s.presses("owner", ownerChat, id, "✅ Allow once")
		}},
		{"a request that is decided twice", askPrompt, "approved", func(s *stage) {
			s.presses("owner", ownerChat, ask(s), "✅ Allow once")
			happens(s)
			s.agent(Denied, "p1", "p1.0")
		}},
		{"a rule of the session", askPrompt, "", func(s *stage) {
			ask(s)
			rule(s, "echo p1.0")
			happens(s)
		}},
		{"a rule for another command", askPrompt, "approved", func(s *stage) {
			rule(s, "echo p2.0")
			ask(s)
			happens(s)
		}},
		{"a rule that a user only looks at", askPrompt, "approved", func(s *stage) {
			s.presses("owner", ownerChat, ask(s), "Allow this session…")
			happens(s)
		}},
		{"the mode of another conversation", askPrompt, "approved", func(s *stage) {
			s.presses("owner", annChat, s.shows(annChat, 0, "Bypass?"), "Yes, bypass")
			ask(s)
			happens(s)
		}},
		{"the mode of the conversation", askPrompt, "", func(s *stage) {
			s.presses("owner", ownerChat, s.shows(ownerChat, 0, "Bypass?"), "Yes, bypass")
			ask(s)
			happens(s)
		}},
	}
}

func verdictsOfAborts() []verdict {
	both := plainPrompt + "owner says p2: run\nowner types \"/abort\"\n"
	abort := func(s *stage) telegram.MessageID {
		s.says("owner", ownerChat, "p1")
		s.says("owner", ownerChat, "p2")
		s.agent(Got, "p1", "")
		id := s.says("owner", ownerChat, "/abort")
		s.shows(ownerChat, id, "Stopped.")
		return id
	}
	return []verdict{
		{"an abort that holds", both, "", func(s *stage) { abort(s) }},
		{"an abort after which the turn goes on", both, "aborted", func(s *stage) {
			abort(s)
			s.agent(Effect, "p1", "p1.1")
		}},
		{"an abort after which what waited begins", both, "aborted", func(s *stage) {
			abort(s)
			s.agent(Got, "p2", "")
		}},
		{"an abort that never ends", both, "aborted", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.shows(ownerChat, s.says("owner", ownerChat, "/abort"), "Stopping…")
			s.now = s.now.Add(time.Minute)
			s.agent(Effect, "p1", "p1.1")
		}},
		{"an abort that ends with the turn", both, "aborted", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			id := s.says("owner", ownerChat, "/abort")
			s.shows(ownerChat, id, "Stopping…")
			s.now = s.now.Add(time.Minute)
			s.agent(Effect, "p1", "p1.1")
			c := s.chat(ownerChat)
			m := &c.History[len(c.History)-1]
			m.Versions = append(m.Versions, telegram.Version{At: s.pass(), Text: "Stopped."})
		}},
		{"an abort that reaches another conversation", both, "aborted", func(s *stage) {
			id := s.says("ann", annChat, "p1")
			s.agent(Got, "p1", "")
			s.shows(ownerChat, s.says("owner", ownerChat, "/abort"), "Stopped.")
			s.shows(annChat, id, "⏹ Aborted.")
		}},
		{"an abort that the card shows", both, "", func(s *stage) {
			id := s.says("owner", ownerChat, "p1")
			s.agent(Got, "p1", "")
			s.shows(ownerChat, s.says("owner", ownerChat, "/abort"), "Stopped.")
			s.shows(ownerChat, id, "⏹ Aborted.")
		}},
		{"an abort before which the turn ended", both, "", func(s *stage) {
			s.says("owner", ownerChat, "p1")
			s.agent(Effect, "p1", "p1.1")
			s.shows(ownerChat, s.says("owner", ownerChat, "/abort"), "Nothing is running here.")
		}},
		{"an abort of a user who may not", both, "", func(s *stage) {
			s.whole()
			s.shows(ownerChat, s.says("bob", ownerChat, "/abort"), "Stopped.")
			s.says("owner", ownerChat, "p2")
			s.agent(Effect, "p2", "p2.0")
		}},
		{"a prompt behind an abort", both, "", func(s *stage) {
			s.whole()
			s.shows(ownerChat, s.says("owner", ownerChat, "/abort"), "Stopped.")
			s.says("owner", ownerChat, "p2")
			s.agent(Effect, "p2", "p2.0")
		}},
	}
}

func verdictsOfTheRest() []verdict {
	write := "owner says p1: write a.txt\nowner says p2: write a.txt\n"
	wrote := func(s *stage, content string) {
		s.says("owner", ownerChat, "p1")
		s.agent(Effect, "p1", "p1.0")
		s.says("owner", ownerChat, "p2")
		s.agent(Effect, "p2", "p2.0")
		s.Files["a.txt"] = content
	}
	return []verdict{
		{"a file as the last one left it", write, "", func(s *stage) { wrote(s, "p2.0\n") }},
		{"a file as another one left it", write, "files", func(s *stage) { wrote(s, "p1.0\n") }},
		{"a torn file", write, "files files", func(s *stage) { wrote(s, "p2") }},
		{"a call too early", plainPrompt, "limits", func(s *stage) {
			s.whole()
			s.calls(ownerChat, 30)
			s.calls(ownerChat, 0)
		}},
		{"a call in another chat", plainPrompt, "", func(s *stage) {
			s.whole()
			s.calls(ownerChat, 30)
			s.calls(annChat, 0)
		}},
		{"a call after a limit whose response was cut off", "", "", func(s *stage) {
			s.calls(ownerChat, 30)
			s.Calls[0].Fault = telegram.BadJSON
			s.calls(ownerChat, 0)
		}},
		{"a call in time", plainPrompt, "", func(s *stage) {
			s.whole()
			s.calls(ownerChat, 30)
			s.now = s.now.Add(time.Minute)
			s.calls(ownerChat, 0)
		}},
		{"a message that is still owed", plainPrompt, "owed", func(s *stage) {
			s.whole()
			s.Stored.Owed = []string{"stop/1"}
		}},
		{"updates that nobody took", plainPrompt, "acknowledged", func(s *stage) {
			s.whole()
			s.Pending = 2
		}},
		{"a secret in the log", plainPrompt, "secret", func(s *stage) {
			s.whole()
			s.Texts["log"] = "the key is hush-hush"
		}},
		{"a secret that a message showed once", plainPrompt, "secret", func(s *stage) {
			s.whole()
			c := s.chat(ownerChat)
			m := &c.History[len(c.History)-1]
			m.Versions = append([]telegram.Version{{Text: "hush-hush"}}, m.Versions...)
		}},
		{"half of a secret that a message showed once", plainPrompt, "secret", func(s *stage) {
			s.whole()
			c := s.chat(ownerChat)
			m := &c.History[len(c.History)-1]
			m.Versions = append([]telegram.Version{{Text: "the key is hush-"}}, m.Versions...)
		}},
		{"a secret in a file", plainPrompt, "secret", func(s *stage) {
			s.whole()
			s.Documents["answer.md"] = "hush-hush"
		}},
		{"a user who says the secret", plainPrompt, "", func(s *stage) {
			s.whole()
			s.says("owner", ownerChat, "hush-hush")
		}},
		{"all that worlds find themselves", plainPrompt, "database left alive", func(s *stage) {
			s.whole()
			s.Stored.Damage = []string{"page 3 is torn"}
			s.Left, s.Troubles = []string{"a goroutine"}, []string{"panic: nil"}
		}},
	}
}

func verdictsOfStrangers() []verdict {
	return []verdict{
		{"a stranger is answered", plainPrompt, "stranger", func(s *stage) {
			s.whole()
			s.shows(malloryChat, s.says("mallory", malloryChat, "hello"), "Hi!")
		}},
		{"a stranger is not answered", plainPrompt, "", func(s *stage) {
			s.whole()
			s.says("mallory", malloryChat, "hello")
		}},
		{"a stranger's prompt runs", "mallory says p1: run\n", "stranger", func(s *stage) {
			s.says("mallory", malloryChat, "p1")
			s.agent(Effect, "p1", "p1.0")
		}},
		{"a viewer's prompt runs", "bob says p1: run\n", "stranger", func(s *stage) {
			s.says("bob", ownerChat, "p1")
			s.agent(Effect, "p1", "p1.0")
		}},
	}
}
