package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

func draftTown(t *testing.T) *town {
	t.Helper()
	return newTown(t, func(c *config.Config) { c.Permissions.Mode, c.Stream.Mode = "bypass", "draft" })
}

// awaitDraft waits until the chat shows a draft that contains part.
func (town *town) awaitDraft(part string) telegram.Draft {
	town.t.Helper()
	v, err := town.chat.Await(town.soon(), func(v telegram.View) bool {
		return len(v.Drafts) > 0 && strings.Contains(v.Drafts[0].Text, part)
	})
	if err != nil {
		town.fatal(err)
	}
	return v.Drafts[0]
}

// With stream.mode = "draft", an answer is a draft until its end, and then one message without edits. Telegram's Stop
// button acts as /abort.
func TestDraftsAndTheirStopButton(t *testing.T) {
	town := draftTown(t)
	town.say(`[[start]] [[text "I look."]] [[tool cmd="touch started; sleep 600"]]`)
	awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "started"))
	draft := town.awaitDraft("I look.")
	if len(town.chat.View().FromBot()) > 0 {
		t.Errorf("beside a draft the chat shows %+v", town.chat.View().FromBot())
	}
	of := processesIn(t, town.cfg.Projects.DefaultDir)
	eve := town.srv.Private(owner+1, "Eve")
	eve.Person().Send(eve, "hello")
	if eve.Person().StopDraft(eve, draft.ID) {
		t.Error("a stranger's chat shows the draft")
	}
	town.srv.InjectUpdate("stopped_message_generation",
		fmt.Sprintf(`{"chat": {"id": %d, "type": "private"}, "draft_id": %d}`, owner+1, draft.ID))
	if err := town.srv.AwaitAcknowledged(town.soon()); err != nil {
		t.Fatal(err)
	}
	town.awaitDraft("I look.")
	if !town.chat.Person().StopDraft(town.chat, draft.ID) {
		t.Fatal("the draft has no Stop button")
	}
	town.await("Stopped.")
	for pid, command := range processesIn(t, town.cfg.Projects.DefaultDir) {
		if of[pid] == command {
			t.Errorf("this lives after the draft was stopped: %q", command)
		}
	}
	town.await("I look.")
	town.say("and on it goes")
	if m := town.awaitDone(2); !strings.Contains(m.Text, "and on it goes") || len(m.Versions) != 1 ||
		len(town.chat.View().Drafts) > 0 {
		t.Errorf("the next answer is %+v, with the drafts %+v", m, town.chat.View().Drafts)
	}
}

// A restart during a draft loses nothing of the answer and shows it once.
func TestADraftOutlivesDuctor(t *testing.T) {
	town := draftTown(t)
	town.say(
		`[[start]] [[text "before the restart"]] [[tool cmd="touch started; while [ ! -e go ]; do sleep 0.05; done"]] [[text "after it"]]`)
	awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "started"))
	town.awaitDraft("before the restart")
	town.leave()
	town.start()
	town.makeFile("go", nil)
	m := town.awaitDone(1)
	if strings.Count(m.Text, "before the restart") != 1 || strings.Count(m.Text, "after it") != 1 ||
		len(ended(town.chat.View())) != 1 {
		t.Errorf("after a restart the chat shows %+v", town.chat.View().FromBot())
	}
}
