package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ductor/internal/sim/telegram"
)

// edit replaces pairs of old and new text in the configuration at path.
func (town *town) edit(path string, pairs ...string) {
	town.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		town.t.Fatal(err)
	}
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(string(text), pairs[i]) {
			town.t.Fatalf("the configuration has no %q", pairs[i])
		}
	}
	if err := os.WriteFile(path, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o600); err != nil {
		town.t.Fatal(err)
	}
}

// TestTheConfigurationIsReloadedFromTheChat tests that a reload applies keys that take effect at once, names those
// that need a restart, changes nothing after an error, and is reserved for the owner.
func TestTheConfigurationIsReloadedFromTheChat(t *testing.T) {
	town := surroundings(t, nil)
	ann := town.srv.Private(stranger, "Ann")
	path := town.writeConfig()
	alone := fmt.Sprintf("allowed_users = [%d]", owner)
	all := fmt.Sprintf("allowed_users = [%d, %d, %d]\n[users.%d]\nrole = \"owner\"\n",
		owner, neighbour, stranger, neighbour)
	bob := town.srv.Private(neighbour, "Bob")
	town.edit(path, alone, all)
	startDaemon(t, "run", "-c", path)
	town.say(`[[text "it runs"]]`)
	town.await("it runs")
	ann.Person().Send(ann, "/model")
	menu, err := ann.AwaitText(town.soon(), "Which agent should answer?")
	if err != nil {
		town.fatal(err)
	}
	ann.Person().Send(ann, "/reload")
	if _, err := ann.AwaitText(town.soon(), "Only the owner can do that."); err != nil {
		town.fatal(err)
	}
	town.say("/reload")
	town.await("are already in use")

	town.edit(path, all, "allowed_users = [1x]", "private_burst = 100", "private_burst = 99")
	town.say("/reload")
	town.await("The old settings stay in use")
	town.edit(path, "[1x]", fmt.Sprintf("[%d]", owner), `mode = "bypass"`, `mode = "bypas"`)
	town.say("/reload")
	town.await(`permissions.mode: "bypas" is not one of`)
	ann.Person().Send(ann, `[[text "Ann still may"]]`)
	if _, err := ann.AwaitText(town.soon(), "Ann still may"); err != nil {
		town.fatal(err)
	}

	town.edit(path, `mode = "bypas"`, "mode = \"bypass\"\n[models.quick]\nuse = \"claude/haiku\"\n[queue]\nmax = 3",
		town.srv.Token(), town.srv.Token()+"x")
	town.say("/reload")
	said := town.await("I read config.toml again.").Text
	now, later, _ := strings.Cut(said, "In use after you restart ductor:")
	for key, part := range map[string]string{
		"queue.max: 10 → 3": now, "models.quick": now,
		fmt.Sprintf("telegram.allowed_users: [%d %d %d] → [%d]", owner, neighbour, stranger, owner): now,
		"rate.private_burst: 100 → 99": later, "telegram.token": later,
	} {
		if !strings.Contains(part, key) {
			t.Errorf("%q is not where it should be in\n%s", key, said)
		}
	}
	if strings.Contains(said, town.srv.Token()) {
		t.Errorf("it shows the token:\n%s", said)
	}
	if told, err := bob.AwaitText(town.soon(), "reloaded the configuration. What changed:"); err != nil {
		town.fatal(err)
	} else if !strings.Contains(told.Text, "removed 2 66") || !strings.Contains(told.Text, "queue.max: 10 → 3") {
		t.Errorf("the other owner is told %q", told.Text)
	}
	before := len(ann.View().FromBot())
	ann.Person().Send(ann, `[[text "Ann may no more"]]`)
	ann.Person().TapData(menu, menu.Keyboard[0][0].Data)
	town.say("/model quick")
	town.await("haiku")
	if n := len(ann.View().FromBot()); n != before {
		t.Errorf("a removed user got %d messages", n-before)
	}
	if slices.ContainsFunc(append(ann.View().FromBot(), town.chat.View().FromBot()...), func(m telegram.Message) bool {
		return strings.Contains(m.Text, "configuration changed")
	}) {
		t.Error("a user or the owner who reloaded gets an alarm")
	}
	if again, err := ann.AwaitText(town.soon(), "Which agent should answer?"); err != nil || again.ID != menu.ID {
		t.Errorf("the button of a removed user did something: %v", err)
	}
}

// TestTheConfigurationIsReloadedBySIGHUP tests that the log names the changes, and that an error changes nothing,
// also without a log.file.
func TestTheConfigurationIsReloadedBySIGHUP(t *testing.T) {
	town := surroundings(t, nil)
	path := town.writeConfig()
	log := path + ".log"
	town.edit(path, "[log]\n", fmt.Sprintf("[log]\nfile = %q\n", log))
	d := startDaemon(t, "run", "-c", path)
	if err := town.srv.AwaitPoll(town.soon()); err != nil {
		t.Fatal(err)
	}
	hangup := func(want string) {
		t.Helper()
		if err := d.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			text, _ := os.ReadFile(log)
			if strings.Contains(string(text), want) {
				return
			}
			if time.Now().After(until) {
				t.Fatalf("the log does not say %q:\n%s", want, text)
			}
		}
	}
	town.edit(path, "[agents]\n", "[queue]\nmax = -3\n[agents]\n")
	hangup("queue.max: ")
	town.edit(path, "max = -3", "max = 3", "allowed_users = [", fmt.Sprintf("allowed_users = [%d, ", stranger))
	hangup("key=telegram.allowed_users")
	hangup("changes=0")
	ann := town.srv.Private(stranger, "Ann")
	ann.Person().Send(ann, `[[text "an answer for Ann"]]`)
	if _, err := ann.AwaitText(town.soon(), "an answer for Ann"); err != nil {
		town.fatal(err)
	}
	town.checkLogReopened(d, log)
	if calls := town.srv.Calls(telegram.InChat(stranger), telegram.Writes); len(calls) == 0 {
		t.Error("Ann got nothing")
	}
}

// TestAReloadChangesTheOtherAgents tests that a reload adds, changes and removes agents of [agents.acp], and that their
// running turns end as they began.
func TestAReloadChangesTheOtherAgents(t *testing.T) {
	town := surroundings(t, nil)
	path, folders := town.writeConfig(), [2]string{t.TempDir(), t.TempDir()}
	reload := func(want string, pairs ...string) {
		t.Helper()
		town.edit(path, pairs...)
		read := town.awaitAfter(town.say("/reload"), "I read config.toml again.").Text
		if now, _, _ := strings.Cut(read, "In use after you restart ductor:"); !strings.Contains(now, want) {
			t.Errorf("it says %q", read)
		}
	}
	table := func(folder string) string { return fmt.Sprintf("[agents.acp.lines]\npath = %q\n", folder+"/agent") }
	// reloadInTurn reloads while a turn waits for a file.
	reloadInTurn := func(folder, answer, want string, pairs ...string) {
		t.Helper()
		text := func(said string) string {
			return change("agent_message_chunk", fmt.Sprintf(`"content":{"type":"text","text":%q}`, said))
		}
		writeLineAgent(t, folder, "", text(answer+"; "), "until go", text("it ends"))
		town.awaitAfter(town.say("/model lines"), "goes to Lines")
		prompt := town.say("go on")
		town.awaitAfter(prompt, answer)
		reload(want, pairs...)
		if err := os.WriteFile(folder+"/go", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		town.awaitAfter(prompt, answer+"; it ends\n")
	}
	startDaemon(t, "run", "-c", path)
	town.awaitAfter(town.say("/model lines"), "There is no model")
	reload("agents.acp.lines: none → {...}", "[permissions]\n", table(folders[0])+"[permissions]\n")
	reloadInTurn(folders[0], "the first begins", "- agents.acp.lines.path", folders[0], folders[1])
	reloadInTurn(folders[1], "the second begins", "agents.acp.lines: {...} → none", table(folders[1]), "")
	town.awaitAfter(town.say("go on"), "Lines is not installed")
	town.awaitAfter(town.say("/model claude"), "Claude")
	town.awaitAfter(town.say(`[[text "it works on"]]`), "it works on")
}

// A prompt that waits does not run after its user was removed. The turn that runs goes on.
func TestAttackWhatARemovedUserLeftWaiting(t *testing.T) {
	town := surroundings(t, nil)
	ann := town.srv.Private(stranger, "Ann")
	path := town.writeConfig()
	alone := fmt.Sprintf("allowed_users = [%d]", owner)
	both := fmt.Sprintf("allowed_users = [%d, %d]", owner, stranger)
	town.edit(path, alone, both)
	startDaemon(t, "run", "-c", path)
	await := func(part string) {
		t.Helper()
		if _, err := ann.AwaitText(town.soon(), part); err != nil {
			town.fatal(err)
		}
	}
	ann.Person().Send(ann, "/queue queue")
	await("it waits in the queue")
	ann.Person().Send(ann, `[[text "It begins."]] [[tool cmd="until test -e go; do sleep 0.02; done"]] `+
		`[[text "It went on."]]`)
	await("It begins.")
	ann.Person().Send(ann, `[[text "It waited."]]`)
	await("Queued, next in line")
	town.edit(path, both, alone)
	town.say("/reload")
	town.await("I read config.toml again.")
	town.makeFile("go", nil)
	await("It went on.")
	await("this message will not run")
}
