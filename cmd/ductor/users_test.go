package main

import (
	"regexp"
	"strings"
	"testing"
)

// TestAUserJoinsByALink tests that an owner's link admits one user at once, with the chosen role, that the owner is
// notified, and that changes by `ductor users` apply to the running ductor.
func TestAUserJoinsByALink(t *testing.T) {
	town := surroundings(t, nil)
	config := town.writeConfig()
	startDaemon(t, "run", "-c", config)
	if err := town.srv.AwaitPoll(town.soon()); err != nil {
		t.Fatal(err)
	}
	ann := town.srv.Private(stranger, "Ann")
	bob := town.srv.Private(stranger+1, "Bob")
	ann.Person().Send(ann, "hello")
	town.say("/pair")
	asked := town.awaitButton("Viewer")
	town.pressOn(asked, "User")
	link := regexp.MustCompile(`https://t\.me/(\w+)\?start=([A-Z2-7]{12})`).FindStringSubmatch(
		town.await("https://t.me/").Text)
	if link == nil {
		t.Fatal("there is no link")
	}
	bob.Person().Send(bob, "/start "+strings.Repeat("A", 12))
	ann.Person().Send(ann, "/start "+link[2])
	if _, err := ann.AwaitText(town.soon(), "Hi! Tell me what your agent should do"); err != nil {
		town.fatal(err)
	}
	town.await("Ann (id 66) joined by your link. Role: User.")
	bob.Person().Send(bob, "/start "+link[2])
	ann.Person().Send(ann, `[[text "an answer for Ann"]]`)
	if _, err := ann.AwaitText(town.soon(), "an answer for Ann"); err != nil {
		town.fatal(err)
	}
	ann.Person().Send(ann, "/users")
	if _, err := ann.AwaitText(town.soon(), "Only the owner can do that."); err != nil {
		town.fatal(err)
	}
	if _, said, _ := runDuctor(t, "users", "list", "-c", config); !strings.Contains(said, "66  user") ||
		strings.Contains(said, "67") {
		t.Errorf("the users are:\n%s", said)
	}
	if code, _, said := runDuctor(t, "users", "role", "66", "viewer", "-c", config); code != 0 {
		t.Errorf("the role: %s", said)
	}
	ann.Person().Send(ann, "another prompt")
	if _, err := ann.AwaitText(town.soon(), "You may read this chat, but not change anything."); err != nil {
		town.fatal(err)
	}
	for said, want := range map[string]string{"/start": "You can read along here", "/help": "/status: "} {
		ann.Person().Send(ann, said)
		if m, err := ann.AwaitText(town.soon(), want); err != nil || strings.Contains(m.Text, "Send text") {
			t.Errorf("%s tells a viewer %q, %v", said, m.Text, err)
		}
	}
	hers := *town
	hers.chat = ann
	hers.awaitIdle()
	joined := town.awaitButton("🗑 Remove")
	town.pressOn(joined, "🗑 Remove")
	town.await("Users:")
	before := len(ann.View().FromBot())
	ann.Person().Send(ann, "/status")
	town.say(`[[text "to the owner"]]`)
	town.await("to the owner")
	if n := len(ann.View().FromBot()); n != before {
		t.Errorf("a removed user got %d messages", n-before)
	}
	if n := len(bob.View().FromBot()); n != 0 {
		t.Errorf("a stranger got %d messages", n)
	}
	for want, args := range map[int][]string{
		1: {"users", "remove", "66"},
	} {
		if code, _, said := runDuctor(t, append(args, "-c", config)...); code != want ||
			!strings.Contains(said, "there is no such user") {
			t.Errorf("%q gives %d: %s", args, code, said)
		}
	}
	if code, _, said := runDuctor(t, "users", "remove", "1", "-c", config); code == 0 ||
		!strings.Contains(said, "change it there") {
		t.Errorf("a user of the configuration is removed: %s", said)
	}
}
