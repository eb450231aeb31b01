package main

import (
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/naming"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
)

// A chat asks a model beside its session, continues by a reply and by the command, and stops a long question. The
// chat says if a model cannot read files.
func TestAChatConsultsAModel(t *testing.T) {
	town := newTown(t, func(cfg *config.Config) { cfg.Models = map[string]naming.Alias{"other": {Use: "codex"}} })
	town.say("/consult")
	town.await("Ask another model while your agent goes on")
	town.say(`/consult codex Is it so? [[text "It *is* so:"]] [[text "\n\n- a"]]`)
	m := town.await("💬 Codex")
	if !strings.Contains(m.Text, "It is so:") || !strings.Contains(m.Text, "it couldn't read files") ||
		m.ReplyTo == 0 {
		t.Errorf("the answer: %+v", m)
	}
	town.chat.Person().Send(town.chat, `And why? [[text "Because."]]`, telegram.ReplyTo(m.ID))
	town.await("Because.")
	town.say(`/consult claude Is it? [[text "It is."]]`)
	if m := town.await("💬 Claude"); strings.Contains(m.Text, "read files") {
		t.Errorf("the answer of a model that reads files: %q", m.Text)
	}
	town.say(`/consult codex Then? [[text "Then it is."]]`)
	town.await("Then it is.")
	town.say(`/consult nobody knows it better? [[text "Nobody."]]`)
	town.await("Nobody.")
	town.say("/consult codx what?")
	town.await("codex")
	town.say(`/consult @other Long? [[sleep 1m]] [[text "never"]]`)
	town.await("Waiting for Codex to answer…\nCodex can't read files here, so put what it needs into your")
	town.say("/abort")
	town.await("1 question to a model has ended.")
	town.await("Stopped: there is no answer.")
}

// The answer of a model belongs to the session of the chat. A button gives it to the chat's agent, once, and another one
// asks on. Both work after a restart. A user who may only read gives nothing.
func TestAnAnswerIsGivenToTheAgent(t *testing.T) {
	const team = -1000000000001
	town := newTown(t, func(cfg *config.Config) {
		cfg.Telegram.AllowedUsers, cfg.Telegram.AllowedGroups = []int64{owner, neighbour}, []int64{team}
		cfg.Users = map[string]config.User{"1": {Role: config.UserOwner}, "2": {Role: config.UserViewer}}
		cfg.Telegram.GroupTrigger, cfg.Rate.GroupPerMinute = "all", 6000
	})
	ann, viewer := town.chat.Person(), town.srv.Person(neighbour, "Vera")
	town.chat = town.srv.Supergroup(team, "Team")
	in := orchestrator.ConversationID{Chat: team}
	say := func(text string, as ...telegram.SendOption) { ann.Send(town.chat, text, as...) }
	say(`/consult codex Which lock? [[text "A mutex."]]`)
	answer := town.await("A mutex.")
	a, err := viewer.Press(town.soon(), answer, "➡️ Give to Claude")
	if err != nil || !strings.Contains(a.Text, "not change anything") {
		t.Errorf("a viewer: %+v, %v", a, err)
	}
	say("/model codex")
	town.await("next message goes to Codex")
	if a := town.pressAs(ann, answer, "➡️ Give to Claude"); !strings.Contains(a.Text, "This chat uses Codex now") {
		t.Errorf("after another agent was chosen: %q", a.Text)
	}
	say("/model claude")
	town.await("next message goes to Claude")
	town.leave()
	town.start()
	if a := town.pressAs(ann, town.awaitButton("➡️ Give to Codex"), "➡️ Give to Codex"); !strings.Contains(a.Text,
		"This chat uses Claude now") {
		t.Errorf("after the first agent was chosen again: %q", a.Text)
	}
	a = town.pressAs(ann, town.awaitButton("➡️ Give to Claude"), "➡️ Give to Claude")
	if a.Text != "✓ Given to Claude" {
		t.Errorf("the press: %q", a.Text)
	}
	town.awaitDone(1)
	a = town.pressAs(ann, town.awaitButton("✓ Given to Claude"), "✓ Given to Claude")
	if !strings.Contains(a.Text, "already") {
		t.Errorf("a second press: %q", a.Text)
	}
	town.pressAs(ann, answer, "💬 Ask more")
	how := town.await("Reply to this message with your next question to Codex.")
	say(`And why? [[text "It is simple."]]`, telegram.ReplyTo(how.ID))
	town.await("It is simple.")
	say("/sessions")
	list := town.await("Tap one to open it")
	town.pressAs(ann, list, list.Keyboard[0][0].Text)
	town.await("> Codex was asked: And why?")
	prompts := town.asked(in)
	if len(prompts) != 3 || !strings.Contains(prompts[1].Text, "Here is the advice of Codex.") ||
		!strings.Contains(prompts[1].Text, "The advice:\nA mutex.") || prompts[1].Person != owner ||
		!strings.HasPrefix(prompts[2].Text, "And why?") {
		t.Errorf("the prompts are %+v", prompts)
	}
}

// pressAs presses a button of a message, as it is now.
func (town *town) pressAs(by *telegram.Person, on telegram.Message, button string) telegram.Answer {
	town.t.Helper()
	a, err := by.Press(town.soon(), on, button)
	if err != nil {
		town.fatal(err)
	}
	return a
}

// /group shows its cost and starts with a button. The models answer, see each other's answers, and one concludes. So does
// /consult with several models.
func TestAGroupAnswers(t *testing.T) {
	town := newTown(t, func(cfg *config.Config) {
		cfg.Consult.Group = []string{"claude", "codex", "gemini"}
		cfg.Models = map[string]naming.Alias{"mine": {Use: "claude", Context: 200_000, Price: cli.Price{Input: 5, Output: 25}}}
	})
	town.say(`/group Which is it? [[text "It is this."]]`)
	m := town.await("These models answer side by side: Claude, Codex, Gemini. Then Claude concludes.")
	if !strings.Contains(m.Text, "1 round: 4 questions, about 6") || !strings.Contains(m.Text, "That is about $0.2") ||
		!strings.Contains(m.Text, "I don't know the price of 2 of them.") {
		t.Errorf("the offer: %q", m.Text)
	}
	town.press("2 rounds")
	town.await("2 rounds: 7 questions")
	town.press("▶️ Begin")
	town.await("⚖️ Conclusion of Claude")
	town.say("/model")
	town.awaitButton("✓ Claude")
	town.press("✓ Claude")
	town.await("200.0k tokens of context, $5.00 in, $25.00 out per million")
	town.say(`/group Again? [[text "x"]]`)
	town.awaitButton("▶️ Begin")
	town.press("✖ Cancel")
	town.await("no model was asked")
	town.say(`/consult codex, gemini And this? [[text "That one."]]`)
	town.await("These models answer side by side: Codex, Gemini. Then Codex concludes.")
	town.press("▶️ Begin")
	town.await("⚖️ Conclusion of Codex")
	for text, want := range map[string]string{
		"/consult codex,gemini":                           "What do you want to ask Codex, Gemini?",
		"/consult claude,codex,gemini,copilot,claude so?": "A group can have at most 4 models.",
		"/consult codex,gemni so?":                        "gemini",
		"/group":                                          "/consult codex,gemini",
	} {
		said := town.say("%s", text)
		town.awaitAfter(said, want)
	}
}

// After a restart, an open question is only repeated if the user presses a button. An abort while ductor is down ends
// it.
func TestAQuestionOutlivesARestart(t *testing.T) {
	town := newTown(t, nil)
	town.say("/summarize the end")
	town.await("/summarize is gone. Just ask: “Sum up this session.”")
	town.say(`hello [[text "the first answer"]]`)
	town.awaitDone(1)
	town.say(`/consult codex Long? [[sleep 1m]] [[text "never"]]`)
	town.await("Waiting for Codex to answer")
	town.leave()
	town.start()
	town.await("ductor was restarted before the answer of Codex came.")
	town.press("🔁 Ask again")
	town.await("Waiting for Codex to answer")
	town.press("⏹ Stop")
	town.await("Stopped: there is no answer.")
	town.leave()
	town.say(`/consult codex Again long? [[sleep 1m]] [[text "never"]]`)
	town.say("/abort")
	town.start()
	town.await("1 question to a model has ended.")
}

// The file of a long answer is complete, even if the chat shows only the agent's summary or the end.
func TestTheFileOfALongAnswerIsWhole(t *testing.T) {
	town := newTown(t, nil)
	for want, prompt := range map[string]string{
		"the short of it": `[[text "it begins "]] [[text n=21 size=1000]] [[text "<SUMMARY>the short of it</SUMMARY>"]]`,
		"and it ends":     `[[text "it begins "]] [[text n=21 size=1000]] [[text "and it ends"]]`,
	} {
		asked := town.say("/consult codex %s", prompt)
		file, err := town.chat.AwaitMessage(town.soon(), func(m telegram.Message) bool {
			return m.ID > asked.ID && m.Media != nil
		})
		if err != nil {
			town.fatal(err)
		}
		data, _ := town.srv.FileData(file.Media.FileID)
		if len(data) < 21_000 || !strings.HasPrefix(string(data), "it begins ") ||
			!strings.Contains(string(data), want) {
			t.Errorf("the file has %d bytes: %.60q", len(data), data)
		}
		town.awaitAfter(asked, "shortened; the file has all of it")
		town.awaitAfter(asked, want)
	}
}
