package main

import (
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/naming"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// A chat asks a model beside its session, continues by a reply and by the command, and stops a long question. The
// chat says if a model cannot read files.
func TestAChatConsultsAModel(t *testing.T) {
	town := newTown(t, func(cfg *config.Config) { cfg.Models = map[string]naming.Alias{"other": {Use: "codex"}} })
	town.say("/consult")
	town.await("/consult followed by a model")
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
	town.await("Waiting for the answer of Codex…\nCodex can't read files here, so put what it needs into your")
	town.say("/abort")
	town.await("1 question to a model has ended.")
	town.await("Stopped: there is no answer.")
}

// /group shows its cost and starts with a button. The models answer, see each other's answers, and one concludes.
func TestAGroupAnswers(t *testing.T) {
	town := newTown(t, func(cfg *config.Config) {
		cfg.Consult.Group = []string{"claude", "codex", "gemini"}
		cfg.Models = map[string]naming.Alias{"mine": {Use: "claude", Context: 200_000, Price: cli.Price{Input: 5, Output: 25}}}
	})
	town.say(`/group Which is it? [[text "It is this."]]`)
	m := town.await("These models answer side by side: Claude, Codex, Gemini. Then Claude concludes.")
	if !strings.Contains(m.Text, "1 round: 4 questions, about 6") || !strings.Contains(m.Text, "That is about $0.2") ||
		!strings.Contains(m.Text, "The price of 2 of them is not known here.") {
		t.Errorf("the offer: %q", m.Text)
	}
	town.press("2 rounds")
	town.await("2 rounds: 7 questions")
	town.press("▶️ Begin")
	town.await("⚖️ Conclusion of Claude")
	town.say("/model")
	town.awaitButton("✓ Claude")
	town.press("✓ Claude")
	town.await("reads 200.0k tokens, $5.00 in, $25.00 out per million")
	town.say(`/group Again? [[text "x"]]`)
	town.awaitButton("▶️ Begin")
	town.press("✖ Cancel")
	town.await("no model was asked")
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
	town.await("Waiting for the answer of Codex")
	town.leave()
	town.start()
	town.await("ductor was restarted before the answer of Codex came.")
	town.press("🔁 Ask again")
	town.await("Waiting for the answer of Codex")
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
		town.awaitAfter(asked, "in short, the file has all of it")
		town.awaitAfter(asked, want)
	}
}
