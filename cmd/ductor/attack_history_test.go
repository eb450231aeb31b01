package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
	"ductor/mcp/relay"
	"ductor/orchestrator"
)

// reader is a chat whose agent reads sessions with ductor's tools.
type reader struct {
	*town
	token string // of the agent in this chat
}

// newReader has the agent of a chat work once on a subject, and learns its token.
func newReader(town *town, chat *telegram.Chat, by *telegram.Person, subject string) *reader {
	town.t.Helper()
	own := *town
	own.chat = chat
	file := filepath.Join(town.cfg.Projects.DefaultDir, "token-"+subject)
	said := by.Send(chat, fmt.Sprintf(
		`%s is the subject. [[tool cmd="printenv DUCTOR_MCP_TOKEN > %s"]] [[text "%s is noted."]]`, subject, file,
		subject))
	own.awaitAfter(said, subject+" is noted.")
	raw, err := os.ReadFile(file)
	if err != nil {
		town.t.Fatal(err)
	}
	return &reader{&own, strings.TrimSpace(string(raw))}
}

// during runs f while a turn of a user runs in the chat.
func (r *reader) during(by *telegram.Person, f func()) {
	r.t.Helper()
	said := by.Send(r.chat, `[[text "It begins."]] [[sleep 5m]]`)
	r.awaitAfter(said, "It begins.")
	f()
	said = by.Send(r.chat, "/abort")
	r.awaitAfter(said, "Stopped")
}

func (r *reader) call(tool string, args map[string]any) string {
	r.t.Helper()
	way := &relay.Relay{Token: r.token, Dial: func(ctx context.Context) (net.Conn, error) {
		return relay.Dial(ctx, r.cfg.Storage.Dir)
	}}
	text, err := way.Call(r.soon(), tool, args)
	if err != nil {
		return err.Error()
	}
	return text
}

// checkReads checks that the running turn can read the sessions with some subjects, and no others, with any tool. It
// adds the IDs of the sessions that it sees to ids.
func (r *reader) checkReads(who string, ids map[string]string, want ...string) {
	r.t.Helper()
	list := r.call("list_sessions", nil)
	for _, m := range regexp.MustCompile(`(?m)^(\S+)  "(\w+42) `).FindAllStringSubmatch(list, -1) {
		ids[m[2]] = m[1]
	}
	for subject, id := range ids {
		sees := strings.Contains(" "+strings.Join(want, " ")+" ", " "+subject+" ")
		for tool, args := range map[string]map[string]any{"list_sessions": nil, "describe_session": {"session_id": id},
			"search_project_history": {"words": subject}} {
			if text := r.call(tool, args); strings.Contains(text, subject+" is") != sees {
				r.t.Errorf("%s reads %s with %s: %v, want %v\n%s", who, subject, tool, !sees, sees, text)
			}
		}
	}
	for _, subject := range want {
		if ids[subject] == "" {
			r.t.Errorf("%s does not see %s:\n%s", who, subject, list)
		}
	}
}

// The agent of a turn reads only sessions of chats where the user of the turn is allowed. The turn of a group reads only
// the sessions of the group, unless the owner shares the project. A user who is not listed, or no longer, reads only the
// conversation.
func TestAttackSessionsOfOtherChatsAreNotRead(t *testing.T) {
	const team = -1000000000001
	town := newTown(t, func(c *config.Config) {
		c.Permissions.Mode, c.Rate.GroupPerMinute = "bypass", 6000
		c.Telegram.AllowedUsers, c.Telegram.AllowedGroups = []int64{owner, neighbour}, []int64{team}
		c.Telegram.GroupMembers, c.Telegram.GroupTrigger = "all", "all"
	})
	group, theirChat := town.srv.Supergroup(team, "Team"), town.srv.Private(neighbour, "Neighbour")
	ann, bob, mallory := town.chat.Person(), theirChat.Person(), town.srv.Person(stranger, "Mallory")
	ids := map[string]string{}
	mine := newReader(town, town.chat, ann, "Zebra42")
	theirs := newReader(town, theirChat, bob, "Salary42")
	ours := newReader(town, group, ann, "Team42")
	mine.during(ann, func() { mine.checkReads("the owner", ids, "Zebra42", "Team42") })
	theirs.during(bob, func() { theirs.checkReads("the neighbour, who never wrote in the group,", ids, "Salary42") })
	ours.during(ann, func() { ours.checkReads("the group", ids, "Team42") })
	ours.during(bob, func() { ours.checkReads("the neighbour in the group", ids, "Team42") })
	theirs.during(bob, func() { theirs.checkReads("the neighbour", ids, "Salary42", "Team42") })
	ours.during(mallory, func() { ours.checkReads("a member", ids, "Team42") })
	if len(ids) != 3 {
		t.Fatalf("the sessions are %v", ids)
	}

	town.stop()
	town.cfg.Projects.Named = map[string]orchestrator.ProjectPolicy{
		"shop": {Dir: town.cfg.Projects.DefaultDir, ShareSessions: true},
	}
	town.cfg.Telegram.AllowedUsers = []int64{owner} // the neighbour is removed
	town.start()
	ours.during(ann, func() {
		ours.checkReads("the owner in the group, with a shared project,", ids, "Zebra42", "Team42")
	})
	ours.during(bob, func() { ours.checkReads("who was removed, in the group,", ids, "Team42") })
	ours.during(mallory, func() { ours.checkReads("a member, with a shared project,", ids, "Team42") })
}

// The name or ID of another user's session names a session of one's own, which knows nothing of the other one.
func TestAttackTheSessionOfAnotherUserByItsName(t *testing.T) {
	town := newTown(t, func(c *config.Config) {
		c.Permissions.Mode, c.Telegram.AllowedUsers = "bypass", []int64{owner, neighbour}
	})
	theirChat := town.srv.Private(neighbour, "Neighbour")
	ann, bob := town.chat.Person(), theirChat.Person()
	mine, theirs := newReader(town, town.chat, ann, "Zebra42"), newReader(town, theirChat, bob, "Salary42")
	names := []string{"auth-789"}
	mine.during(ann, func() {
		for _, question := range []string{`remember Zebra42 [[start]] [[text "noted"]]`, `and? [[start]] [[history]]`} {
			out := mine.call("consult_with", map[string]any{"model": "codex", "session_id": names[0],
				"question": question})
			if strings.Contains(question, "history") && !strings.Contains(out, "Zebra42") {
				t.Errorf("the owner's own session: %s", out)
			}
		}
		list := mine.call("list_sessions", nil)
		for _, m := range regexp.MustCompile(`(?m)^(\S+)  "`).FindAllStringSubmatch(list, -1) {
			names = append(names, m[1])
		}
	})
	if len(names) != 3 {
		t.Fatalf("the owner's sessions are %q", names)
	}
	theirs.during(bob, func() {
		for _, name := range names {
			for tool, args := range map[string]map[string]any{
				"consult_with": {"model": "codex", "session_id": name, "question": `and? [[start]] [[history]]`},
				"work_with":    {"agent": "codex", "session_id": name, "task": `and? [[start]] [[history]]`},
			} {
				called := make(chan string, 1)
				go func() { called <- theirs.call(tool, args) }()
				if tool == "work_with" {
					theirs.press("✅ Allow once")
					theirs.awaitNoButton("✅ Allow once") // the next call has another card
				}
				if out := <-called; strings.Contains(out, "Zebra42") ||
					!strings.Contains(out, "session_id") {
					t.Errorf("%s in %s: %s", tool, name, out)
				}
			}
		}
	})
}
