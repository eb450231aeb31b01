package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/store"
	"ductor/orchestrator"
)

// An agent floods its chat with messages. ductor limits the bytes of a turn, answers a command before the messages,
// and an abort discards unsent ones.
func TestAttackAnAgentFloodsItsChat(t *testing.T) {
	town := newTown(t, func(c *config.Config) {
		c.Permissions.Mode = "bypass"
		c.Rate.PrivatePerSecond, c.Rate.PrivateBurst = 0.1, 4 // the messages take minutes
	})
	ductor, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	work := town.cfg.Projects.DefaultDir
	if err := os.WriteFile(filepath.Join(work, "flood"), []byte(strings.Repeat("flooding ", 3000)), 0o600); err != nil {
		t.Fatal(err)
	}
	town.say(
		`[[start]] [[text "working"]] [[tool cmd="for i in 1 2 3; do %s send \"$(cat flood)\" 2>>refused; done; touch sent; sleep 600"]]`, ductor)
	awaitFile(t, filepath.Join(work, "sent"))
	if why, err := os.ReadFile(filepath.Join(work, "refused")); err != nil ||
		!strings.Contains(string(why), "are the limit") {
		t.Errorf("a turn sends without end: %q, %v", why, err)
	}
	town.say("/status")
	town.await("Running for")
	before := town.asides()
	if before == 0 {
		t.Fatal("all was sent before the command was answered")
	}
	town.say("/abort")
	town.await("Stopped.")
	town.await("Aborted")
	if left := town.asides(); left != 0 {
		t.Errorf("after the abort %d of %d messages are still to be sent", left, before)
	}
}

// asides counts unsent messages of agents.
func (town *town) asides() (n int) {
	town.t.Helper()
	db, err := store.OpenReadOnly(town.t.Context(), town.database(), store.Options{})
	if err != nil {
		town.t.Fatal(err)
	}
	rows, err := db.OwedMessages(town.t.Context())
	if err := errors.Join(err, db.Close()); err != nil {
		town.t.Fatal(err)
	}
	for _, row := range rows {
		if row.State == orchestrator.Pending && strings.Contains(string(row.Content), "flooding") {
			n++
		}
	}
	return n
}
