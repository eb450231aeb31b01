package sessions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	screen "ductor/bot/sessions"
	"ductor/cli"
	"ductor/orchestrator"
)

func (r *rig) imports(file string) {
	r.t.Helper()
	page, err := r.screen.Import(r.t.Context(), owner, []byte(file))
	r.must(err)
	r.page = page
}

// exports gives the current session as JSON.
func (r *rig) exports() string {
	r.t.Helper()
	conv, err := r.db.Conversation(r.t.Context(), here)
	r.must(err)
	r.command("")
	for _, row := range r.page.Keyboard {
		if strings.Contains(row[0].Text, "✓") {
			r.pressBy(owner, strings.TrimPrefix(row[0].Data, screen.Action+":"))
		}
	}
	r.press("JSON")
	if conv.Session == "" || fileOf(r.t, r.answer).Content == "" {
		r.t.Fatalf("nothing is exported: %+v", r.answer)
	}
	return fileOf(r.t, r.answer).Content
}

// What was exported and imported is the same session, whatever was said in it.
func TestImportGivesTheSameSession(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t)
		ctx := t.Context()
		said := rapid.Custom(func(rt *rapid.T) string {
			return rapid.SampledFrom([]string{"", "parser", "ünïcode «»", "<b>&amp;", "a\nb\u2028", "\x01{}", strings.Repeat("long ", 200)}).Draw(rt, "said")
		})
		r.must(r.db.CreateSession(ctx, orchestrator.Session{ID: "s", Conversation: here, Title: "Fix it", Dir: "/src", Created: noon, Used: noon}))
		for i := range rapid.IntRange(0, 4).Draw(rt, "turns") {
			asked := noon.Add(time.Duration(i) * time.Minute)
			turn := orchestrator.Turn{
				ID: cli.TurnID(fmt.Sprint("t", i)), Session: "s", State: orchestrator.TurnQueued, Queued: asked, Agent: "codex",
				Prompt: orchestrator.Prompt{Conversation: here, Person: 1, Text: said.Draw(rt, "prompt")},
			}
			if rapid.Bool().Draw(rt, "file") {
				turn.Prompt.Attachments = []orchestrator.Attachment{{Path: "/up/a.png", Name: "a.png", MIME: "image/png", Image: true}}
			}
			r.must(r.db.EnqueueTurn(ctx, turn))
			if _, err := r.db.StartTurn(ctx, turn, cli.Start{}); err != nil {
				t.Fatal(err)
			}
			r.must(r.db.FinishTurn(ctx, turn.ID, asked.Add(time.Second), orchestrator.Outcome{
				State: rapid.SampledFrom([]orchestrator.TurnState{
					orchestrator.TurnDone, orchestrator.TurnFailed, orchestrator.TurnAborted, orchestrator.TurnInterrupted,
				}).Draw(rt, "state"),
				Text: said.Draw(rt, "answer"), Agent: "codex", Model: "gpt", CostUSD: 0.25, Usage: cli.Usage{Input: 10, Output: 5},
			}))
			r.must(r.db.MarkDelivered(ctx, turn.ID))
		}
		before := r.exports()
		old, err := r.db.Session(ctx, "s")
		r.must(err)
		r.imports(before)
		r.shows("Imported. Your next message continues it.", "Fix it")
		if d := cmp.Diff(before, r.exports()); d != "" {
			rt.Error(d)
		}
		conv, err := r.db.Conversation(ctx, here)
		r.must(err)
		now, err := r.db.Session(ctx, conv.Session)
		r.must(err)
		if now.ID == "s" || now.Messages != old.Messages || now.CostUSD != old.CostUSD || now.Tokens != old.Tokens {
			rt.Errorf("%+v became %+v", old, now)
		}
	})
}

// Anything else than an export is refused with the reason, and stores nothing.
func TestImportRefusesWhatIsNoExport(t *testing.T) {
	r := newRig(t)
	for _, file := range []string{
		"", "hello", "[]", "{}", `"x"`, `{"ductor_session":2,"turns":[]}`, `{"ductor_session":1}{}`, `{"ductor_session":1,"turns":[{"state":"running"}]}`,
		`{"ductor_session":1,"turns":[{"state":"done","tokens":-1}]}`, `{"ductor_session":1,"turns":{}}`, `{"ductor_session":1,"created":"yesterday"}`,
		"\x00\xff", strings.Repeat("[", 1<<20), `{"ductor_session":1,"turns":[` + strings.TrimSuffix(strings.Repeat(`{"state":"done"},`, 10_001), ",") + "]}",
	} {
		r.imports(file)
		if r.shows("This file is not imported: that is no exported session", "Only the JSON"); len(r.page.Text) > 500 {
			t.Errorf("it says %d bytes", len(r.page.Text))
		}
	}
	page, err := r.screen.Import(t.Context(), owner, nil)
	r.must(err)
	if !strings.Contains(page.Text, "caption /sessions import") {
		t.Errorf("without a file it says %q", page.Text)
	}
	member := owner
	member.Role = orchestrator.RoleMember
	if _, err := r.screen.Import(t.Context(), member, []byte("{}")); !errors.Is(err, orchestrator.ErrNotAllowed) {
		t.Errorf("a member imports: %v", err)
	}
	found, _, err := r.db.FindSessions(context.Background(), orchestrator.SessionQuery{Conversation: here, Limit: 5})
	if err != nil || len(found) != 0 {
		t.Errorf("there are %v, %v", found, err)
	}
}

// A directory that sessions may not work in is replaced by the conversation's own.
func TestImportKeepsWithinTheRoots(t *testing.T) {
	r := newRig(t)
	file, err := json.Marshal(map[string]any{"ductor_session": 1, "title": "Away\nfrom home", "dir": "/etc", "created": noon, "turns": []any{}})
	r.must(err)
	r.imports(string(file))
	r.shows("Away from home", "/src")
}
