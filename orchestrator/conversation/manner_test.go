package conversation_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// ask submits a prompt, waits for its end and returns the request to the agent.
func (h *house) ask(t *testing.T, id orchestrator.ConversationID, text string) cli.Request {
	t.Helper()
	h.submit(t, id, text)
	h.await(t, "done "+text)
	requests := h.agent.requests()
	return requests[len(requests)-1]
}

// mapRoles are roles that never change.
type mapRoles map[string]orchestrator.Role

func (m mapRoles) Role(name string) (orchestrator.Role, bool) { r, ok := m[name]; return r, ok }
func (m mapRoles) Names() []string                            { return slices.Sorted(maps.Keys(m)) }

func withRoles(defaultRole string) func(*conversation.Options) {
	return func(o *conversation.Options) {
		o.Sessions.DefaultRole = defaultRole
		o.Roles = mapRoles{
			"reviewer": {Prompt: "You review.", Append: true},
			"author":   {Prompt: "You write.", Agent: "codex", Model: "m2"},
		}
	}
}

func TestAPermissionModeIsOfOneConversationAndStays(t *testing.T) {
	path := newPath(t)
	h := openAt(t, path, nil)
	for _, mode := range cli.PermissionModes() {
		if err := h.SetPermission(t.Context(), here, mode, owner); err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		if got := h.ask(t, here, "in "+string(mode)).Permission; got != mode {
			t.Errorf("after /permissions %s the agent got %s", mode, got)
		}
	}
	for _, unknown := range []cli.PermissionMode{"", "ASK", "everything"} {
		if err := h.SetPermission(t.Context(), here, unknown, owner); !errors.Is(err, orchestrator.ErrNoPermissionMode) {
			t.Errorf("mode %q: %v", unknown, err)
		}
	}
	must(t, h.SetPermission(t.Context(), here, cli.AcceptEdits, owner))
	if got := h.ask(t, there, "elsewhere").Permission; got != cli.Ask {
		t.Errorf("another conversation got %s", got)
	}
	h.shut()
	after := openAt(t, path, nil)
	if st, err := after.Status(t.Context(), here); err != nil || st.Permission != cli.AcceptEdits {
		t.Errorf("after a restart the mode is %s, %v", st.Permission, err)
	}
}

func TestAPermissionModeHoldsForWhatWaitsAndNotForWhatRuns(t *testing.T) {
	h := open(t)
	end := make(chan struct{})
	h.agent.reply = untilClosed(end)
	h.submit(t, here, "running")
	h.awaitAsked(t, 1)
	h.submit(t, here, "waiting")
	must(t, h.SetPermission(t.Context(), here, cli.Plan, owner))
	close(end)
	h.await(t, "done waiting")
	var got []cli.PermissionMode
	for _, r := range h.agent.requests() {
		got = append(got, r.Permission)
	}
	if diff := cmp.Diff([]cli.PermissionMode{cli.Ask, cli.Plan}, got); diff != "" {
		t.Error(diff)
	}
}

func TestARoleIsPlayedFromTheNextTurnOnInTheSameSession(t *testing.T) {
	h := openAt(t, newPath(t), withRoles(""))
	if roles := h.Roles(); !slices.Equal(roles, []string{"author", "reviewer"}) {
		t.Errorf("roles %q", roles)
	}
	type told struct {
		Replaced, Appended string
		Resumed            bool
	}
	play := func(role, text string) told {
		t.Helper()
		if err := h.SetRole(t.Context(), here, role); err != nil {
			t.Fatalf("role %q: %v", role, err)
		}
		r := h.ask(t, here, text)
		return told{r.SystemPrompt, r.AppendPrompt, r.Resume != ""}
	}
	if diff := cmp.Diff(told{"", "You review.", false}, play("reviewer", "one")); diff != "" {
		t.Error(diff)
	}
	// The role's own agent joins the session; its missing session ID is up to its first turn.
	if diff := cmp.Diff(told{"You write.", "", false}, play("author", "two")); diff != "" {
		t.Error(diff)
	}
	if st, err := h.Status(t.Context(), here); err != nil || st.Role != "author" || st.Agent != "codex" || st.Model != "m2" {
		t.Errorf("status %+v, %v", st, err)
	}
	if diff := cmp.Diff(told{"", "", true}, play("", "three")); diff != "" {
		t.Error(diff)
	}
	if err := h.SetRole(t.Context(), here, "plumber"); !errors.Is(err, orchestrator.ErrNoRole) {
		t.Errorf("a role that is not there: %v", err)
	}
	if st, err := h.Status(t.Context(), there); err != nil || st.Role != "" {
		t.Errorf("another conversation plays %q, %v", st.Role, err)
	}
}

func TestNoRoleIsNoneAlsoWhereADefaultIsConfigured(t *testing.T) {
	path := newPath(t)
	h := openAt(t, path, withRoles("reviewer"))
	if got := h.ask(t, here, "one").AppendPrompt; got != "You review." {
		t.Errorf("by default the agent was told %q", got)
	}
	if err := h.SetRole(t.Context(), here, ""); err != nil {
		t.Fatal(err)
	}
	if got := h.ask(t, here, "two").AppendPrompt; got != "" {
		t.Errorf("without a role the agent was told %q", got)
	}
	if st, err := h.Status(t.Context(), here); err != nil || st.Role != "" {
		t.Errorf("the status says role %q, %v", st.Role, err)
	}
	if err := h.SetRole(t.Context(), here, "author"); err != nil {
		t.Fatal(err)
	}
	h.shut()
	gone := openAt(t, path, func(o *conversation.Options) {
		withRoles("reviewer")(o)
		delete(o.Roles.(mapRoles), "author")
	})
	if st, err := gone.Status(t.Context(), here); err != nil || st.Role != "" {
		t.Errorf("a role that is no longer configured shows as %q, %v", st.Role, err)
	}
}

// On a slow disk, a user may answer whether the chat shows rich messages before ductor stores that it asked.
func TestAQuestionDoesNotReplaceTheDisplayModeThatAUserChose(t *testing.T) {
	h := openAt(t, newPath(t), func(o *conversation.Options) {
		o.Settings.Display = orchestrator.DisplayAsk
	})
	display := func(want orchestrator.DisplayMode) {
		t.Helper()
		if got, err := h.Display(t.Context(), here); err != nil || got != want {
			t.Errorf("the display mode is %s, %v, want %s", got, err, want)
		}
	}
	must(t, h.SetDisplay(t.Context(), here, orchestrator.DisplayAsked))
	display(orchestrator.DisplayAsked)
	must(t, h.SetDisplay(t.Context(), here, orchestrator.DisplayRich))
	must(t, h.SetDisplay(t.Context(), here, orchestrator.DisplayAsked))
	display(orchestrator.DisplayRich)
}
