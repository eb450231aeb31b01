package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/sim/telegram"
)

// team is a daemon in a group that allows all members: the owner, and a member who is not listed.
type team struct {
	*town
	group         *telegram.Chat
	owner, member *telegram.Person
}

const membersOnly = "Only users whom the owner listed may do this"

func newTeam(t *testing.T) *team {
	t.Helper()
	town := surroundings(t, nil)
	const id = -1000000000001
	x := &team{town: town, group: town.srv.Supergroup(id, "Team"), owner: town.chat.Person(),
		member: town.srv.Person(stranger, "Mallory")}
	town.chat = x.group // helpers await messages in this chat
	town.serve(
		"allowed_users = [1]", fmt.Sprintf("allowed_users = [1]\nallowed_groups = [%d]\ngroup_members = \"all\"\ngroup_trigger = \"all\"", id),
		`interval_private = "100ms"`, `interval_group = "100ms"`,
		"overall_per_second = 1000", "overall_per_second = 1000\ngroup_per_minute = 6000",
	)
	return x
}

// awaitCount waits until n messages of the bot contain part, and returns the last one.
func (x *team) awaitCount(n int, part string) telegram.Message {
	x.t.Helper()
	var found []telegram.Message
	_, err := x.group.Await(x.soon(), func(v telegram.View) bool {
		found = nil
		for _, m := range v.FromBot() {
			if strings.Contains(m.Text, part) {
				found = append(found, m)
			}
		}
		return len(found) >= n
	})
	if err != nil {
		x.fatal(err)
	}
	return found[n-1]
}

// checkRejected makes the member press a button, and checks that ductor rejects it.
func (x *team) checkRejected(m telegram.Message, button string) {
	x.t.Helper()
	answer, err := x.member.Press(x.soon(), m, button)
	if err != nil {
		x.fatal(err)
	}
	if !strings.Contains(answer.Text, membersOnly) {
		x.t.Errorf("the member's press of %q is answered %q", button, answer.Text)
	}
}

func (x *team) presses(by *telegram.Person, m telegram.Message, button string) {
	x.t.Helper()
	if _, err := by.Press(x.soon(), m, button); err != nil {
		x.fatal(err)
	}
}

// Group members who are not listed can only send prompts. They do not get the owner's mode and rules, and cannot use
// buttons, commands, or the owner's turns.
func TestMembersWhoAreNotListedOnlySendPrompts(t *testing.T) {
	x := newTeam(t)
	x.checkRights()
	x.checkCommands()
	x.checkTurns()
	x.checkPastes()
}

// checkRights checks that the owner's choices for the chat do not apply to the member's prompts, and that the member
// decides nothing.
func (x *team) checkRights() {
	file := filepath.Join(x.cfg.Projects.DefaultDir, "file")
	touch := fmt.Sprintf(`[[ask cmd="touch %s"]]`, file)
	untouched := func(when string) {
		x.t.Helper()
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			x.t.Fatalf("%s: the member's command was run: %v", when, err)
		}
	}
	x.member.Send(x.group, touch+` [[text "asked in bypass"]]`)
	asked := x.awaitButton("✅ Allow once")
	for _, row := range asked.Keyboard {
		for _, b := range row {
			if strings.Contains(b.Text, "session") || strings.Contains(b.Text, "attern") {
				x.t.Errorf("a rule can be made of the member's request: %q", b.Text)
			}
		}
	}
	x.checkRejected(asked, "✅ Allow once")
	untouched("in bypass")
	x.presses(x.owner, asked, "⛔ Deny")
	x.await("asked in bypass")
	x.awaitNoButton("⛔ Deny")

	x.owner.Send(x.group, "/permissions ask")
	x.await("ask: asks you before it writes")
	x.owner.Send(x.group, touch+` [[text "the owner allowed it"]]`)
	asked = x.awaitButton("Allow this session…")
	x.checkRejected(asked, "Allow this session…")
	x.presses(x.owner, asked, "Allow this session…")
	asked = x.awaitButton("✅ Allow with this rule")
	x.checkRejected(asked, "✅ Allow with this rule")
	untouched("before the owner allowed it")
	x.presses(x.owner, asked, "✅ Allow with this rule")
	x.await("the owner allowed it")
	if err := os.Remove(file); err != nil {
		x.t.Fatal(err)
	}
	x.awaitNoButton("✅ Allow with this rule")
	x.member.Send(x.group, touch+` [[text "asked despite the rule"]]`)
	asked = x.awaitButton("⛔ Deny")
	untouched("with a rule of the owner")
	x.presses(x.owner, asked, "⛔ Deny")
	x.await("asked despite the rule")
	untouched("in the end")

	x.owner.Send(x.group, "[[history]]")
	x.await(`[From "Mallory", a member of the group who is not listed]`)
}

// checkCommands checks that ductor rejects the member's commands that change or show the owner's choices.
func (x *team) checkCommands() {
	commands := []string{
		"/cwd /", "/cwd", "/permissions bypass", "/permissions", "/model codex", "/model", "/queue steer", "/role",
		"/sessions",
		"/status", "/new", "/cron", "/cron every day at 9 look", "@codex hello",
	}
	for i, command := range commands {
		x.member.Send(x.group, command)
		x.awaitCount(i+1, membersOnly)
	}
	x.owner.Send(x.group, "/permissions")
	menu := x.awaitButton("auto")
	x.checkRejected(menu, "auto")
	x.presses(x.owner, menu, "Close")
	x.await("Nothing changed: ask")
}

// checkTurns checks that the member neither ends nor extends the owner's turn, whatever the owner chose for later prompts.
func (x *team) checkTurns() {
	for i, mode := range []string{"steer", "interrupt"} {
		x.owner.Send(x.group, "/queue "+mode)
		x.awaitCount(2*i+1, "A message that comes while the agent works")
		x.owner.Send(x.group, fmt.Sprintf(`[[text "the owner's turn %d"]] [[hang]]`, i))
		x.await(fmt.Sprintf("the owner's turn %d", i))
		x.member.Send(x.group, fmt.Sprintf("member's prompt %d", i))
		queued := x.awaitButton("✖ Cancel")
		if _, err := x.member.Press(x.soon(), queued, "↪ Steer"); err == nil {
			x.t.Error("a prompt with other rights may join the owner's turn")
		}
		x.checkRejected(queued, "⚡ Interrupt")
		x.presses(x.member, queued, "✖ Cancel") // the member's own prompt
		x.awaitNoButton("✖ Cancel")
		x.member.Send(x.group, "/abort")
		x.awaitCount(i+1, "You have nothing running or queued here")

		x.owner.Send(x.group, "/queue queue")
		x.awaitCount(2*i+2, "A message that comes while the agent works")
		x.owner.Send(x.group, "owner's prompt")
		queued = x.awaitButton("✖ Cancel")
		x.checkRejected(queued, "✖ Cancel")
		x.owner.Send(x.group, "/abort")
		x.awaitCount(i+1, "Stopped. 1 waiting message will not run.")
		x.awaitNoButton("✖ Cancel")
	}
	x.member.Send(x.group, `[[text "the member's turn"]] [[hang]]`)
	x.await("the member's turn")
	x.member.Send(x.group, "/stop")
	x.awaitCount(3, "Stopped.")
}

// checkPastes checks that text of the member never becomes part of the owner's paste.
func (x *team) checkPastes() {
	x.owner.Send(x.group, `[[text "the paste of the owner"]]`+strings.Repeat(" word", 810))
	x.member.Send(x.group, `[[text "words of the member"]]`)
	for _, part := range []string{"the paste of the owner", "words of the member"} {
		if m := x.await(part); strings.Contains(m.Text, "owner") && strings.Contains(m.Text, "member") {
			x.t.Errorf("one prompt was made of both: %q", m.Text)
		}
	}
}
