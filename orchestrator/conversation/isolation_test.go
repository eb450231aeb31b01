package conversation_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/internal/store"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
	"ductor/orchestrator/workplace"
)

// A choice of the directory in which the conversation already works, by whatever path, continues its session.
func TestAChoiceOfTheSameDirectoryContinuesTheSession(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"real", "other"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	h := openAt(t, newPath(t), func(o *conversation.Options) {
		o.Dir, o.Roots, o.Links = link, []string{root}, workplace.LinksOf(cli.RealPath, link)
	})
	session := func(path string) orchestrator.SessionID {
		t.Helper()
		if path != "" {
			if _, err := h.SetDir(t.Context(), here, path, owner); err != nil {
				t.Fatal(err)
			}
		}
		st, err := h.Status(t.Context(), here)
		if err != nil {
			t.Fatal(err)
		}
		return st.Session.ID
	}
	h.submit(t, here, "mine")
	h.await(t, "done mine")
	first := session("")
	if first == "" {
		t.Fatal("the conversation has no session")
	}
	for _, path := range []string{".", link, filepath.Join(root, "real"), "../real"} {
		if now := session(path); now != first {
			t.Errorf("after /cwd %s the session is %q, want %q", path, now, first)
		}
	}
	replaceDir(t, link, filepath.Join(root, "other"))
	h.submit(t, here, "again") // the session does not depend on the link any more
	h.await(t, "done again")
	if now := session("../other"); now != "" {
		t.Errorf("in another directory the session is %q", now)
	}
}

// Older versions stored the path of a link as the directory of a session. A job with its own session continues it.
func TestAJobContinuesASessionWithTheStoredPathOfALink(t *testing.T) {
	root := cli.RealPath(t.TempDir())
	must(t, os.Mkdir(filepath.Join(root, "real"), 0o755))
	link := filepath.Join(root, "link")
	must(t, os.Symlink("real", link))
	h := openAt(t, newPath(t), func(o *conversation.Options) {
		o.Orders = o.Store.(*store.DB)
		o.Dir, o.Roots, o.Links = link, []string{root}, workplace.LinksOf(cli.RealPath, link)
	})
	must(t, h.db.CreateOwnSession(t.Context(), "job", orchestrator.Session{
		ID: "old", Conversation: here, Person: 1, Dir: link, Created: h.clock.now(), Used: h.clock.now()}))
	h.order(t, order("o1", "go on", orchestrator.Wants{Own: "job"}))
	h.await(t, "done go on")
	if turn, err := h.db.Turn(t.Context(), "o1"); err != nil || turn.Session != "old" {
		t.Errorf("the job runs in the session %q, %v", turn.Session, err)
	}
}

// The choices of a conversation apply only there, not even to another topic of the same chat.
func TestWhatOneConversationChoosesCountsInItAlone(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	h := openAt(t, filepath.Join(t.TempDir(), "db"), func(o *conversation.Options) { o.Dir, o.Roots = root, []string{root} })
	h.submit(t, there, "mine")
	h.await(t, "done mine")
	status := func(id orchestrator.ConversationID) orchestrator.Status {
		t.Helper()
		h.eventually(t, "nothing to run", func() bool {
			st, err := h.Status(t.Context(), id)
			return err == nil && st.Running == nil
		})
		st, err := h.Status(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	before := status(there)
	if before.Session.ID == "" {
		t.Fatal("the other conversation has no session to lose")
	}

	if err := h.SetModel(t.Context(), here, "codex", "gpt", "high"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.SetDir(t.Context(), here, "sub", owner); err != nil {
		t.Fatal(err)
	}
	if err := h.New(t.Context(), here); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Abort(t.Context(), here); err != nil {
		t.Fatal(err)
	}

	if chose := status(here); chose.Agent != "codex" || chose.Model != "gpt" || filepath.Base(chose.Dir) != "sub" {
		t.Errorf("the conversation that chose has %+v", chose)
	}
	if diff := cmp.Diff(before, status(there)); diff != "" {
		t.Errorf("the other conversation changed: %s", diff)
	}
}
