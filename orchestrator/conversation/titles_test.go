package conversation_test

import (
	"context"
	"testing"

	"ductor/cli"
	"ductor/orchestrator"
)

// The newest title of the agent replaces its earlier ones, and never one that a user chose.
func TestTheTitlesOfAnAgent(t *testing.T) {
	h := open(t)
	h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		emit(cli.SessionStarted{AgentSessionID: "native-claude", Title: "About " + lastLine(req.Prompt)})
		return echo(ctx, who, req, emit)
	}
	title := func() string {
		all, err := h.Sessions(t.Context(), here)
		if err != nil || len(all) != 1 {
			t.Fatalf("sessions %+v, %v", all, err)
		}
		return all[0].Title
	}
	for _, prompt := range []string{"lexers", "parsers", "trees"} {
		h.submit(t, here, prompt)
		h.await(t, "done "+prompt)
		h.eventually(t, "the title of "+prompt, func() bool { return title() == "About "+prompt })
	}
	all, err := h.Sessions(t.Context(), here)
	if err == nil {
		err = h.db.TitleSession(t.Context(), all[0].ID, "About trees", "My own")
	}
	if err != nil {
		t.Fatal(err)
	}
	h.submit(t, here, "leaves")
	h.await(t, "done leaves")
	h.shut() // it waits for the title
	if got := title(); got != "My own" {
		t.Errorf("the user's title became %q", got)
	}
}

// A session that begins with a compaction or with files has no title until the first prompt with text.
func TestTheFirstPromptWithTextTitlesTheSession(t *testing.T) {
	h := open(t)
	title := func() string {
		t.Helper()
		st, err := h.Status(t.Context(), here)
		if err != nil || st.Session.ID == "" {
			t.Fatalf("status %+v, %v", st, err)
		}
		return st.Session.Title
	}
	h.compact(t)
	if got := title(); got != "" {
		t.Errorf("after a compaction the title is %q", got)
	}
	for _, prompt := range []string{"fix it", "and the docs"} {
		h.submit(t, here, prompt)
		h.await(t, "done "+prompt)
		if got := title(); got != "fix it" {
			t.Errorf("after %q the title is %q", prompt, got)
		}
	}
}

// A prompt restores the archived session that it continues, so that the list of sessions shows where it is.
func TestAPromptRestoresItsArchivedSession(t *testing.T) {
	h := open(t)
	h.submit(t, here, "one")
	h.await(t, "done one")
	session := func() orchestrator.Session {
		t.Helper()
		all, err := h.Sessions(t.Context(), here)
		if err != nil || len(all) != 1 {
			t.Fatalf("sessions %+v, %v", all, err)
		}
		return all[0]
	}
	archived := session()
	archived.Archived, archived.Pinned = true, true
	if err := h.db.SaveSession(t.Context(), archived); err != nil {
		t.Fatal(err)
	}
	h.submit(t, here, "two")
	h.await(t, "done two")
	if s := session(); s.Archived || !s.Pinned || s.ID != archived.ID {
		t.Errorf("after a prompt the session is %+v", s)
	}
}
