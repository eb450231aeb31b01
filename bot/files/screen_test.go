package files

import (
	"context"
	"slices"
	"strings"
	"testing"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

func (p *project) OfChat(context.Context, orchestrator.ConversationID, string) (orchestrator.FilePlace, error) {
	return orchestrator.FilePlace{Dir: "/root/work", Roots: []string{"/root", "/other"}}, nil
}

func (p *project) List(_ context.Context, _ orchestrator.FilePlace, dir string) (all []orchestrator.FileEntry, err error) {
	switch dir {
	case "/root":
		return []orchestrator.FileEntry{{Name: "work", Dir: true}}, nil
	case "/root/work":
		return []orchestrator.FileEntry{{Name: "sub", Dir: true}, {Name: "gone.txt", Size: 2048}}, nil
	case "/root/work/sub":
		for i := range 20 {
			all = append(all, orchestrator.FileEntry{Name: strings.Repeat("x", i+1), Size: 3 << 20})
		}
		return all, nil
	case "/root/work/a.txt", "/root/work/none":
		return nil, &orchestrator.FileError{Path: dir, Why: orchestrator.FileNoFolder}
	}
	if strings.Contains(dir, "/.") {
		return nil, &orchestrator.FileError{Path: dir, Why: orchestrator.FileHidden}
	}
	return nil, &orchestrator.FileError{Path: dir, Why: orchestrator.FileOutside}
}

// The button above a working directory that is below a hidden directory leads to the nearest visible one.
func TestUpFromAHiddenDirectory(t *testing.T) {
	inHouse(t, func(h *rig) {
		s := NewScreen(h.sender)
		for dir, want := range map[string]string{
			"/root/work/.worktrees/fix": "📁 /root/work", "/root/.claude/worktrees/fix": "📁 /root",
			"/root": "Folders that I may read",
		} {
			page := s.show(view{dir: dir, roots: []string{"/root", "/other"}})
			up := page.Keyboard[len(page.Keyboard)-1][0]
			a, err := s.Press(t.Context(), orchestrator.Press{}, strings.TrimPrefix(up.Data, Action+":"))
			if err != nil || !strings.HasPrefix(a.Edit.Text, want) {
				h.Errorf("%q above %s: %+v, %v", up.Text, dir, a, err)
			}
		}
	})
}

func names(k tgapi.Keyboard) (all []string) {
	for _, row := range k {
		for _, b := range row {
			all = append(all, b.Text)
		}
	}
	return all
}

func TestBrowsing(t *testing.T) {
	inHouse(t, func(h *rig) {
		s := NewScreen(h.sender)
		by := orchestrator.Press{Conversation: orchestrator.ConversationID{Chat: 1}, Role: orchestrator.RoleUser}
		a, err := s.Browse(t.Context(), by, "")
		press := func(button string) tgapi.Answer {
			h.Helper()
			for _, row := range a.Edit.Keyboard {
				for _, b := range row {
					if len(b.Data) > tgapi.DataLimit {
						h.Errorf("the data of %q has %d bytes", b.Text, len(b.Data))
					}
					if strings.HasPrefix(b.Text, button) {
						got, err := s.Press(t.Context(), by, strings.TrimPrefix(b.Data, Action+":"))
						if err != nil {
							h.Error(err)
						}
						if got.Edit.Text != "" {
							a = got
						}
						return got
					}
				}
			}
			h.Fatalf("there is no button %q: %q", button, names(a.Edit.Keyboard))
			return tgapi.Answer{}
		}
		if want := []string{"📁 sub", "📄 gone.txt · 2.0 kB", "⬆ Up", "Close"}; err != nil || !slices.Equal(names(a.Edit.Keyboard), want) || a.Edit.Text != "📁 /root/work" {
			h.Fatalf("%+v, %v", a.Edit, err)
		}
		if got := press("📄 gone"); !strings.Contains(got.Text, "no such file") || len(got.Messages) > 0 {
			h.Errorf("a file that is gone: %+v", got)
		}
		old := a.Edit.Keyboard[0][0].Data
		press("📁 sub")
		if got := names(a.Edit.Keyboard); len(got) != 8+2+2 || got[9] != "›" || !strings.HasSuffix(got[0], "x · 3.0 MB") {
			h.Errorf("the first page: %q", got)
		}
		press("›")
		press("›")
		if got := names(a.Edit.Keyboard); len(got) != 4+2+2 {
			h.Errorf("the last page: %q", got)
		}
		press("⬆")
		press("⬆")
		if a.Edit.Text != "📁 /root" {
			h.Errorf("above: %q", a.Edit.Text)
		}
		press("⬆")
		if got := names(a.Edit.Keyboard); !slices.Equal(got, []string{"📁 /root", "📁 /other", "Close"}) {
			h.Errorf("the roots: %q", got)
		}
		// A press by a foreign user, on an old page, or with invented data changes nothing.
		stranger := orchestrator.Press{Conversation: orchestrator.ConversationID{Chat: 2}, Role: orchestrator.RoleUser}
		fresh := strings.TrimPrefix(a.Edit.Keyboard[0][0].Data, Action+":")
		for _, c := range []struct {
			by   orchestrator.Press
			data string
		}{{stranger, fresh}, {by, strings.TrimPrefix(old, Action+":")}, {by, ""}, {by, "x:e0"}, {by, fresh[:12] + ":e9"}, {by, fresh[:12] + ":e-1"}, {by, fresh[:12] + ":q0"}, {by, fresh[:12] + ":"}} {
			if got, err := s.Press(t.Context(), c.by, c.data); err != nil || !strings.Contains(got.Text, "This list is old") || got.Edit.Text != "" || len(got.Messages) > 0 {
				h.Errorf("%q in chat %d: %+v, %v", c.data, c.by.Conversation.Chat, got, err)
			}
		}
		press("Close")
		if a.Edit.Text != "Closed." || a.Edit.Keyboard != nil {
			h.Errorf("closed: %+v", a.Edit)
		}
		if n := len(s.views); n != 0 {
			h.Errorf("%d views are remembered", n)
		}
	})
}

func TestViewsAreForgotten(t *testing.T) {
	inHouse(t, func(h *rig) {
		s := NewScreen(h.sender)
		for range 2 * maxViews {
			if _, err := s.Browse(t.Context(), orchestrator.Press{}, ""); err != nil {
				h.Fatal(err)
			}
		}
		if len(s.views) != maxViews {
			h.Errorf("%d views are remembered", len(s.views))
		}
	})
}

// /files sends a file if its path is not a folder.
func TestFilesWithTheNameOfAFile(t *testing.T) {
	inHouse(t, func(h *rig) {
		s := NewScreen(h.sender)
		by := orchestrator.Press{Conversation: orchestrator.ConversationID{Chat: 1}, Role: orchestrator.RoleUser}
		for path, want := range map[string]string{"none": "no such folder", "a.txt": "Sending a.txt."} {
			a, err := s.Browse(t.Context(), by, path)
			if err != nil || !strings.Contains(a.Text, want) || (len(a.Messages) == 1) != (path == "a.txt") {
				h.Errorf("%q: %+v, %v", path, a, err)
			}
		}
	})
}

func TestGet(t *testing.T) {
	inHouse(t, func(h *rig) {
		s := NewScreen(h.sender)
		by := orchestrator.Press{Conversation: orchestrator.ConversationID{Chat: 1}, Role: orchestrator.RoleUser}
		for path, want := range map[string]string{"": "To get a file", "none": "no such file", "a.txt": "Sending a.txt."} {
			a, err := s.Get(t.Context(), by, path)
			if err != nil || !strings.Contains(a.Text, want) || (len(a.Messages) == 1) != (path == "a.txt") {
				h.Errorf("%q: %+v, %v", path, a, err)
			}
		}
	})
}

// /get with a path that does not exist offers a file of the same name in another folder, or else mentions /files.
func TestGetOffersAFileOfTheSameName(t *testing.T) {
	inHouse(t, func(h *rig) {
		h.project.files["/root/work/sub/xx"] = "found"
		s := NewScreen(h.sender)
		by := orchestrator.Press{Conversation: orchestrator.ConversationID{Chat: 1}, Role: orchestrator.RoleUser}
		a, err := s.Get(t.Context(), by, "none")
		if err != nil || !strings.Contains(a.Text, "/files shows") {
			h.Errorf("without such a file: %+v, %v", a, err)
		}
		a, err = s.Get(t.Context(), by, "out/xx")
		want := []string{"📄 sub/xx · 3.0 MB", "⬆ Up", "Close"}
		if err != nil || !strings.Contains(a.Edit.Text, "no such file") || !slices.Equal(names(a.Edit.Keyboard), want) {
			h.Fatalf("with such a file: %+v, %v", a, err)
		}
		a, err = s.Press(t.Context(), by, strings.TrimPrefix(a.Edit.Keyboard[0][0].Data, Action+":"))
		if err != nil || len(a.Messages) != 1 {
			h.Errorf("the button answers %+v, %v", a, err)
		}
	})
}
