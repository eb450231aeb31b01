package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
	"ductor/internal/store"
	"ductor/orchestrator"
)

// An abort is answered first. The answer says "Stopping…" while a process of the turn lives, and then "Stopped.".
// From then on the turn's card does not change, except for a line about its files.
func TestAnAbortSaysWhenAllIsDead(t *testing.T) {
	for name, prompt := range map[string]string{
		"an agent and a tool deaf to SIGTERM": `[[start]] [[text "working"]] [[ignore-term]] [[tool cmd="trap '' TERM; touch started; sleep 600; sleep 600"]]`,
		"an agent that ends at once":          `[[start]] [[text "working"]] [[tool cmd="touch started; sleep 600"]]`,
	} {
		t.Run(name, func(t *testing.T) {
			town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
			town.say("%s", prompt)
			awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "started"))
			card := town.await("working")
			town.say("this waits")
			before := town.await("next in line")
			of := processesIn(t, town.cfg.Projects.DefaultDir)

			town.say("/abort")
			stopped := town.await("Stopped. 1 waiting message will not run.")
			for pid, command := range processesIn(t, town.cfg.Projects.DefaultDir) {
				if of[pid] == command {
					t.Errorf("it says %q while this lives: %q", stopped.Text, command)
				}
			}
			town.awaitIdle() // when /status is answered, all earlier messages have arrived
			town.checkReplyFirst(before, stopped, card)
		})
	}
}

// If ductor is killed while the reply says "Stopping…", the reply shows the outcome once the next process has ended
// the turn.
func TestTheReplyToAnAbortOutlivesDuctor(t *testing.T) {
	town := surroundings(t, nil)
	town.extra = `grace = "1m"` // the turn does not end before the kill
	o := town.ordeal(9)
	o.say(
		`[[start]] [[text "working"]] [[ignore-term]] [[tool cmd="trap '' TERM; touch started; sleep 600; sleep 600"]]`)
	awaitFile(t, filepath.Join(o.cfg.Projects.DefaultDir, "started"))
	card := o.await("working")
	o.say("this waits")
	before := o.await("next in line")
	o.say("/abort")
	reply := o.await("Stopping…")
	o.awaitStoredReply()
	o.daemon.kill()
	amend(t, o.config, `grace = "1m"`, `grace = "2s"`)
	o.rise()
	stopped := o.await("Stopped. 1 waiting message will not run.")
	if stopped.ID != reply.ID {
		t.Errorf("the chat shows, in another message: %q", stopped.Text)
	}
	o.checkNoTurnProcesses()
	o.checkReplyFirst(before, stopped, card)
}

// awaitStoredReply waits until the database contains the reply to an abort, with the content that it still has to
// show.
func (o *ordeal) awaitStoredReply() {
	o.t.Helper()
	for ctx := o.soon(); ctx.Err() == nil; time.Sleep(time.Millisecond) {
		db, err := store.OpenReadOnly(o.t.Context(), o.database(), store.Options{})
		if err != nil {
			o.t.Fatal(err)
		}
		rows, err := db.OwedMessages(o.t.Context())
		if err := errors.Join(err, db.Close()); err != nil {
			o.t.Fatal(err)
		}
		if slices.ContainsFunc(rows, func(m orchestrator.Message) bool {
			return strings.HasPrefix(m.Key, "stop/") && m.State == orchestrator.Sent
		}) {
			return
		}
	}
	o.t.Fatal("the reply to the abort is never stored")
}

// checkReplyFirst checks that the reply to an abort was the first message after before, that it came before the end of
// the card and was true, and that the card did not change after the reply said that all is over.
func (town *town) checkReplyFirst(before, reply, card telegram.Message) {
	town.t.Helper()
	sent := town.srv.Calls(telegram.Methods("sendMessage"), telegram.Succeeded)
	after := slices.IndexFunc(sent, func(c telegram.Call) bool { return c.Message > before.ID })
	if sent := sent[after]; sent.Message != reply.ID || !strings.HasPrefix(sent.Params["text"], "Stopping…") {
		town.t.Errorf("what was sent first after the abort is %q", sent.Params["text"])
	}
	var order []string
	for _, c := range town.srv.Calls(telegram.Writes, telegram.Succeeded) {
		switch text := c.Params["text"]; {
		case strings.Contains(text, "no undo"): // the line about the files comes later
		case c.Message == card.ID && (len(order) > 0 || strings.Contains(text, "Aborted")):
			order = append(order, "card")
		case c.Message == reply.ID:
			order = append(order, strings.FieldsFunc(text, func(r rune) bool { return r == '.' || r == '…' })[0])
		}
	}
	if got := strings.Join(slices.Compact(order), " "); got != "Stopping card Stopped" {
		town.t.Errorf("the chat was shown, in order: %s", got)
	}
}

// If a message waited in ductor's inbox during a restart, its footer counts from its arrival.
func TestTheFooterCountsFromTheArrivalAlsoOverARestart(t *testing.T) {
	town := surroundings(t, nil)
	arrived := time.Now().Add(-time.Hour)
	db, err := store.Open(t.Context(), town.database(), store.Options{Now: func() time.Time { return arrived }})
	if err != nil {
		t.Fatal(err)
	}
	raw := fmt.Sprintf(
		`{"update_id":1,"message":{"message_id":1,"date":%d,"text":"[[text \"late\"]]","from":{"id":%d,"first_name":"Owner"},"chat":{"id":%d,"type":"private"}}}`,
		arrived.Unix(), owner, owner)
	_, err = db.AppendUpdates(t.Context(), []orchestrator.Update{{ID: 1, Raw: []byte(raw)}})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	o := town.ordeal(8)
	m := o.awaitMessage(func(m telegram.Message) bool {
		return strings.Contains(m.Text, "late") && strings.Contains(m.Text, " · ")
	})
	if !strings.Contains(m.Text, " · 1 h 0 min") {
		t.Errorf("the footer does not say that the user waited an hour: %q", m.Text)
	}
}
