package bot_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/updates"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
)

// handled waits until the bot has handled all messages, and checks that it has marked their updates.
func (h *botRig) handled(t *testing.T) {
	t.Helper()
	time.Sleep(5 * time.Second)
	synctest.Wait()
	if open := h.journal.Open(); len(open) > 0 {
		t.Errorf("updates %v are open", open)
	}
}

func twoFiles() []telegram.File { return []telegram.File{textFile("b.txt"), textFile("c.txt")} }

func textFile(name string) telegram.File { return telegram.File{Name: name, Data: []byte(name)} }

// The caption of a file can be /new with a prompt. The prompt and all files start a new session.
func TestAFileStartsASession(t *testing.T) {
	for caption, want := range map[string]string{"/new what is wrong?": "what is wrong?", "/new": ""} {
		for _, files := range []int{1, 3} {
			simulated(t, func(t *testing.T, h *botRig) {
				h.serve(t)
				h.ann.Send(h.chat, "before")
				if files == 1 {
					h.ann.SendDocument(h.chat, textFile("a.txt"), telegram.WithCaption(caption))
				} else {
					album := []telegram.File{textFile("a.txt"), textFile("b.txt"), textFile("c.txt")}
					h.ann.SendAlbum(h.chat, album, telegram.WithCaption(caption))
				}
				h.handled(t)
				prompts := h.desk.Prompts()
				if len(prompts) != 2 || prompts[1].Text != want || len(prompts[1].Attachments) != files {
					t.Errorf("%s: prompts %+v", caption, prompts)
				}
				if calls := h.desk.Calls(); !slices.Equal(calls, []string{"new 7/0"}) {
					t.Errorf("%s: calls %q", caption, calls)
				}
			})
		}
	}
}

// An abort in a caption aborts, and no file of the album reaches the agent.
func TestACaptionAborts(t *testing.T) {
	for _, caption := range []string{"/abort", "stop"} {
		simulated(t, func(t *testing.T, h *botRig) {
			h.desk.SetRunning(true)
			h.serve(t)
			h.ann.SendDocument(h.chat, textFile("a.txt"), telegram.WithCaption(caption))
			h.handled(t)
			h.ann.SendAlbum(h.chat, twoFiles(), telegram.WithCaption(caption))
			h.handled(t)
			if calls := h.desk.Calls(); !slices.Equal(calls, []string{"abort 7/0", "abort 7/0"}) {
				t.Errorf("%s: calls %q", caption, calls)
			}
			if got := h.desk.Prompts(); len(got) > 0 {
				t.Errorf("%s: prompts %+v", caption, got)
			}
		})
	}
}

// A command that takes no files is refused as a caption, and no file of the album reaches the agent. A path is a
// prompt.
func TestACommandTakesNoFiles(t *testing.T) {
	for caption, want := range map[string]string{
		"/cron every day at 9 look": "/cron takes no files",
		"/status":                   "/status takes no files",
		"/stauts":                   "Did you mean /status?",
		"/etc/hosts is wrong":       "",
	} {
		simulated(t, func(t *testing.T, h *botRig) {
			h.serve(t)
			h.ann.SendDocument(h.chat, textFile("a.txt"), telegram.WithCaption(caption))
			h.handled(t)
			h.ann.SendAlbum(h.chat, twoFiles(), telegram.WithCaption(caption))
			h.handled(t)
			got, said := h.desk.Texts(), h.journal.Said()
			if want == "" {
				if !slices.Equal(got, []string{caption, caption}) || len(said) > 0 {
					t.Errorf("%s: prompts %q, notices %q", caption, got, said)
				}
				return
			}
			if len(got) > 0 || len(said) != 2 || !strings.Contains(said[0], want) || said[1] != said[0] {
				t.Errorf("%s: prompts %q, notices %q", caption, got, said)
			}
		})
	}
}

// Some apps add the caption to the last file of an album.
func TestACommandInTheLastCaption(t *testing.T) {
	for caption, want := range map[string]string{
		"/new look": "look",
		"/status":   "/status takes no files",
		"/sessions": "/sessions works only as the caption of the first file",
	} {
		simulated(t, func(t *testing.T, h *botRig) {
			h.serve(t)
			sent := h.ann.SendAlbum(h.chat, twoFiles(), telegram.WithLastCaption(caption))
			h.handled(t)
			prompts := h.desk.Prompts()
			if caption == "/new look" {
				if len(prompts) != 1 || prompts[0].Text != want || len(prompts[0].Attachments) != 2 ||
					!slices.Equal(h.desk.Calls(), []string{"new 7/0"}) {
					t.Errorf("prompts %+v, calls %q", prompts, h.desk.Calls())
				}
				return
			}
			if m := h.await(t, want); m.ReplyTo != sent[1].ID || len(prompts) > 0 {
				t.Errorf("%s: a reply to %d, prompts %+v", caption, m.ReplyTo, prompts)
			}
		})
	}
}

// In a group whose messages are all for the bot, a later caption of an album may contain a command for another bot,
// which is a part of the prompt. A command that the user may not use is refused.
func TestALaterCaptionInAGroup(t *testing.T) {
	for name, c := range map[string]struct {
		user    telegram.UserID
		caption string
		refusal string
	}{
		"session of another bot": {7, "/new@other_bot look", ""},
		"status of another bot":  {7, "/status@other_bot", ""},
		"abort of another bot":   {7, "/abort@other_bot", ""},
		"status of this bot":     {7, "/status@ductor_bot", "/status takes no files"},
		"session of a member":    {8, "/new look", "Only users whom the owner listed"},
		"job of a member":        {8, "/cron every day at 9 look", "Only users whom the owner listed"},
	} {
		simulated(t, func(t *testing.T, h *botRig) {
			policy := h.opts.Allow.Policy()
			policy.GroupTrigger, policy.GroupMembers = updates.TriggerAll, updates.AllMembers
			h.opts.Allow.Policy = func() updates.Policy { return policy }
			group, user := h.srv.Group(-100, "Team"), h.srv.Private(c.user, "Bob").Person()
			h.serve(t)
			user.SendAlbum(group, twoFiles(), telegram.WithLastCaption(c.caption))
			h.handled(t)
			prompts, said := h.desk.Prompts(), strings.Join(h.journal.Said(), "\n")
			if calls := h.desk.Calls(); len(calls) > 0 {
				t.Errorf("%s: calls %q", name, calls)
			}
			if c.refusal != "" {
				if len(prompts) > 0 || !strings.Contains(said, c.refusal) {
					t.Errorf("%s: prompts %+v, notices %q", name, prompts, said)
				}
				return
			}
			if len(prompts) != 1 || prompts[0].Text != c.caption || len(prompts[0].Attachments) != 2 || said != "" {
				t.Errorf("%s: prompts %+v, notices %q", name, prompts, said)
			}
		})
	}
}

type roleFunc func() orchestrator.UserRole

func (f roleFunc) RoleOf(orchestrator.PersonID) orchestrator.UserRole { return f() }

// A user who loses the right to start a session while ductor downloads the file starts none.
func TestACaptionOfAFormerUser(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		var removed atomic.Bool
		h.opts.Allow.Users = roleFunc(func() orchestrator.UserRole {
			if removed.Load() {
				return orchestrator.RoleNone
			}
			return orchestrator.RoleUser
		})
		policy := h.opts.Allow.Policy()
		policy.GroupTrigger, policy.GroupMembers = updates.TriggerAll, updates.AllMembers
		h.opts.Allow.Policy = func() updates.Policy { return policy }
		download := h.srv.Inject(telegram.Fault{Method: "file", When: func(telegram.Call) bool {
			removed.Store(true)
			return true
		}})
		group := h.srv.Group(-100, "Team")
		h.serve(t)
		h.ann.SendDocument(group, textFile("a.txt"), telegram.WithCaption("/new look"))
		h.handled(t)
		prompts, calls, said := h.desk.Prompts(), h.desk.Calls(), strings.Join(h.journal.Said(), "\n")
		if download.Hits() != 1 || len(prompts)+len(calls) > 0 ||
			!strings.Contains(said, "Only users whom the owner listed") {
			t.Errorf("downloads %d, prompts %+v, calls %q, notices %q", download.Hits(), prompts, calls, said)
		}
	})
}

// An edit of the caption puts a mistyped command right.
func TestAMistypedCaptionIsEdited(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		h.serve(t)
		sent := h.ann.SendDocument(h.chat, textFile("a.txt"), telegram.WithCaption("/nwe look"))
		h.await(t, "Did you mean /new?")
		h.handled(t)
		h.ann.Edit(sent, "/new look")
		h.handled(t)
		got, calls := h.desk.Texts(), h.desk.Calls()
		if !slices.Equal(got, []string{"look"}) || !slices.Equal(calls, []string{"new 7/0"}) {
			t.Errorf("prompts %q, calls %q", got, calls)
		}
	})
}

// An edit of an album's caption contains only one of its files, so a command that takes files is refused. Each further
// edit is refused too.
func TestAMistypedCaptionOfAnAlbumIsEdited(t *testing.T) {
	for _, edit := range []string{"/new look", "/new", "/sessions"} {
		simulated(t, func(t *testing.T, h *botRig) {
			h.serve(t)
			sent := h.ann.SendAlbum(h.chat, twoFiles(), telegram.WithCaption("/nwe look"))
			h.await(t, "Did you mean /new?")
			h.handled(t)
			before := len(h.journal.Said())
			for _, caption := range []string{edit, edit + " again"} {
				h.ann.Edit(sent[0], caption)
				h.handled(t)
			}
			const again = "Send the album again with this caption."
			said := h.journal.Said()[before:]
			if len(said) != 2 || !strings.Contains(said[0], again) || !strings.Contains(said[1], again) {
				t.Errorf("%s: notices %q", edit, said)
			}
			prompts, calls := h.desk.Prompts(), h.desk.Calls()
			if len(prompts)+len(calls) > 0 {
				t.Errorf("%s: prompts %+v, calls %q", edit, prompts, calls)
			}
		})
	}
}

// The reply to an album with a file that is too large replies to that file and names it. The agent gets nothing.
func TestAnAlbumWithALargeFile(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		h.serve(t)
		album := append(twoFiles(), telegram.File{Name: "big.bin", Size: telegram.MaxDownload + 1}, textFile("d.txt"))
		sent := h.ann.SendAlbum(h.chat, album, telegram.WithCaption("compare"))
		m := h.await(t, "big.bin is too large: I can fetch at most 20 MB. The agent didn't get it.")
		h.handled(t)
		const rest = "Nothing that you sent with it reached the agent either."
		if m.ReplyTo != sent[2].ID || !strings.Contains(m.Text, rest) {
			t.Errorf("a reply to %d: %s", m.ReplyTo, m.Text)
		}
		if got := h.desk.Prompts(); len(got) > 0 {
			t.Errorf("prompts %+v", got)
		}
	})
}
