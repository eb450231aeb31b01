package main

import (
	"strings"
	"testing"

	"ductor/internal/sim/telegram"
)

// A prompt quotes the message to which it replies, unless that is the last answer in the session. It includes the
// message's file.
func TestAReplyKeepsItsSubject(t *testing.T) {
	town := newTown(t, nil)
	owner, n := town.chat.Person(), 0
	answered := func() telegram.Message { t.Helper(); n++; return town.awaitDone(n) }
	reply := func(to telegram.Message, text string) {
		owner.Send(town.chat, text+` [[text "so"]]`, telegram.ReplyTo(to.ID))
	}
	town.say(`[[text "The flux capacitor needs 1.21 gigawatts."]]`)
	first := answered()
	reply(first, "of the newest answer")
	answered()
	reply(first, "of an older one")
	answered()
	sent := owner.SendDocument(town.chat, csvFile("power.csv"), telegram.WithCaption(`look [[text "seen"]]`))
	answered()
	reply(sent, "of a file")
	answered()
	so := ` [[text "so"]]`
	want := []struct{ before, words string }{
		{"", `[[text "The flux capacitor needs 1.21 gigawatts."]]`},
		{"", "of the newest answer" + so},
		{"[In reply to you]\n> The flux capacitor needs 1.21 gigawatts.\n", "\n\nof an older one" + so},
		{"", `look [[text "seen"]]`},
		{"[In reply to \"Owner\"]\n> look [[text \"seen\"]]\n\n[The file \"power.csv\" is that of the message that this replies to]\n", "of a file" + so},
	}
	for i, p := range town.asked(private) {
		w := want[i]
		if !strings.HasPrefix(p.Text, w.before) || !strings.HasSuffix(p.Text, w.words) || w.before == "" &&
			p.Text != w.words || len(p.Attachments) != i/3 {
			t.Errorf("prompt %d is %q with %d files, want %q and %q", i, p.Text, len(p.Attachments), w.before, w.words)
		}
	}
	town.start()
	town.say("/new")
	town.await("New session")
	reply(first, "after /new")
	answered()
	asked := town.asked(private)
	if p := asked[0].Text; len(asked) != 1 ||
		!strings.HasPrefix(p, "[In reply to you, in another session]\n> The flux capacitor needs 1.21 gigawatts.") {
		t.Errorf("the new session was asked %q", p)
	}
}

// A reply to the report of a job includes the report, which the session does not contain.
func TestAReplyToAReportCarriesIt(t *testing.T) {
	town := newTown(t, nil)
	town.say(`[[text "a session begins"]]`)
	town.awaitDone(1)
	town.say(`/cron every weekday at 8:30 [[text "1. the CI is green 2. the disk is full"]]`)
	town.press("✅ Add")
	town.press("🚀 Run now")
	report := town.awaitDone(2)
	town.chat.Person().Send(town.chat, `fix the second one [[text "fixed"]]`, telegram.ReplyTo(report.ID))
	town.awaitDone(3)
	asked := town.asked(private)
	if last := asked[len(asked)-1].Text; !strings.HasPrefix(last, "[In reply to the report of the job ") ||
		!strings.Contains(last, "\n> 1. the CI is green 2. the disk is full\n") {
		t.Errorf("the agent was asked %q", last)
	}
}
