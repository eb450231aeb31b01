package judge

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/scenario"
)

// Rules returns all rules, in the order in which docs/reliability.md lists them.
func Rules() []Rule {
	return []Rule{
		{"once", "Nothing runs twice without being asked for", repeatedEffects},
		{"ran", "Every accepted message runs, and every job when its time comes, or the chat says that it did not",
			lostPrompts},
		{"order", "A conversation's messages run in the order in which they came", misorderedPrompts},
		{"edited", "A message that is edited while it waits runs as it is then, and not as it was", outdatedPrompts},
		{"shown", "Every answer is shown completely, once and in order, or is marked as unknown with Show again",
			wronglyShownWords},
		{"here", "No other chat is shown an answer", misplacedWords},
		{"approved", "What needs an approval happens only after a user who may allowed what was shown, and never " +
			"after a denial", unapprovedEffects},
		{"aborted", "After an abort nothing that came before it goes on or begins, and it ends nothing in other chats",
			effectsAfterAborts},
		{"stranger", "A user who is not listed gets nothing and causes nothing, and a viewer causes nothing",
			forbiddenUse},
		{"files", "Files are as agents left them", wrongFiles},
		{"limits", "No call goes to a chat before the time that Telegram named has passed", earlyCalls},
		{"budget", "Nothing runs when the budget is spent", promptsOverBudget},
		{"rest", "No message says that something runs or waits when nothing does", unfinishedMessages},
		{"owed", "Every message that a chat is owed is sent, and shows its end", owedMessages},
		{"acknowledged", "Every update is taken", unacknowledgedUpdates},
		{"secret", "No secret is shown, logged or stored", leakedSecrets},
		{"database", "The database passes its checks", func(f *facts) []Violation { return listOf(f.Stored.Damage) }},
		{"left", "No process, goroutine, descriptor, file or lock is left", func(f *facts) []Violation {
			return listOf(f.Left)
		}},
		{"alive", "ductor neither panics nor hangs, and starts again", func(f *facts) []Violation {
			return listOf(f.Troubles)
		}},
	}
}

func listOf(found []string) (all []Violation) {
	for _, detail := range found {
		all = append(all, Violation{Detail: detail})
	}
	return all
}

// repeatedEffects finds effects that happened more often than the prompt was allowed to run (see runs).
func repeatedEffects(f *facts) (all []Violation) {
	for _, token := range slices.Sorted(maps.Keys(f.effects)) {
		count := map[string]int{}
		for _, e := range f.effects[token] {
			count[e.Name]++
		}
		most := f.runs(token)
		for _, name := range slices.Sorted(maps.Keys(count)) {
			if count[name] > most {
				all = append(all, Violation{Token: token,
					Detail: fmt.Sprintf("%s happened %d times, and may %d times", name, count[name], most)})
			}
		}
	}
	return all
}

// lostPrompts finds prompts that neither had an effect nor got an answer or another reply.
func lostPrompts(f *facts) (all []Violation) {
	for _, token := range f.tokens {
		s := f.sent[token]
		_, job := f.jobs[token]
		said := listed(s.By) && s.Old == "" && !job && s.ID != 0
		if (said || s.By == Webhook) && f.vanished(s) {
			all = append(all, Violation{Token: token, Detail: "nothing of it ran, and no message says so"})
		}
		if job && f.missed(s) {
			all = append(all, Violation{Token: token, Detail: "its time came, and nothing of it ran"})
		}
	}
	return all
}

// missed reports whether a confirmed job left no trace although it was due. It returns false if a user stopped or
// changed the job.
func (f *facts) missed(s Sent) bool {
	if f.hurt(s.In) || len(f.events[s.Token]) > 0 || f.stopped(s.Token) {
		return false
	}
	added, ok := f.added(s)
	if !ok {
		return false
	}
	c, _ := f.chat(s.In)
	heard := func(m telegram.Message) bool {
		return c.place(m) == s.In && m.ID > added.Message &&
			(mentions(m.Text, s.Token) || strings.Contains(m.Text, "⚠️"))
	}
	due := added.At.Add(f.jobs[s.Token].After + f.jobs[s.Token].Every)
	return due.Add(jobPatience).Before(f.Ended) && !f.diedBetween(f.Ended.Add(-jobPatience), f.Ended) &&
		!f.waits(c)[s.In] && !slices.ContainsFunc(c.said(), heard)
}

// jobPatience is how long ductor may need to start a job that is due.
const jobPatience = 3 * time.Minute

// added returns the press of the button that added a job. It returns false in these cases:
//   - No user has added the job.
//   - ductor may have lost the job when it stopped.
//   - A user may have changed the job later, by pressing a button in the same conversation.
func (f *facts) added(s Sent) (added Press, ok bool) {
	for _, p := range f.Presses {
		switch {
		case !listed(p.By) || p.In != s.In:
		case isOne(p.Label, scenario.AddJob) && f.pressed(p, s.Token) && says(p.Answer, "cron.added"):
			added, ok = p, true
		case !isOne(p.Label, scenario.AddJob, scenario.AllowOnce, scenario.Deny, scenario.AllowSession,
			scenario.AllowRule, scenario.ShowAgain, scenario.RunAgain):
			ok = false
		}
	}
	return added, ok && !slices.ContainsFunc(f.Stops, func(stop Stop) bool { return f.wasLost(stop, added.At, 0) })
}

// vanished reports whether a prompt left no trace, although no user stopped it.
func (f *facts) vanished(s Sent) bool {
	if f.hurt(s.In) || len(f.events[s.Token]) > 0 || f.stopped(s.Token) {
		return false
	}
	c, _ := f.chat(s.In)
	heard := func(m telegram.Message) bool { return f.shows(m, s.Token) || isReason(m, s.Token) }
	return !f.waits(c)[s.In] && len(f.replies(s)) == 0 && !f.refused(c, s) && !f.asked(c, s) &&
		!slices.ContainsFunc(c.said(), heard)
}

// isReason reports whether a card shows a prompt as the reason of a denied request.
func isReason(m telegram.Message, token scenario.Token) bool {
	return strings.HasPrefix(m.Text, "⛔") && mentions(m.Text, token)
}

// refused reports whether the chat shows that a message was rejected or failed. It checks only messages of the bot that
// are not older than the user's message. If ductor may have added the message to a running turn, the turn's card may be
// older, and has to show its failure after the message came. Warnings about the disk do not count, because ductor does
// not drop the user's message when it sends such a warning.
func (f *facts) refused(c Chat, s Sent) bool {
	return slices.ContainsFunc(c.said(), func(m telegram.Message) bool {
		warns := m.ReplyTo == 0 && strings.Contains(m.Text, "⚠️") &&
			!says(m.Text, "updates.disk-full", "updates.disk-failed")
		failed := warns || has(m, again()...)
		if failed && f.joins(s.Token) && len(m.Versions) > 0 && !m.Versions[len(m.Versions)-1].At.Before(s.At) {
			return c.place(m) == s.In
		}
		return c.place(m) == s.In && !m.Date.Before(s.At) && (failed ||
			says(m.Text, "updates.queue-full", "updates.crowded", "updates.not-stored", "updates.not-fetched",
				"updates.broke", "updates.gave-up", "approval.agent-gone", "updates.dropped"))
	})
}

// shows reports whether a message contains words of an answer. A title or a quote of the prompt does not count.
func (f *facts) shows(m telegram.Message, token scenario.Token) bool {
	return len(f.wordsOf(m)[token]) > 0
}

// asked reports whether the chat contained an open question when a message was sent. If so, the message may be the
// answer.
func (f *facts) asked(c Chat, s Sent) bool {
	return slices.ContainsFunc(c.History, func(m telegram.Message) bool {
		return m.From.Bot && !m.Date.After(s.At) && slices.ContainsFunc(m.Versions, func(v telegram.Version) bool {
			return says(v.Text, "approval.asks", "approval.reply-with-reason", "approval.send-reason",
				"approval.reply-with-answer")
		})
	})
}

// misorderedPrompts finds prompts that did not run in the order in which users sent them, although no user changed the
// order.
func misorderedPrompts(f *facts) (all []Violation) {
	last := map[scenario.Place]Sent{}
	for _, token := range f.tokens {
		s := f.sent[token]
		if len(f.effects[token]) == 0 || s.ID == 0 || !f.plain(token) {
			continue
		}
		before, ok := last[s.In]
		if ok && f.effects[token][0].At.Before(f.effects[before.Token][0].At) && before.ID < s.ID {
			all = append(all, Violation{Token: token,
				Detail: "ran before " + string(before.Token) + ", which came earlier"})
		}
		last[s.In] = s
	}
	return all
}

// plain reports whether a prompt runs in the order of the queue, because nothing in the scenario can change its
// position.
func (f *facts) plain(token scenario.Token) bool {
	if _, job := f.jobs[token]; job || f.sent[token].Old != "" {
		return false
	}
	for _, step := range f.Scenario.Steps {
		switch step := step.(type) {
		case scenario.PressAny, scenario.Edit, scenario.Updates, scenario.Send, scenario.Schedule:
			return false
		case scenario.Press:
			if slices.Contains(append(again(), scenario.Interrupt, scenario.Steer), step.Button) {
				return false
			}
		case scenario.Type:
			if strings.HasPrefix(string(step.Text), "/queue") {
				return false
			}
		case scenario.Stop:
			if step.How == scenario.Power {
				return false
			}
		}
	}
	return true
}

// misplacedWords finds words of an answer that the bot showed outside of the conversation of the prompt.
func misplacedWords(f *facts) (all []Violation) {
	for _, c := range f.Chats {
		for _, m := range c.said() {
			if !m.From.Bot || len(f.wordsOf(m)) == 0 {
				continue
			}
			for _, token := range slices.Sorted(maps.Keys(f.wordsOf(m))) {
				s := f.sent[token]
				if s.ID != 0 && c.place(m) != s.In && !f.hurt(s.In) {
					all = append(all, Violation{Token: token,
						Detail: fmt.Sprintf("%s shows it: %s", c.place(m), start(m.Text))})
				}
			}
		}
	}
	return all
}

// outdatedPrompts checks messages that a user edited while they were in the queue. It finds messages whose old text
// ran, and messages whose new text did not run. If a user had pressed a button to run a message again, the old text may
// have run before the edit. The old text may also have run if ductor lost the record of the run: Telegram may deliver an
// edit late, so ductor may have stopped in between.
func outdatedPrompts(f *facts) (all []Violation) {
	for _, s := range f.Sent {
		if s.Old == "" || !f.tookEdit(s) {
			continue
		}
		waitsAgain := f.pressesOf(s.Old, again()...) > 0
		if slices.ContainsFunc(f.events[s.Old], func(e AgentEvent) bool {
			return !f.tookBack(e) && !(waitsAgain && e.At.Before(s.At))
		}) {
			all = append(all, Violation{Token: s.Old, Detail: "ran, although it was changed while it waited"})
		}
		if len(f.events[s.Token]) == 0 && !f.stopped(s.Token) && !f.hurt(s.In) &&
			len(f.prompts[s.Token].Effects()) > 0 && len(f.replies(s)) == 0 {
			all = append(all, Violation{Token: s.Token, Detail: "did not run, although the message was changed to it"})
		}
	}
	return all
}

// tookEdit reports whether the bot confirmed that a waiting message was changed.
func (f *facts) tookEdit(s Sent) bool {
	if slices.ContainsFunc(f.Sent, func(o Sent) bool {
		return o != s && o.Old != "" && o.Chat == s.Chat && o.ID == s.ID
	}) {
		return false
	}
	for _, c := range f.Chats {
		for _, m := range c.History {
			if c.ID == s.Chat && m.ID == s.ID {
				return slices.ContainsFunc(m.Reactions, func(r telegram.Reaction) bool {
					return strings.HasPrefix(r.Emoji, "✍")
				})
			}
		}
	}
	return false
}

// forbiddenUse finds messages and answers of the bot to strangers. It also finds prompts that an agent got although
// their sender is a stranger or may only read.
func forbiddenUse(f *facts) (all []Violation) {
	for _, c := range f.Chats {
		if scenario.Person(c.Name) != scenario.Mallory {
			continue
		}
		for _, m := range c.History {
			if m.From.Bot {
				all = append(all, Violation{Detail: "a stranger was sent " + start(m.Text)})
			}
		}
	}
	for _, token := range f.tokens {
		s := f.sent[token]
		if mayNot := s.By == scenario.Bob || s.By == scenario.Mallory && private(s.In); mayNot &&
			len(f.events[token]) > 0 {
			all = append(all, Violation{Token: token, Detail: "ran for " + string(s.By)})
		}
	}
	for _, p := range f.Presses {
		if p.By == scenario.Mallory && p.Answer != "" && private(p.In) {
			all = append(all, Violation{Detail: fmt.Sprintf("a stranger's press of %s was answered %q", p.Label,
				p.Answer)})
		}
	}
	return all
}

// owedMessages finds messages that ductor still has to send or edit, although all work is done.
func owedMessages(f *facts) (all []Violation) {
	for _, key := range f.Stored.Owed {
		all = append(all, Violation{Detail: "message " + key + " is still owed"})
	}
	return all
}

func unacknowledgedUpdates(f *facts) []Violation {
	if f.Pending == 0 {
		return nil
	}
	return []Violation{{Detail: fmt.Sprintf("%d updates were not taken", f.Pending)}}
}

// leakedSecrets finds Evidence.Secret in Evidence.Texts, in documents, and in all versions of the bot's messages.
func leakedSecrets(f *facts) (all []Violation) {
	if f.Secret == "" {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(f.Texts)) {
		if strings.Contains(f.Texts[name], f.Secret) {
			all = append(all, Violation{Detail: "it is in " + name})
		}
	}
	for _, c := range f.Chats {
		for _, m := range c.History {
			for _, v := range m.Versions {
				// A message must not even show the first half of the secret.
				if m.From.Bot && strings.Contains(v.Text, f.Secret[:len(f.Secret)/2]) {
					all = append(all, Violation{Detail: fmt.Sprintf("message %d in %s showed it", m.ID, c.Name)})
					break
				}
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(f.Documents)) {
		if strings.Contains(f.Documents[id], f.Secret) {
			all = append(all, Violation{Detail: "the file " + id + " has it"})
		}
	}
	return all
}

// start returns the beginning of a text, to be shown in a violation.
func start(text string) string {
	if r := []rune(text); len(r) > 60 {
		text = string(r[:60]) + "…"
	}
	return strconv.Quote(text)
}
