package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
	"ductor/internal/store"
	"ductor/orchestrator"
)

// Speech, pictures and files reach the waiting turn in reply to a question or after "Own words". In a private chat,
// the next text answers the only open question, and a button corrects that.
func TestAnswersReachTheTurnThatWaits(t *testing.T) {
	town := listeningTown(t, `cat "$1"`, func(c *config.Config) { c.Agents.Default = "codex" })
	owner := town.chat.Person()
	asked, n := telegram.Message{}, 0
	ask := func() {
		t.Helper()
		n++
		town.say(`[[start]] [[question "Which database?" echo=1]] [[text " is the answer"]]`)
		before := asked
		asked = town.awaitMessage(func(m telegram.Message) bool {
			return m.ID > before.ID && m.HasButton("✖ Don't answer")
		})
		town.awaitKnown(asked) // users are slower than that
	}
	answered := func(with string) {
		t.Helper()
		if m := town.awaitDone(n); !strings.Contains(m.Text, with) || !strings.Contains(m.Text, "is the answer") {
			t.Errorf("the turn got %q, want %q", m.Text, with)
		}
	}
	ask()
	owner.SendVoice(town.chat, []byte("use MariaDB"), telegram.ReplyTo(asked.ID))
	answered("use MariaDB")

	ask()
	owner.SendDocument(town.chat, csvFile("schema.csv"), telegram.WithCaption("as in this file"),
		telegram.ReplyTo(asked.ID))
	answered("as in this file")
	if m := town.awaitDone(n); !strings.Contains(m.Text, `[Attached file "schema.csv" (text/csv): `) {
		t.Errorf("the file is not named: %q", m.Text)
	}

	ask()
	town.pressOn(asked, "✍ Own words…")
	owner.SendVoice(town.chat, []byte("use Postgres"))
	answered("use Postgres")

	ask()
	sent := town.say(`take SQLite [[text "as a prompt"]]`)
	answered("take SQLite")
	guessed := town.awaitButton("✖ No, a new prompt")
	if guessed.ReplyTo != sent.ID {
		t.Errorf("it replies to %d, want %d", guessed.ReplyTo, sent.ID)
	}
	town.pressOn(guessed, "✖ No, a new prompt")
	n++
	if m := town.awaitDone(n); !strings.Contains(m.Text, "as a prompt") {
		t.Errorf("the new prompt is answered %q", m.Text)
	}
	town.awaitNoButton("✖ No, a new prompt")
	town.say(`[[text "an ordinary prompt"]]`)
	n++
	if m := town.awaitDone(n); !strings.Contains(m.Text, "an ordinary prompt") {
		t.Errorf("it is answered %q", m.Text)
	}
}

// awaitKnown waits until ductor knows the id of a running turn's message. Before that, it does not recognize answers
// to it.
func (town *town) awaitKnown(m telegram.Message) {
	town.t.Helper()
	db, err := store.OpenReadOnly(town.t.Context(), town.database(), store.Options{})
	if err != nil {
		town.t.Fatal(err)
	}
	defer db.Close()
	for ctx := town.soon(); ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		turns, err := db.OpenTurns(ctx)
		for _, turn := range turns {
			messages, err2 := db.MessagesOf(ctx, turn.ID)
			err = errors.Join(err, err2)
			if slices.ContainsFunc(messages, func(stored orchestrator.Message) bool { return stored.ID == int(m.ID) }) {
				return
			}
		}
		if err != nil {
			town.t.Fatal(err)
		}
	}
	town.fatal(fmt.Errorf("ductor does not learn the number of message %d", m.ID))
}
