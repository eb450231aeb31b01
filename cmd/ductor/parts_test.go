package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
	"ductor/internal/store"
	"ductor/orchestrator"
)

// asked stops the app and returns the prompts of a conversation.
func (town *town) asked(in orchestrator.ConversationID) (prompts []orchestrator.Prompt) {
	t := town.t
	t.Helper()
	town.stop()
	db, err := store.Open(t.Context(), town.database(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conv, err := db.Conversation(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	turns, err := db.History(t.Context(), conv.Session, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range turns {
		prompts = append(prompts, turn.Prompt)
	}
	return prompts
}

var private = orchestrator.ConversationID{Chat: owner}

func csvFile(name string) telegram.File {
	return telegram.File{Name: name, MIME: "text/csv", Data: []byte("a,b\n")}
}

// A text that a user sends at once is one prompt, even if Telegram delivers it as several messages.
func TestWhatIsSentInOneGoIsOnePrompt(t *testing.T) {
	town := newTown(t, nil)
	owner, joined := town.chat.Person(), telegram.InOneGo()
	forwarded, ok := telegram.Forwarding(town.srv.Person(555, "Bob")), `[[text "ok"]]`
	lines := strings.Repeat("a line of a log\n", 140) // 2240 units
	cases := []struct {
		send  func()
		want  string
		files int
	}{
		{func() { // a comment and its forward
			owner.Send(town.chat, "What does this error mean? "+ok)
			owner.Send(town.chat, "index out of range", forwarded, joined)
		}, "What does this error mean? " + ok + "\n[Forwarded from \"Bob\", not by the user]\n> index out of range", 0},
		{func() { // several forwards
			owner.Send(town.chat, "log line 0", forwarded)
			owner.Send(town.chat, "log line 1", forwarded, joined)
			owner.Send(town.chat, "log line 2 "+ok, forwarded, joined)
		}, "[Forwarded from \"Bob\", not by the user]\n> log line 0\n> log line 1\n> log line 2 " + ok, 0},
		{func() { // a comment and a forwarded file
			owner.Send(town.chat, "Sum up this file "+ok)
			owner.SendDocument(town.chat, csvFile("d.csv"), forwarded, joined)
		}, "Sum up this file " + ok + "\n[Forwarded from \"Bob\", not by the user]\n", 1},
		{func() { // a comment and its files
			owner.Send(town.chat, "Join these two tables "+ok)
			owner.SendAlbum(town.chat, []telegram.File{csvFile("a.csv"), csvFile("b.csv")}, joined)
		}, "Join these two tables " + ok, 2},
		{func() { // a paste that was cut at a blank line
			owner.Send(town.chat, lines)
			owner.Send(town.chat, "END OF PASTE "+ok, joined)
		}, lines + "END OF PASTE " + ok, 0},
	}
	for i, c := range cases {
		release := town.srv.Hold()
		c.send()
		release(0)
		town.awaitDone(i + 1)
	}
	asked := town.asked(private)
	if len(asked) != len(cases) {
		t.Fatalf("%d prompts, want %d:\n%s", len(asked), len(cases), town.chat.Transcript())
	}
	for i, c := range cases {
		if asked[i].Text != c.want || len(asked[i].Attachments) != c.files {
			t.Errorf("the agent was asked %q with %d files, want %q", asked[i].Text, len(asked[i].Attachments), c.want)
		}
	}
}

// If a client splits a long command, the rest belongs to the command.
func TestTheRestOfASplitCommand(t *testing.T) {
	town := newTown(t, nil)
	release := town.srv.Hold()
	town.chat.Person().Send(town.chat, "/cron every day at 9 "+strings.Repeat("look at the log ", 160))
	town.chat.Person().Send(town.chat, "and END OF COMMAND", telegram.InOneGo())
	release(0)
	town.press("✅ Add")
	town.say(`[[text "the next prompt"]]`)
	if m := town.awaitDone(1); !strings.Contains(m.Text, "the next prompt") || len(ended(town.chat.View())) != 1 {
		t.Errorf("the rest ran:\n%s", town.chat.Transcript())
	}
	town.stop()
	db, err := store.Open(t.Context(), town.database(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if jobs, err := db.Jobs(t.Context()); err != nil || len(jobs) != 1 ||
		!strings.HasSuffix(jobs[0].Job.Prompt, "look at the log\nand END OF COMMAND") {
		t.Errorf("the jobs are %+v, %v", jobs, err)
	}
}

// The bot gets the files of an album if one of their captions mentions it.
func TestAnAlbumWhoseLastCaptionNamesTheBot(t *testing.T) {
	const id = -100
	town := newTown(t, func(c *config.Config) { c.Telegram.AllowedGroups = []int64{id} })
	group, owner := town.srv.Supergroup(id, "Team"), town.chat.Person()
	owner.SendAlbum(group, []telegram.File{csvFile("not.csv"), csvFile("for.csv"), csvFile("us.csv")})
	owner.SendAlbum(group, []telegram.File{csvFile("1.csv"), csvFile("2.csv"), csvFile("3.csv")},
		telegram.WithLastCaption(`@ductor_bot compare them [[text "compared"]]`))
	if _, err := group.AwaitText(town.soon(), "compared"); err != nil {
		town.fatal(err)
	}
	asked := town.asked(orchestrator.ConversationID{Chat: id})
	if len(asked) != 1 || len(asked[0].Attachments) != 3 || asked[0].Attachments[0].Name != "1.csv" {
		t.Errorf("the agent was asked %+v", asked)
	}
}

// A forward that arrives after the turn of its comment began is added to that turn.
func TestALateForwardSteersItsTurn(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	town.chat.Person().Send(town.chat, `[[text "ready"]]`)
	town.awaitDone(1)
	release := town.srv.Hold()
	town.chat.Person().Send(town.chat, `[[start]] [[tool cmd="touch begun; until [ -e go ]; do sleep 0.05; done"]]`)
	town.chat.Person().Send(town.chat, `[[text "I saw what was forwarded"]]`,
		telegram.Forwarding(town.srv.Person(555, "Bob")), telegram.InOneGo())
	release(1)
	awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "begun"))
	release(0)
	town.say(`[[text "the next prompt"]]`)
	town.await("next in line") // so the earlier messages are in place
	if err := os.WriteFile(filepath.Join(town.cfg.Projects.DefaultDir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	town.awaitDone(3)
	if m := ended(town.chat.View())[1]; !strings.Contains(m.Text, "I saw what was forwarded") {
		t.Errorf("it is a turn of its own:\n%s", town.chat.Transcript())
	}
}

// If an agent accepts no input while it works, a button restarts the turn with both messages.
func TestStartingOverWithALateForward(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode, c.Agents.Default = "bypass", "gemini" })
	release := town.srv.Hold()
	town.chat.Person().Send(town.chat, `What is this? [[start]] [[tool cmd="touch begun; [ -e go ] || sleep 600"]]`)
	town.chat.Person().SendDocument(town.chat, csvFile("late.csv"), telegram.InOneGo())
	release(1)
	awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "begun"))
	release(0)
	queued := town.awaitButton("🔁 Start over with both")
	if err := os.WriteFile(filepath.Join(town.cfg.Projects.DefaultDir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	town.pressOn(queued, "🔁 Start over with both")
	town.awaitDone(2)
	asked := town.asked(private)
	if last := asked[len(asked)-1]; len(asked) != 2 || !strings.HasPrefix(last.Text, "What is this?") ||
		len(last.Attachments) != 1 {
		t.Errorf("the agent was asked %+v", asked)
	}
}

// The agent receives a user's formatting as Markdown, in all parts of a prompt.
func TestFormattingReachesTheAgent(t *testing.T) {
	town := newTown(t, nil)
	owner, bob := town.chat.Person(), town.srv.Person(555, "Bob")
	link := func(offset int) telegram.SendOption {
		return telegram.WithEntities(telegram.Entity{Type: "text_link", Offset: offset, Length: 4,
			URL: "https://example.org/?id=42"})
	}
	owner.Send(town.chat, `🎉 Read this [[text "read"]]`, link(8))
	town.awaitDone(1)
	owner.SendDocument(town.chat, csvFile("d.csv"), telegram.WithCaption(`see this [[text "seen"]]`), link(4))
	town.awaitDone(2)
	owner.Send(town.chat, `big news [[text "new"]]`, telegram.Forwarding(bob), link(4))
	town.awaitDone(3)
	owner.Send(town.chat, "why?\nx := 1\nfails [[text \"so\"]]",
		telegram.WithEntities(telegram.Entity{Type: "pre", Offset: 5, Length: 6, Language: "go"}))
	town.awaitDone(4)
	for i, p := range town.asked(private) {
		if want := []string{
			"🎉 Read [this](https://example.org/?id=42)", "see [this](https://example.org/?id=42)",
			"> big [news](https://example.org/?id=42)", "why?\n```go\nx := 1\n```\nfails",
		}[i]; !strings.Contains(p.Text, want) {
			t.Errorf("the agent was asked %q, want %q", p.Text, want)
		}
	}
}

// Later parts of a waiting prompt are added to it.
func TestALatePartOfAPromptThatWaits(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	town.say(`[[start]] [[tool cmd="touch begun; until [ -e go ]; do sleep 0.05; done"]]`)
	awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "begun"))
	town.await("touch begun") // no message of the bot comes between those of the user
	release := town.srv.Hold()
	town.say(`Sum this up [[text "summed up"]]`)
	town.chat.Person().SendDocument(town.chat, csvFile("late.csv"), telegram.InOneGo())
	release(1)
	town.await("next in line")
	release(0)
	town.say(`[[text "the last"]]`)
	town.await("2 ahead") // the comment and the running turn: the file is not a separate prompt
	if err := os.WriteFile(filepath.Join(town.cfg.Projects.DefaultDir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	town.await("the last")
	town.awaitDone(3)
	if asked := town.asked(private); len(asked) != 3 || !strings.HasPrefix(asked[1].Text, "Sum this up") ||
		len(asked[1].Attachments) != 1 {
		t.Errorf("the agent was asked %+v", asked)
	}
}
